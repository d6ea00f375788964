package sampling

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
)

const (
	// gapAfter is how long nothing is measured before it counts as a gap. The
	// samples come every 200 ms; on a full machine a few in a row come late.
	gapAfter = 2 * time.Second
	// gapSamples is the same for a longer interval of sampling.
	gapSamples = 10
	// highWaterSlack is how far the kernel's high-water mark may be above the
	// measured peak and still prove that a gap hid no higher one: the least
	// margin of a reservation covers as much.
	highWaterSlack = 64 << 20
)

// Coverage tells which part of an attempt was measured.
type Coverage struct {
	StartedAt time.Time // of the container
	Every     time.Duration
}

// Seen notes that the container was looked at, or has ended, at this time. What
// lies between that and the last look is a gap when it is too long.
func (c Coverage) Seen(u *berth.Usage, at time.Time) {
	from := u.SeenUntil
	if from.IsZero() {
		from = c.StartedAt
	}

	if gap := at.Sub(from); gap > max(gapAfter, gapSamples*c.Every) {
		u.Unseen += berth.Duration(gap)
	}

	if at.After(from) {
		u.SeenUntil = at.UTC().Round(0) // without Go's monotonic clock: the next process compares it
	}
}

// CloseGaps forgets the gaps so far when the kernel proves that the peak was not
// in one of them. Its high-water mark counts page cache too, so a higher mark
// proves nothing.
func CloseGaps(u *berth.Usage, highWaterBytes int64) {
	if highWaterBytes > 0 && highWaterBytes <= u.MemoryPeakBytes+highWaterSlack {
		u.Unseen = 0
	}
}

// Ended closes the account at the exit of the container.
func (c Coverage) Ended(u *berth.Usage, at time.Time) {
	c.Seen(u, at)

	u.Unseen = min(u.Unseen, u.Wall)
	u.SeenUntil = time.Time{}
}

// GapNote says what was not measured of an attempt that could have taught the
// needs of its shape; empty when nothing is missing.
func GapNote(kind berth.FailureKind, u berth.Usage) string {
	switch kind {
	case berth.FailureOK, berth.FailureNoResult, berth.FailureNotFinite:
	default:
		return ""
	}

	if u.Unseen == 0 {
		return ""
	}

	return fmt.Sprintf("its memory was not measured for %s of %s, so another run has to measure its shape",
		time.Duration(u.Unseen).Round(time.Second), time.Duration(u.Wall).Round(time.Second))
}
