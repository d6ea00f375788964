package metrics

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/berthml/berth"
)

// Thinner decides which points are stored: all of them while the job stays within its rate. Of
// a faster job it holds the newest point of each metric, and lets some go as the rate allows, in
// no order, so that no metric is left out for good. The objective counts every value (Series.Add).
type Thinner struct {
	limiter *rate.Limiter
	limit   int       // points in all
	clock   time.Time // never goes back
	kept    int
	lost    int
	held    map[string]berth.MetricPoint
}

// burstSeconds is how many seconds' worth of points may come at once: a job
// that writes its history when it ends, say.
const burstSeconds = 100

// NewThinner is for an attempt of an age: an adopted one is read from its start, at once.
func NewThinner(rateLimit, limit int, age time.Duration) *Thinner {
	burst := float64(rateLimit) * (burstSeconds + max(age, 0).Seconds())

	return &Thinner{
		limiter: rate.NewLimiter(rate.Limit(rateLimit), int(min(burst, float64(limit)))),
		limit:   limit, held: make(map[string]berth.MetricPoint),
	}
}

// allow takes one point's place, if there is one.
func (t *Thinner) allow(at time.Time) bool {
	if at.After(t.clock) {
		t.clock = at
	}

	if t.kept >= t.limit || !t.limiter.AllowN(t.clock, 1) {
		return false
	}

	t.kept++

	return true
}

// add returns whether a point is stored now.
func (t *Thinner) add(p berth.MetricPoint) bool {
	if len(t.held) == 0 && t.allow(p.At) {
		return true
	}

	if _, there := t.held[p.Name]; there {
		t.lost++
	}

	t.held[p.Name] = p

	return false
}

// release returns the held points that may be stored now; at the end all of them, so that the last
// value of each metric is always there.
func (t *Thinner) release(now time.Time, end bool) []berth.MetricPoint {
	var out []berth.MetricPoint

	for name, p := range t.held {
		if !end && !t.allow(now) {
			break
		}

		out = append(out, p)
		delete(t.held, name)
	}

	return out
}

// note says what was left out; empty when nothing was.
func (t *Thinner) note() string {
	if t.lost == 0 {
		return ""
	}

	return fmt.Sprintf("%d metric points were left out of its curves, which keep %d a second and %d in all; "+
		"report less often, once per epoch say (all of them counted for the objective)", t.lost, int(t.limiter.Limit()), t.limit)
}
