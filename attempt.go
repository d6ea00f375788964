package berth

import "time"

// AttemptState is where an attempt stands (docs/state_machine.md).
type AttemptState string

// The states of an attempt.
const (
	AttemptPlaced    AttemptState = "placed"    // holds a lease; its container is not known yet
	AttemptRunning   AttemptState = "running"   // its container was started
	AttemptFinished  AttemptState = "finished"  // has its one outcome
	AttemptAbandoned AttemptState = "abandoned" // fenced: its host was lost and a newer attempt took over
)

// Purpose is why an attempt runs.
type Purpose string

// The purposes.
const (
	PurposeRun   Purpose = "run"
	PurposeProbe Purpose = "probe" // measures its shape too; with mode short its result is thrown away
)

// StageMain is the stage of a trial's own command, after those of Spec.Stages.
const StageMain = "main"

// Attempt is one container launch of a trial. Its id comes from the workflow:
// Temporal's retry of an activity is the same attempt (rule R1).
type Attempt struct {
	ID          string       `json:"id"`
	TrialID     string       `json:"trial_id"`
	Number      int          `json:"number"` // from 1 in its trial
	Stage       string       `json:"stage"`
	Purpose     Purpose      `json:"purpose"`
	ShapeKey    string       `json:"shape_key"` // what its use teaches
	State       AttemptState `json:"state"`
	HostID      string       `json:"host_id"`
	DeviceID    string       `json:"device_id,omitempty"`
	Class       DeviceClass  `json:"class,omitempty"` // of the device when it was placed; empty = ClassCPU
	Token       int64        `json:"token"`
	Demand      Demand       `json:"demand"` // reserved
	ContainerID string       `json:"container_id,omitempty"`
	Kind        FailureKind  `json:"failure_kind,omitempty"`
	Message     string       `json:"message,omitempty"`
	ExitCode    *int         `json:"exit_code,omitempty"`
	Value       *float64     `json:"value,omitempty"` // as Outcome.Value
	Results     Results      `json:"results,omitempty"`
	Usage       Usage        `json:"usage"`

	MetricSource string `json:"metric_source,omitempty"` // as Outcome.MetricSource

	// Resumed says from which checkpoint it went on, or why from none although an earlier attempt had one.
	Resumed string `json:"resumed,omitempty"`

	Datasets map[string]string `json:"datasets,omitempty"` // versions of the data sets that it had, by name; "" = not known

	PlacedAt   time.Time  `json:"placed_at"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`

	// A limit, or the deletion of the sweep, has the attempt's host remove its files.
	OutputsRemovedAt  *time.Time `json:"outputs_removed_at,omitempty"`
	OutputsRemovedWhy string     `json:"outputs_removed_why,omitempty"` // in plain words
}

// Outcome returns the stored end of the attempt.
func (a Attempt) Outcome() Outcome {
	o := Outcome{Kind: a.Kind, Message: a.Message, ExitCode: a.ExitCode, Value: a.Value, Results: a.Results, Usage: a.Usage, MetricSource: a.MetricSource}
	if a.StartedAt != nil {
		o.StartedAt = *a.StartedAt
	}

	if a.FinishedAt != nil {
		o.FinishedAt = *a.FinishedAt
	}

	return o
}

// SweepAttempt is an attempt of a sweep, with its trial's number.
type SweepAttempt struct {
	Attempt

	TrialNumber int
}

// Outcome is the one result of an attempt.
type Outcome struct {
	Kind     FailureKind `json:"failure_kind"`
	Message  string      `json:"message"` // in plain words, with the next step
	ExitCode *int        `json:"exit_code,omitempty"`
	Value    *float64    `json:"value,omitempty"` // of the objective; nil unless Kind is ok and all constraints hold
	Results  Results     `json:"results,omitempty"`
	Usage    Usage       `json:"usage"`

	// MetricSource is where the objective came from: one of the metric sources, or the shim. Empty = it was not reported.
	MetricSource string `json:"metric_source,omitempty"`

	// DeviceFault: it failed by a fault on its GPU that can only be its program's own.
	// By MPS such a fault ends all clients of the GPU.
	DeviceFault bool `json:"device_fault,omitempty"`

	FirstFit *FirstFit `json:"first_fit,omitempty"` // nil = unknown, or its program had no second one

	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
}

// FirstFit is what the first of several fits of Keras in an attempt computed.
type FirstFit struct {
	Digest  string  `json:"digest"` // SHA-256 of all metrics of all epochs, 64 hexadecimal digits
	Epochs  int     `json:"epochs"`
	Seconds float64 `json:"seconds"`
}

// Result is the outcome of an attempt, with the measured need of its shape.
type Result struct {
	AttemptID string
	TrialID   string
	SweepID   string
	ShapeKey  string
	Token     int64
	Reserved  Demand
	Outcome   Outcome
	Source    FootprintSource // how the usage was measured
	Proof     string          // why the reservation can be freed (rule R3), such as "container exited"

	ContainerID  string            // empty = no container of it started
	Datasets     map[string]string // versions of the data sets that it had, by name; "" = not known
	ImageMissing bool              // it did not start, as its image was not on the host
	InputMissing bool              // it did not start, as an output of a stage, or a version of a data set, was not on the host
	StageKey     string            // trials share its output by this key; empty = they do not
	Stage        string            // that the key is of
	Checkpoint   bool              // it left files in /trial/checkpoint
}
