package berth

import "time"

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
	ContainerID  string
	Age          time.Duration
	// Revivable says that the attempt was abandoned and that its trial has
	// neither ended nor got a newer attempt: the host may take it back.
	Revivable bool
}
