package berth

import "time"

// leastEnded is how many trials must have ended before they say how long others take:
// fewer have no quartiles.
const leastEnded = 3

// TrialTimes is how long the newest trials of a sweep took that ended and were not canceled,
// from the first start to the end without waits between attempts, such as a pause, and how
// long the oldest attempt has run.
type TrialTimes struct {
	Ended  int           // how many these are, at most RecentTrials
	Mean   time.Duration // of all trials
	Lower  time.Duration // quartile: a quarter of the trials took at most this long
	Median time.Duration // half of the trials took at most this long
	Upper  time.Duration // three quarters did
	Oldest time.Duration // since the oldest attempt that runs got its place; 0 = none runs
}

// Known reports whether enough trials have ended to say how long others take.
func (t TrialTimes) Known() bool { return t.Ended >= leastEnded }

// RecentTrials is how many trials TrialTimes looks at: the newest, because a trial's
// neighbours decide how long it takes, and they change while a sweep runs.
const RecentTrials = 200

// longestDuration bounds DurationOf, with room to add to it.
const longestDuration = 100 * 365 * 24 * time.Hour

// DurationOf is this many nanoseconds, and a hundred years at most: the product of a
// duration and a count can be more than a Duration holds.
func DurationOf(nanoseconds float64) time.Duration {
	return time.Duration(min(nanoseconds, float64(longestDuration)))
}
