package berth

import "time"

// ExpectedStart is when an attempt that waits is expected to start, from now on, if it goes
// on as now. Of a start that cannot be known there is the reason, and no figures.
type ExpectedStart struct {
	Min, Max time.Duration
	Unknown  StartUnknown // empty = it is known
}

// StartUnknown is why nobody knows when an attempt that waits is to start.
type StartUnknown string

// The reasons.
const (
	StartSweepInactive StartUnknown = "sweep_inactive"   // its sweep takes no trials now
	StartPutOff        StartUnknown = "put_off"          // the placer looks at it later
	StartBlocked       StartUnknown = "blocked"          // something that is no room is in its way, such as an earlier attempt of its trial
	StartNothingFits   StartUnknown = "nothing_fits"     // no host could hold it, even an empty one
	StartHostAway      StartUnknown = "host_away"        // only hosts that take no attempts now could hold it, or hold its place
	StartNoEndHelps    StartUnknown = "no_end_helps"     // what it waits for is no end of an attempt, such as memory that programs outside Berth hold
	StartTimeUnknown   StartUnknown = "duration_unknown" // nobody knows yet how long something takes that runs or comes before it
	StartFarBack       StartUnknown = "far_back"         // too many come before it
	StartFarAhead      StartUnknown = "far_ahead"        // it is too long until then
	StartJustAsked     StartUnknown = "just_asked"       // it has only just asked
)

// Foresight is what says when what waits is expected to start.
type Foresight struct {
	Queue    Queue                 // without what advises GPUs
	Complete bool                  // nothing else waits that may be placed now
	Running  []RunningAttempt      // what holds a part of a host
	Times    map[string]ShapeTimes // of the sweeps of both, by id
}

// RunningAttempt is what holds a part of a host, and for how long it has.
type RunningAttempt struct {
	SweepID  string
	ShapeKey string
	HostID   string
	DeviceID string // empty = it holds no GPU
	Demand   Demand
	Activity int64 // of the GPU, booked
	Ran      time.Duration
	Silent   bool // its host does not answer for it: when it ends nobody knows
	Ended    bool // and its host is about to say so
}

// Left is how long the attempt still runs, if it takes as long as such trials did.
func (a RunningAttempt) Left(times TrialTimes) RunTime {
	if a.Ended {
		return RunTime{Known: true}
	}

	return times.Left(a.Ran)
}

// ShapeTimes is how long trials of a sweep take: of each shape, by key, and of all by
// the empty one.
type ShapeTimes map[string]TrialTimes

// Of is how long trials of a shape take: as those of the shape did, where enough have
// ended, or else as all of the sweep.
func (s ShapeTimes) Of(shapeKey string) TrialTimes {
	if times := s[shapeKey]; times.Each().Known {
		return times
	}

	return s[""]
}
