package berth

import (
	"time"
)

// MetricPoint is one reported value. A value that is not finite is kept as a
// status and never ranked.
type MetricPoint struct {
	Name   string       `json:"name"`
	Step   int64        `json:"step"`
	Value  float64      `json:"value"` // meaningless unless Status is finite
	Status MetricStatus `json:"status"`
	Final  bool         `json:"final,omitempty"` // from a "final" record, which overrides the strategy
	At     time.Time    `json:"at"`
}

// MetricStatus says whether a metric value is a number that can be ranked.
type MetricStatus string

// The statuses.
const (
	MetricFinite      MetricStatus = "finite"
	MetricNaN         MetricStatus = "nan"
	MetricPosInfinity MetricStatus = "infinity"
	MetricNegInfinity MetricStatus = "-infinity"
)

// Curve is what one trial reported of one metric, from its newest attempt that
// counts: one whose result is not thrown away, as that of a short probe is.
type Curve struct {
	TrialNumber int
	TrialState  TrialState
	AttemptID   string
	Points      []CurvePoint // finite, by step; thinned when there are more than were asked for
	Total       int          // finite points before thinning
	NotFinite   int          // points that are NaN or infinite, which are not among the others
	FirstBad    int64        // the first step of them; meaningless without one
}

// CurvePoint is one finite value.
type CurvePoint struct {
	Step  int64
	Value float64
}

// MetricName is a metric of a sweep.
type MetricName struct {
	Name     string
	Trials   int   // that reported it
	LastStep int64 // the largest of any of them
}

// MostNamedTrials is how many trials, the newest first, are looked at for names of
// metrics.
const MostNamedTrials = 50

// ExportedTrial is a trial as exports have it: with the attempt that it is judged
// by, its newest that is no short probe.
type ExportedTrial struct {
	Trial

	Counts   *Attempt // nil = it had none
	HostName string   // of that attempt; empty without one
}

// ExportedMetric is a metric point as exports have it.
type ExportedMetric struct {
	MetricPoint

	TrialNumber   int
	AttemptNumber int
	Counts        bool // its attempt is the trial's newest that is no short probe
}

// Key says where the point stands among all of its sweep.
func (m ExportedMetric) Key() MetricKey {
	return MetricKey{Trial: m.TrialNumber, Attempt: m.AttemptNumber, Name: m.Name, Step: m.Step}
}

// MetricKey orders the metric points of a sweep: by trial, attempt, name and step.
// The zero key is before all of them. One without a name is before all points of
// its attempt.
type MetricKey struct {
	Trial   int
	Attempt int
	Name    string
	Step    int64

	Counting int // number of the attempt of Trial that counts, as the page before had it; 0 = not known
}

// MaxMemoryPoints is how many points of memory are kept of an attempt: as many as a
// page can draw side by side, and 70 to 107 KiB of PostgreSQL's disk (docs/production.md).
const MaxMemoryPoints = 500

// MemoryPoint is the most that an attempt held in one interval of its life, and the
// busiest that it kept its GPU. A figure that is nil was not measured.
type MemoryPoint struct {
	Second      int       `json:"second"`                 // when the interval begins, since the attempt's start; from 0
	At          time.Time `json:"-"`                      // the same as a time; zero in what a worker writes
	HostBytes   *int64    `json:"host_bytes,omitempty"`   // the container's working set, as Usage.MemoryPeakBytes
	DeviceBytes *int64    `json:"device_bytes,omitempty"` // of its GPU's memory
	SMMilli     *int64    `json:"sm_milli,omitempty"`     // the attempt's part of its GPU's SMs that work, in thousandths
}

// MachinePointsKept is how long it is known how full machines were: a week, so that a
// Monday can be held against the one before. One host with eight GPUs has 90,720 points then.
const MachinePointsKept = 7 * 24 * time.Hour

// MachinePoint is what a host, or one of its GPUs, held in an interval: the most
// that its worker told of, every 15 s. Nil = not measured. What attempts held is 0
// where there were none.
type MachinePoint struct {
	DeviceID      string    // empty = the host itself
	At            time.Time // when the interval begins
	MemoryBytes   int64     // in all
	ReservedBytes int64     // of the memory, by leases
	MeasuredBytes *int64    // what their attempts held of it, added up
	OthersBytes   *int64    // what programs outside Berth used of it
	ActivityMilli *int64    // thousandths of a GPU's SMs that attempts kept busy
	CPUMilli      int64     // reserved thousandths of the host's cores; 0 of a GPU
	Attempts      int       // that held a lease
}
