package runtrial

import (
	"cmp"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// defaultProbeFor is how long a short probe may run when the sweep names no
// probe.max_duration: the default of the sweep file.
const defaultProbeFor = 2 * time.Minute

// allowed is how long the container may run, and why it is stopped then; zero =
// without end. A short probe is stopped early, for it is thrown away: a program
// that Keras' caps do not end would train in full, twice.
func (r *run) allowed() (time.Duration, failure.Intent) {
	limit := time.Duration(r.who.Spec.Limits.MaxTrialDuration)
	if !r.short {
		return limit, failure.IntentTimeout
	}

	probe := cmp.Or(time.Duration(r.who.Spec.Probe.MaxDuration), defaultProbeFor)
	if limit > 0 {
		probe = min(probe, limit)
	}

	return probe, failure.IntentProbed
}

// limits are what the attempt was allowed.
func (r *run) limits() failure.Limits {
	limits := failure.Limits{LogRateBytes: r.config.Bounds.LogRate, LogFloodFor: r.config.Bounds.LogFloodFor}
	limits.OutputBytes, limits.OutputOwn = r.outputLimit()

	if r.short {
		limits.ProbeFor, _ = r.allowed()
	}

	return limits
}

// source says how the attempt's usage was measured.
func (r *run) source(u berth.Usage) berth.FootprintSource {
	switch {
	case u.Unseen > 0, r.intent == failure.IntentProbed:
		return berth.FootprintPartial
	case r.short, r.intent.StopsEarly(): // it has reported: all of an epoch was seen
		return berth.FootprintShort
	default:
		return berth.FootprintFull
	}
}
