package berth

import (
	"encoding/json"
	"time"
)

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
