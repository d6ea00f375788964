package berth

import (
	"cmp"
	"time"
)

// LeaseState is where a lease stands. Expiry never frees memory: a lease goes
// held → suspect → released, and the last step needs proof (rule R3).
type LeaseState string

// The states of a lease.
const (
	LeaseHeld     LeaseState = "held"     // its worker renews it
	LeaseSuspect  LeaseState = "suspect"  // not renewed in time; its memory stays booked
	LeaseReleased LeaseState = "released" // the container is gone, or the host was restarted
)

// LeaseTerm is how long a lease lives without renewal; workers renew every
// LeaseRenewEvery. All lease times are database times (rule R9).
const (
	LeaseTerm       = 60 * time.Second
	LeaseRenewEvery = 15 * time.Second
	// ReviveWithin is how long after a renewal an abandoned attempt may go back
	// to its host: the host has just shown that the container exists. It is one
	// renewal and its delay, and shorter than an attempt waits for its host, so
	// that a host that has just died gets nothing back.
	ReviveWithin = LeaseRenewEvery + 5*time.Second
)

// SeenAttempt is an attempt that its host runs, usually because the attempt's
// container exists. Token is the lease's token at the attempt's start.
type SeenAttempt struct {
	AttemptID string
	Token     int64
}

// Lease is the fenced claim that holds an attempt's reservation.
type Lease struct {
	ID        string     `json:"id"`
	AttemptID string     `json:"attempt_id"`
	HostID    string     `json:"host_id"`
	DeviceID  string     `json:"device_id,omitempty"`
	Demand    Demand     `json:"demand"`
	Token     int64      `json:"token"` // increases with every lease; writes with an older one are refused (R4)
	State     LeaseState `json:"state"`
	ExpiresAt time.Time  `json:"expires_at"`
}

// HostLease is an unreleased lease as a host's reconciler sees it.
type HostLease struct {
	AttemptID    string
	SweepID      string
	TrialID      string
	TrialNumber  int
	Number       int // of the attempt in its trial
	State        LeaseState
	Token        int64 // of the lease
	Current      int64 // of the attempt; another number means the attempt was fenced
	AttemptState AttemptState
	Age          time.Duration
	// Revivable says that the attempt was abandoned and that its trial has
	// neither ended nor got a newer attempt: the host may take it back.
	Revivable bool
}

// HeldLease is a lease that is held or suspect, with its measured use.
type HeldLease struct {
	AttemptID    string
	AttemptState AttemptState
	Number       int // of the attempt in its trial
	Stage        string
	Purpose      Purpose
	SweepID      string
	SweepName    string
	TrialNumber  int
	HostID       string
	HostName     string
	DeviceID     string // empty = it holds no GPU
	Demand       Demand // reserved
	Activity     int64  // of the GPU, booked; in thousandths
	State        LeaseState
	Since        time.Time

	MeasuredBytes       *int64     // newest measured use; nil = not known
	MeasuredDeviceBytes *int64     // the same for the GPU's memory
	MeasuredAt          *time.Time // when the interval of the newest measurement begins; nil = not measured
}

// LeaseKey is a lease's place in the list of them: by host, GPU, age and attempt.
type LeaseKey struct {
	HostID    string    `json:"h"`
	DeviceID  string    `json:"d,omitempty"`
	Since     time.Time `json:"s"`
	AttemptID string    `json:"a"`
}

// Key is where the lease is in the list.
func (l HeldLease) Key() LeaseKey {
	return LeaseKey{HostID: l.HostID, DeviceID: l.DeviceID, Since: l.Since, AttemptID: l.AttemptID}
}

// QueuedRequest is an attempt that waits for a lease. Position is from 1, in the
// order in which the placer reads requests: first requests that may be placed
// now, then requests put off for a while; in each group sweeps that take trials
// come first, and of these the longest wait. The placer may place another
// request first: an overdue one, or one that fits where the first does not.
type QueuedRequest struct {
	Position    int
	AttemptID   string
	Number      int // of the attempt in its trial
	Stage       string
	Purpose     Purpose
	SweepID     string
	SweepName   string
	SweepState  SweepState
	TrialNumber int
	Since       time.Time  // the sweep's resumption, when that is later than the request
	NotBefore   *time.Time // it is put off until then, after a failure that was not the trial's; nil = it is not
	Reasons     []Rejection
	Kept        *KeptHost // the capacity kept free for it; nil = none

	BlockerEndsAt *time.Time // expected end of the first trial that blocks it; passed = any moment, nil = not known
}

// Blockers returns the ids of the blockers of the request: hosts and GPUs that could take
// it once attempts end there, and its sweep where max_parallel is reached.
func (r QueuedRequest) Blockers() (ids []string) {
	for _, why := range r.Reasons {
		switch why.Dimension {
		case DimensionMemory, DimensionFreeMemory, DimensionCPU, DimensionAttempts, DimensionDeviceBytes, DimensionContexts, DimensionActivity, DimensionExclusive:
			if !why.Never {
				ids = append(ids, cmp.Or(why.DeviceID, why.HostID))
			}
		case DimensionSweep:
			if why.Needed > 0 { // else the sweep is paused, or its earlier trials go first
				ids = append(ids, r.SweepID)
			}
		default: // no end of an attempt helps
		}
	}

	return ids
}

// EarliestEnds is when the first attempt should end on each host, on each GPU and of each sweep, by id.
type EarliestEnds map[string]time.Time

// Add takes in an attempt, or the first of several, that holds these.
func (e EarliestEnds) Add(endsAt time.Time, ids ...string) {
	for _, id := range ids {
		if first, known := e[id]; !known || endsAt.Before(first) {
			e[id] = endsAt
		}
	}
}

// First is the earliest of these; nil = none is known.
func (e EarliestEnds) First(ids []string) (first *time.Time) {
	for _, id := range ids {
		if at, known := e[id]; known && (first == nil || at.Before(*first)) {
			first = &at
		}
	}

	return first
}

// QueueKey is a request's place in the queue.
type QueueKey struct {
	PutOff    bool      `json:"p,omitempty"`
	Inactive  bool      `json:"i,omitempty"` // its sweep takes no trials
	Since     time.Time `json:"s"`
	AttemptID string    `json:"a"`
}

// Key is where the request is in the queue.
func (r QueuedRequest) Key() QueueKey {
	sweep := SweepUse{State: r.SweepState}

	return QueueKey{PutOff: r.NotBefore != nil, Inactive: !sweep.TakesTrials(), Since: r.Since, AttemptID: r.AttemptID}
}
