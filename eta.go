package berth

import (
	"fmt"
	"math"
	"time"
)

// leastEnded is how many trials must have ended before they say how long others take:
// fewer have no quartiles.
const leastEnded = 3

// TrialTimes is how long the newest trials of a sweep took that ended and were not canceled,
// from the first start to the end, waits between attempts included.
type TrialTimes struct {
	Ended int           // how many these are, at most RecentTrials
	Mean  time.Duration // of them
	Lower time.Duration // quartile: a quarter of them took at most so long
	Upper time.Duration // the same of three quarters
}

// RecentTrials is how many trials TrialTimes looks at: the newest, as what runs beside a
// trial decides how long it takes, and that changes while a sweep runs.
const RecentTrials = 200

// ETA is how long a sweep still takes, if it goes on as now.
type ETA struct {
	Min, Max time.Duration
	Why      string // the figures that it comes from, in plain words
}

// EstimateEnd says how long a sweep still takes whose trials are known in number. With k
// trials at once, the trials that have not begun take their number / k times as long as one
// does: at least the smaller of lower quartile and mean, as the running ones may end at once;
// at most the larger of upper quartile and mean for each wave, and one more for those that
// run. ok is false while that is not known: fewer than 3 trials ended, none runs, or the
// number of trials is not known.
func EstimateEnd(c Counts, t TrialTimes) (eta ETA, ok bool) {
	if c.Planned == 0 || c.Running == 0 || t.Ended < leastEnded {
		return ETA{}, false
	}

	left := max(c.Planned-c.Finished()-c.Running, 0)
	waves := float64(left) / float64(c.Running)

	return ETA{
		Min: time.Duration(waves * float64(min(t.Lower, t.Mean))),
		Max: time.Duration((math.Ceil(waves) + 1) * float64(max(t.Upper, t.Mean))),
		Why: fmt.Sprintf("%d to start and %d that run at once; of the newest %d that ended, half took %s to %s, the mean is %s",
			left, c.Running, t.Ended, secondsText(t.Lower), secondsText(t.Upper), secondsText(t.Mean)),
	}, true
}

// secondsText is such as 0.4s, 12s or 3m20s.
func secondsText(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}

	return d.Round(time.Second).String()
}
