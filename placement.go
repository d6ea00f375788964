package berth

import "time"

// RequestState is where a placement request stands.
type RequestState string

// The states of a placement request.
const (
	RequestWaiting    RequestState = "waiting"
	RequestPlaced     RequestState = "placed"
	RequestWithdrawn  RequestState = "withdrawn"  // the trial ended before it was placed
	RequestImpossible RequestState = "impossible" // no machine could ever hold it
)

// PlacementRequest is an attempt that asks for a place. Its identity comes from
// the workflow, so that asking twice is asking once.
type PlacementRequest struct {
	AttemptID  string
	SweepID    string
	TrialID    string
	WorkflowID string // to be told of the decision
	Number     int    // of the attempt in its trial, from 1
	Stage      string
	Purpose    Purpose
	Short      bool // a short probe, which is thrown away
	ShapeKey   string
	Demand     Demand
	Expected   time.Duration // of the whole attempt; 0 = unknown
}

// WaitingRequest is a request as the placer sees it.
type WaitingRequest struct {
	AttemptID   string
	SweepID     string
	WorkflowID  string
	TrialNumber int
	Demand      Demand
	Expected    time.Duration
	Waited      time.Duration
	Reasons     []Rejection // as stored
	FailedHosts []string    // where earlier attempts of the trial failed through no fault of its own
	Away        bool        // an earlier attempt of the trial is one of SweepUse's Away
	Blocked     string      // why it cannot be placed wherever there is room; empty = it can
}

// Oversized is a waiting request that asks for more memory than any host has
// that takes attempts now, or than programs outside Berth leave there.
type Oversized struct {
	AttemptID  string
	MostBytes  int64 // what the largest host has, or has left
	Impossible bool  // no other host may come back that has more: MostBytes is the last resort
	Outside    bool  // a host has enough, but programs outside Berth use it now
}

// PlacementStatus is what became of a request, and all a trial needs to go on.
type PlacementStatus struct {
	AttemptID string       `json:"attempt_id"`
	State     RequestState `json:"state"`
	HostID    string       `json:"host_id,omitempty"`
	HostName  string       `json:"host_name,omitempty"`
	DeviceID  string       `json:"device_id,omitempty"`
	Token     int64        `json:"token,omitempty"`
	Short     bool         `json:"short,omitempty"` // the attempt is a short probe
	Demand    Demand       `json:"demand"`
	Reasons   []string     `json:"reasons,omitempty"` // in plain words, while waiting or when impossible
}

// Assignee is everything a host needs to run one attempt.
type Assignee struct {
	Attempt     Attempt
	LeaseID     string
	SweepID     string
	Spec        Spec
	ImageDigest string
	Trial       Trial
	LogOffset   int64     // bytes of the log stored already
	LogAt       time.Time // of the last stored piece
	Earlier     []string  // attempts of the trial that had the same host; their containers must go first
}
