package berth

import "time"

// Placement is where an attempt goes, and its resources there.
type Placement struct {
	HostID   string      `json:"host_id"`
	DeviceID string      `json:"device_id,omitempty"` // empty = CPU
	Class    DeviceClass `json:"class"`               // of the device, when it was decided
	Demand   Demand      `json:"demand"`
	Mix      Mix         `json:"mix,omitzero"` // of its GPU, when it was decided
}

// Rejection is why an attempt does not go to one candidate. Needed and Free
// are in the unit of the dimension: bytes, thousandths of a core, or a count.
type Rejection struct {
	HostID    string    `json:"host_id,omitempty"` // empty = not about a host
	HostName  string    `json:"host_name,omitempty"`
	DeviceID  string    `json:"device_id,omitempty"`
	Dimension Dimension `json:"dimension"`
	Needed    int64     `json:"needed"`
	Free      int64     `json:"free"`
	Never     bool      `json:"never,omitempty"` // would not fit even when the candidate is empty
	Reason    string    `json:"reason"`          // in plain words, such as "host a: needs 1,310 MiB, 1,120 free"
}

// KeptPlace is a host, or one of its GPUs, that takes nothing younger until a request
// that has waited too long fits there. Zero = none is kept.
type KeptPlace struct {
	HostID   string
	DeviceID string // empty = the whole host
}

// KeptHost is the capacity kept free for a request now.
type KeptHost struct {
	HostID   string    `json:"host_id"`
	HostName string    `json:"host_name"`
	DeviceID string    `json:"device_id,omitempty"` // empty = the whole host
	Since    time.Time `json:"since"`
}

// Wait is the result of a round of the placer for a request that stays waiting.
type Wait struct {
	Reasons []Rejection
	Kept    KeptPlace
}

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
	WorkflowID string // gets the decision
	Number     int    // of the attempt in its trial, from 1
	Stage      string
	Purpose    Purpose
	Short      bool // a short probe, which is thrown away
	ShapeKey   string
	Demand     Demand        // its demand now; the placer sizes it again until it has a place
	Last       *LastOOM      // the trial's newest out-of-memory; nil = none
	Expected   time.Duration // of the whole attempt; 0 = unknown
}

// LastOOM is a trial's newest out-of-memory.
type LastOOM struct {
	Demand    Demand `json:"demand"`           // of the attempt
	Device    bool   `json:"device,omitempty"` // its GPU's memory ran out, not the host's
	PeakBytes int64  `json:"peak_bytes"`       // of that memory
	Count     int    `json:"count"`            // out-of-memory attempts of the trial so far
	Max       int    `json:"max_attempts"`     // of the trial
}

// WithoutSpill returns the lesson of an out-of-memory in unified memory for the
// program's need of the host's memory alone; nil for nil.
func (l *LastOOM) WithoutSpill() *LastOOM {
	if l == nil || l.Demand.SpillBytes == 0 {
		return l
	}

	last := *l
	last.Demand.MemoryBytes -= last.Demand.SpillBytes

	if !last.Device {
		last.PeakBytes = max(last.PeakBytes-last.Demand.SpillBytes, 0)
	}

	last.Demand.SpillBytes = 0

	return &last
}

// WaitingRequest is a request as the placer sees it.
type WaitingRequest struct {
	AttemptID   string
	SweepID     string
	TrialNumber int
	ShapeKey    string
	Resources   Resources // of its sweep
	Datasets    []string  // names of its sweep's data sets
	Image       string    // of its sweep, by digest or ID
	Lacking     []string  // hosts that lack it, as their workers told lately, and can pull it, or that would fetch outputs of earlier stages
	Unable      []string  // hosts that lack it, and cannot
	SecretKeys  []string  // to which the secrets that its sweep mounts are sealed: public parts
	Last        *LastOOM  // the trial's newest out-of-memory; nil = none
	Waited      time.Duration
	Reasons     []Rejection // as stored
	Kept        KeptPlace   // as stored
	FailedHosts []string    // where earlier attempts of the trial failed through no fault of its own, once for each
	Checkpoint  string      // id of the host that alone has the trial's newest checkpoint; empty = none, or it is in the store
	Stored      bool        // its newest checkpoint is in the store, or its host is about to store it
	Holders     []string    // ids of the hosts that have that one, or a newer one, in their directory
	Inputs      bool        // it reads outputs of earlier stages
	InputHosts  []string    // ids of the hosts that have all of them, or can fetch from the store what they lack
	Shared      bool        // of a stage: others wait for what it makes
	Apart       bool        // on a GPU it is no MPS client beside others: a fault ended it there, or its sweep's program has recently faulted by itself
	Away        bool        // an earlier attempt of the trial is one of SweepUse's Away
	Blocked     string      // why it cannot be placed wherever there is room; empty = it can
}

// MeasuresWithin is how long the first attempt of a shape on a GPU has to train for a
// while, which measures it: longer than imports, data and first steps of most jobs take.
// Then others of the shape run beside it at a guess.
const MeasuresWithin = time.Minute

// Queue is the input of a round of the placer.
type Queue struct {
	Hosts      []Host // with recent ones as former hosts
	Waiting    []WaitingRequest
	Sweeps     map[string]SweepUse   // of sweeps with a request, by id
	OnDevices  map[string][]Loaded   // leases, by device
	OnGPUs     map[string]bool       // shapes that hold a lease on a GPU; true = all of them for less than MeasuresWithin
	Paces      []MixPace             // of the shapes that wait or run
	Footprints map[string]Footprints // of the shapes that wait or hold a GPU, by key
}

// PlacementStatus is the state of a request, and all a trial needs to go on.
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
	LogOffset   int64    // bytes of the log stored already
	CardBytes   int64    // total memory of the attempt's GPU; 0 = it has none
	Measures    bool     // no run of its shape was measured throughout on such a GPU
	Earlier     []string // attempts of the trial that had the same host; their containers must go first

	// Spec and the trial's values are those of the attempt's stage.
	StageKey string       // of its stage; empty = StageMain
	Inputs   []StageInput // what earlier stages wrote, in order
	FirstRun string       // attempt whose output is the stage's already: this one's is compared with it and not shared; empty = none
}
