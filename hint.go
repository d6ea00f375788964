package berth

import "time"

// HintKind says what may be read anew.
type HintKind string

// The kinds of hints.
const (
	HintMetrics    HintKind = "metrics"     // an attempt reported metrics
	HintMemory     HintKind = "memory"      // an attempt's memory was measured
	HintWaiting    HintKind = "waiting"     // an attempt waits for other reasons than before
	HintHostSilent HintKind = "host.silent" // a host's worker has not been heard of for HostLostAfter
	HintHostBack   HintKind = "host.back"   // it is heard of again
)

// Hint says that something has changed of which no event tells, because it changes too
// often or because nothing is written when it does. Hints are no history: they are
// thinned, have no sequence, and one may be lost.
type Hint struct {
	Kind        HintKind
	Subject     string // id of the attempt, or of the host
	SweepID     string // empty = of no sweep
	TrialNumber int    // 0 = of no trial
	At          time.Time

	Metric  *MetricPoint // of metrics: the newest of the objective; nil = none was reported yet
	Memory  *MemoryPoint // of memory: the newest
	Waiting []Rejection  // of waiting: why
}

// Mark is how something stands that hints tell of: another value of the same kind and
// subject is a change. Kinds are HintMetrics, HintMemory, HintWaiting and, for hosts of
// which the value is whether they are silent, HintHostSilent.
type Mark struct {
	Kind    HintKind
	Subject string
	SweepID string // empty = of no sweep
	Value   int64
	At      time.Time // when it was read, by the database's clock
}
