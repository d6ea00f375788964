package berth

import (
	"encoding/json"
	"time"
)

// SweepState is where a sweep stands (docs/state_machine.md).
type SweepState string

// The states of a sweep.
const (
	SweepPending   SweepState = "pending"   // accepted; its workflow starts in a moment
	SweepRunning   SweepState = "running"   // starts trials
	SweepPaused    SweepState = "paused"    // starts no trial until resumed; running ones go on
	SweepStopping  SweepState = "stopping"  // starts no trial any more; running ones finish
	SweepCanceling SweepState = "canceling" // stops its containers
	SweepSucceeded SweepState = "succeeded" // ended by its own rules
	SweepFailed    SweepState = "failed"    // too many failed trials, or none succeeded
	SweepStopped   SweepState = "stopped"   // a person stopped it; its running trials have finished
	SweepCanceled  SweepState = "canceled"  // a person canceled it
)

// Terminal reports whether the sweep has ended for good.
func (s SweepState) Terminal() bool {
	switch s {
	case SweepSucceeded, SweepFailed, SweepStopped, SweepCanceled:
		return true
	default:
		return false
	}
}

// MaxOpenTrials is how many trials a sweep has open at most, running and waiting. It keeps
// its workflow's history and pending children far below Temporal's limit of 2,000 of these.
const MaxOpenTrials = 500

// DeletePrefix is the least number of characters of the id needed to delete a
// sweep: as many as lists show. A slip with less would delete another.
const DeletePrefix = 8

// Sweep is one search over a space of training settings.
type Sweep struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Spec        Spec       `json:"spec"`
	ImageDigest string     `json:"image_digest"`
	State       SweepState `json:"state"`
	Reason      string     `json:"reason,omitempty"` // why it ended, or what the user must do
	Note        string     `json:"note,omitempty"`   // of a person, at most 1,000 characters; words that begin with # are its tags
	MaxParallel int        `json:"max_parallel"`     // live value; 0 = auto
	CreatedBy   string     `json:"created_by"`
	CreatedAt   time.Time  `json:"created_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
	Counts      Counts     `json:"counts"`
	BestTrial   int        `json:"best_trial,omitempty"` // number; 0 = none yet
	BestValue   *float64   `json:"best_value,omitempty"`
	RunID       string     `json:"-"` // the run of its workflow that carries it on; empty = none yet
}

// Counts are the trials of a sweep by state.
type Counts struct {
	Total      int `json:"total"`   // created so far
	Planned    int `json:"planned"` // at the end, when it is known; else 0
	Waiting    int `json:"waiting"`
	Running    int `json:"running"`
	Succeeded  int `json:"succeeded"`
	Failed     int `json:"failed"`
	Infeasible int `json:"infeasible"`
	Canceled   int `json:"canceled"`
	Pruned     int `json:"pruned"`      // stopped early
	OOMRetries int `json:"oom_retries"` // attempts that ran out of memory and were followed by another
}

// Finished is the number of trials in a terminal state.
func (c Counts) Finished() int {
	return c.Succeeded + c.Failed + c.Infeasible + c.Canceled + c.Pruned
}

// NewSweep is a sweep to be accepted.
type NewSweep struct {
	ID          string
	Spec        Spec
	ImageDigest string
	Planned     int // trials in all, when known; else 0
	CreatedBy   string
	From        []string // ids of the sweeps whose trials its search knows from the start
	PriorsOf    string   // the sweep whose search knew from the start what this one's does; empty = none

	// Idempotency: the same key with the same body answers with the first
	// sweep; with another body it is a conflict. An empty key is never looked up.
	Route    string
	Key      string
	BodyHash []byte
}

// SubmissionKey identifies the submission of a sweep: the person, the route, the key
// and the body.
func (n NewSweep) SubmissionKey() SubmissionKey {
	return SubmissionKey{Person: n.CreatedBy, Route: n.Route, Key: n.Key, BodyHash: n.BodyHash}
}

// SubmissionKey tells whether two submissions are the same call.
type SubmissionKey struct {
	Person   string
	Route    string
	Key      string
	BodyHash []byte // SHA-256 of the caller's body
}

// SweepUse is a sweep as the placer sees it.
type SweepUse struct {
	MaxParallel int // 0 = no limit
	Running     int // unreleased leases, without Away
	Away        int // leases of attempts that their host, which does not answer, still holds, and that their trials are to run again
	State       SweepState
	TrialLimit  Duration // limits.max_trial_duration; 0 = not known
	Left        int      // trials that have not asked for a place yet, as far as that is known
	Template    string   // image and command: sweeps that have the same run alike
}

// TakesTrials reports whether trials of the sweep may start.
func (u SweepUse) TakesTrials() bool { return u.State == SweepRunning || u.State == SweepPending }

// Event is one change, for watchers.
type Event struct {
	Sequence int64  `json:"sequence"` // increases in the order of commits
	Kind     string `json:"kind"`     // such as trial.state
	SweepID  string `json:"sweep_id,omitempty"`
	Subject  string `json:"subject"` // id of the thing
	// TrialNumber is the number of its trial, or its attempt's trial; 0 = neither, or the trial was deleted.
	TrialNumber int       `json:"trial,omitempty"`
	Data        any       `json:"data,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// Kinds of outbox messages.
const (
	OutboxStartSweep    = "start_sweep"    // start the workflow of sweep_id
	OutboxPlaced        = "placed"         // tell a trial that the request of attempt_id was decided
	OutboxTrialFinished = "trial_finished" // tell a sweep of a TrialEnd
)

// OutboxMessage is a message for Temporal.
type OutboxMessage struct {
	ID         int64
	Kind       string
	WorkflowID string
	Payload    json.RawMessage
	Tries      int
}

// Delivery is the result of delivering outbox messages, by their ids.
type Delivery struct {
	Delivered []int64
	Failed    map[int64]error
	Untried   []int64
}
