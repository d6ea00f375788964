package report

import (
	"fmt"
	"math"
	"time"

	"github.com/berthml/berth"
)

// ETA is how long a sweep still takes, if it goes on as now.
type ETA struct {
	Min, Max time.Duration
	Why      string // the figures that it comes from, in plain words
}

// EstimateEnd says how long a sweep with a known number of trials still takes. With k trials
// at once, the running ones or fewer by max_parallel, the trials that have not begun take
// their number / k times as long as one does: at least the smaller of lower quartile and mean,
// as the running ones may end at once; at most the larger of upper quartile and mean for each
// wave, and one more for the running ones. A trial that has run for longer than that may take
// as long again. ok is false while the end is not known: fewer than 3 trials ended, none runs,
// or the number of trials is not known.
func EstimateEnd(s berth.Sweep, t berth.TrialTimes, now time.Time) (eta ETA, ok bool) {
	c := s.Counts
	if c.Planned == 0 || c.Running == 0 || !t.Known() {
		return ETA{}, false
	}

	left := max(c.Planned-c.Finished()-c.Running, 0)
	each := max(t.Upper, t.Mean)
	k, atOnce := c.Running, fmt.Sprintf("%d that run at once", c.Running)

	if s.MaxParallel > 0 && s.MaxParallel < k { // it was lowered: the next ones begin as others end
		k, atOnce = s.MaxParallel, fmt.Sprintf("%d that run, %d at once by max_parallel", c.Running, s.MaxParallel)
	}

	waves := float64(left) / float64(k)
	eta = ETA{
		Min: berth.DurationOf(waves * float64(min(t.Lower, t.Mean))),
		Max: berth.DurationOf((math.Ceil(waves) + 1) * float64(each)),
		Why: fmt.Sprintf("%d to start and %s; of the newest %d that ended, half took %s to %s, the mean is %s",
			left, atOnce, t.Ended, secondsText(t.Lower), secondsText(t.Upper), secondsText(t.Mean)),
	}

	if t.Oldest > each {
		each = t.Oldest
		eta.Max = max(eta.Max, each)
		eta.Why += "; one has run for " + secondsText(each)
	}

	if limit := time.Duration(s.Spec.Limits.MaxDuration); limit > 0 && s.StartedAt != nil {
		eta.endBy(limit, now.Sub(*s.StartedAt), each)
	}

	return eta, true
}

// endBy keeps to limits.max_duration, at which no more trials start and the running ones go
// on to their end. The limit counts from the first trial that ran, without pauses. The
// pauses are not known here, so the limit leaves at least the time that the duration since
// the start does.
func (e *ETA) endBy(limit, sinceStart, each time.Duration) {
	left := max(limit-sinceStart, 0)
	if left >= e.Max {
		return
	}

	e.Min, e.Max = min(e.Min, left), min(e.Max, limit+each)
	e.Why += fmt.Sprintf("; limits.max_duration leaves %s, and as long as the sweep was paused or had no trial yet", secondsText(left))
}

// secondsText is such as 0.4s, 12s or 3m20s.
func secondsText(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}

	return d.Round(time.Second).String()
}
