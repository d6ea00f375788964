package sampling

import (
	"math"
	"time"

	"github.com/berthml/berth"
)

// activityMean is the mean activity of an attempt, over the time that was measured.
type activityMean struct {
	alone, beside weighted      // on a GPU that had work to give, and on a full one
	total         time.Duration // that was measured, the runs before included
	unknown       time.Duration // in which nobody can tell what was the attempt's
	at            time.Time
}

type weighted struct {
	sum  parts // times seconds
	time time.Duration
}

// leastActive is how long an attempt must be measured on a GPU that has room before
// that says more than the time on a full one.
const leastActive = 2 * time.Second

// add counts what was the attempt's until a reading.
func (m *activityMean) add(own Part, at time.Time) {
	took := min(at.Sub(m.at), gapAfter) // what nobody measured counts for nothing
	if m.at.IsZero() {
		took = 0
	}

	m.at = at

	if !own.known {
		m.unknown += took

		return
	}

	w := &m.alone
	if own.full {
		w = &m.beside
	}

	w.time += took
	m.total += took

	for i := range own.parts {
		w.sum[i] += own.parts[i] * took.Seconds()
	}
}

// resume goes on from what an earlier Run measured.
func (m *activityMean) resume(u berth.Usage) {
	w := &m.alone
	if u.DeviceContended {
		w = &m.beside
	}

	w.time = time.Duration(u.DeviceActive)
	m.total, m.unknown = w.time, time.Duration(u.DeviceUnknown)

	for i, milli := range []int64{u.DeviceActivity.SMMilli, u.DeviceActivity.DRAMMilli, u.DeviceActivity.TensorMilli} {
		w.sum[i] = float64(milli) / berth.FullActivity * w.time.Seconds()
	}
}

// into says it in a usage, where SMs without a thousandth of work stand for what is
// not known: so what was measured has one at least.
func (m *activityMean) into(u *berth.Usage) {
	w := m.alone
	u.DeviceContended = w.time < leastActive && m.beside.time > 0

	if u.DeviceContended {
		w = m.beside
	}

	u.DeviceActive, u.DeviceUnknown, u.DeviceActivity = berth.Duration(m.total), berth.Duration(m.unknown), berth.DeviceActivity{}
	if w.time == 0 {
		return
	}

	milli := func(sum float64) int64 { return int64(math.Round(sum / w.time.Seconds() * berth.FullActivity)) }
	u.DeviceActivity = berth.DeviceActivity{SMMilli: max(milli(w.sum[0]), 1), DRAMMilli: milli(w.sum[1]), TensorMilli: milli(w.sum[2])}
}
