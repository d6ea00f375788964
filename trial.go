package berth

import "time"

// TrialState is where a trial stands (docs/state_machine.md).
type TrialState string

// The states of a trial.
const (
	TrialPending    TrialState = "pending"    // suggested; nothing asked for yet
	TrialProbing    TrialState = "probing"    // waits for another trial to measure its shape
	TrialWaiting    TrialState = "waiting"    // asked for a place; the reasons are stored
	TrialRunning    TrialState = "running"    // an attempt holds a lease
	TrialSucceeded  TrialState = "succeeded"  // has its one result
	TrialFailed     TrialState = "failed"     // ended without a result by its own fault
	TrialInfeasible TrialState = "infeasible" // needs more memory than it can get; the search learns it
	TrialCanceled   TrialState = "canceled"   // stopped by a person or the sweep
	TrialPruned     TrialState = "pruned"     // stopped early, by what it reported; the search learns its last value
)

// OpenTrialStates are the states of a trial that has not ended.
func OpenTrialStates() []string {
	return []string{string(TrialPending), string(TrialProbing), string(TrialWaiting), string(TrialRunning)}
}

// Terminal reports whether the trial has ended for good.
func (s TrialState) Terminal() bool {
	switch s {
	case TrialSucceeded, TrialFailed, TrialInfeasible, TrialCanceled, TrialPruned:
		return true
	default:
		return false
	}
}

// Trial is one assignment of values. Trials are numbered from 1 in their sweep
// and stored before anything runs.
type Trial struct {
	ID         string      `json:"id"`
	SweepID    string      `json:"sweep_id"`
	Number     int         `json:"number"`
	Params     Assignment  `json:"params"`
	ShapeKey   string      `json:"shape_key"`
	State      TrialState  `json:"state"`
	Kind       FailureKind `json:"failure_kind,omitempty"` // of the attempt that decided
	Message    string      `json:"message,omitempty"`      // in plain words, with the next step
	Note       string      `json:"note,omitempty"`         // of a person, as of a sweep
	Origin     Origin      `json:"origin"`
	Value      *float64    `json:"value,omitempty"` // of the objective; nil = none yet, or a constraint is broken
	Results    Results     `json:"results,omitempty"`
	Attempts   int         `json:"attempts"`
	CreatedAt  time.Time   `json:"created_at"`
	StartedAt  *time.Time  `json:"started_at,omitempty"`
	FinishedAt *time.Time  `json:"finished_at,omitempty"`
	Waiting    []Rejection `json:"waiting,omitempty"` // why it is not running, candidate by candidate
	Kept       *KeptHost   `json:"kept,omitempty"`    // the capacity kept free for it; nil = none

	OutputsRemoved string `json:"outputs_removed,omitempty"` // why the files of its last attempt were removed, in plain words; empty = they were not
}

// Observation is what a search learns from an earlier trial.
type Observation struct {
	Number int
	Params Assignment
	State  TrialState
	Kind   FailureKind
	Value  *float64 // of the objective; of a pruned trial the last that was judged; nil = it has none
	Step   int64    // of the value of a pruned trial

	Results Results
}

// RungReport is what an attempt reported of the objective when it came to a rung: a step at
// which a rule of early stopping judges trials. Nil = it is NaN or infinite.
type RungReport struct {
	Rung  int64    `json:"rung"` // from 0
	Step  int64    `json:"step"`
	Value *float64 `json:"value"`
	Best  *float64 `json:"best"`            // up to this step
	Ended bool     `json:"ended,omitempty"` // the attempt has ended: nothing is left to stop
}

// RungValue is what another trial reported at a rung.
type RungValue struct {
	Value     *float64
	Succeeded bool // the trial has
}

// StopDecision is a rule's answer, and why in numbers.
type StopDecision struct {
	Stop bool
	Why  string
}

// Rung is a report with its answer, as the ledger keeps it.
type Rung struct {
	Rung  int64     `json:"rung"`
	Step  int64     `json:"step"`
	Value *float64  `json:"value"`
	Stop  bool      `json:"stop"`
	Why   string    `json:"why"`
	At    time.Time `json:"at"`
}

// Origin is where the values of a trial come from. A search that learns knew all trials
// with smaller numbers: some had ended, the others were open.
type Origin struct {
	By    string `json:"by"`              // the algorithm, or "enqueue"
	Ended int    `json:"ended,omitempty"` // trials from which it learned
	Prior int    `json:"prior,omitempty"` // trials of earlier sweeps from which it learned
	Open  int    `json:"open,omitempty"`  // trials without a result
	Known string `json:"known,omitempty"` // the numbers of the ended trials it knew, such as "1-8,10"
}

// SearchNeeds is what a search wants to know of earlier trials beside the last one.
type SearchNeeds struct {
	Entries bool // all listed assignments, not only the next ones
	Past    bool // Tried.Past
}

// NewTrial is a suggestion to be stored before anything runs.
type NewTrial struct {
	ID     string
	Params Assignment
	Shape  Shape
	Stages []StageRun // before its own command, in order
	Origin Origin
	Lost   string // why it is canceled at once; empty = it is not
}

// Tried is the state from which a search continues.
type Tried struct {
	Made int        // trials
	Last Assignment // values of the last trial; nil when there is none

	// Seen returns which of keys are Assignment.Key of a made trial; of nil, the keys of
	// all trials. nil = no trial counts as made.
	Seen func(keys []string) (map[string]bool, error)

	Past  []Observation   // all trials by number, of a search that learns; else nil
	Prior [][]Observation // of earlier sweeps; less is better for each value

	Listed  int          // assignments that the sweep tries first
	From    int          // number of listed assignments before Entries
	Entries []Assignment // complete, in order
}

// PlannedTrial is a trial with all that decides how one of its stages runs: Params are the
// values that the stage reads, ShapeKey and Spec its own.
type PlannedTrial struct {
	Trial

	Spec       Spec
	Footprints Footprints // of its shape
}

// TrialUpdate is a trial's next state. Value is set only with succeeded.
type TrialUpdate struct {
	TrialID string
	SweepID string
	Number  int
	State   TrialState
	Kind    FailureKind
	Message string
	Value   *float64

	FailedStage string // key of the stage in which it failed: its sweep's other trials that need it fail, too

	// SweepRun is the run of the sweep's workflow that started the trial and
	// gets its end from Temporal itself; empty = none does.
	SweepRun string
}

// End is the end of the trial for its sweep.
func (u TrialUpdate) End() TrialEnd {
	return TrialEnd{Number: u.Number, State: u.State, Kind: u.Kind, Value: u.Value, Message: u.Message}
}

// TrialEnd says how a trial ended. Told to a sweep, one without a number asks it
// to look up which of its trials have ended.
type TrialEnd struct {
	Number  int         `json:"number"`
	State   TrialState  `json:"state"`
	Kind    FailureKind `json:"kind,omitempty"`
	Value   *float64    `json:"value,omitempty"`
	Message string      `json:"message,omitempty"`
}
