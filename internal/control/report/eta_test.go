package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/report"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

func TestEstimateEnd(t *testing.T) {
	t.Parallel()

	const (
		days    = 48 * time.Hour
		century = 100 * 365 * 24 * time.Hour
	)

	even := berth.TrialTimes{Ended: 10, Mean: 10 * time.Second, Lower: 9 * time.Second, Upper: 12 * time.Second}

	for name, tt := range map[string]struct {
		counts      berth.Counts
		maxParallel int
		times       berth.TrialTimes
		min, max    time.Duration
		unknown     bool
	}{
		"nobody knows how many":    {counts: berth.Counts{Running: 2, Succeeded: 10}, times: even, unknown: true},
		"too few ended":            {counts: berth.Counts{Planned: 9, Running: 2, Succeeded: 2}, times: berth.TrialTimes{Ended: 2, Mean: time.Second}, unknown: true},
		"nothing runs":             {counts: berth.Counts{Planned: 20, Waiting: 10, Succeeded: 10}, times: even, unknown: true},
		"two waves and a part":     {counts: berth.Counts{Planned: 40, Running: 4, Succeeded: 24, Failed: 2}, times: even, min: 22500 * time.Millisecond, max: 48 * time.Second},
		"the last ones run":        {counts: berth.Counts{Planned: 12, Running: 2, Succeeded: 10}, times: even, min: 0, max: 12 * time.Second},
		"a few take very long":     {counts: berth.Counts{Planned: 20, Running: 5, Succeeded: 10}, times: berth.TrialTimes{Ended: 10, Mean: 30 * time.Second, Lower: time.Second, Upper: 2 * time.Second}, min: time.Second, max: time.Minute},
		"a few take no time":       {counts: berth.Counts{Planned: 20, Running: 5, Succeeded: 10}, times: berth.TrialTimes{Ended: 10, Mean: 5 * time.Second, Lower: 9 * time.Second, Upper: 9 * time.Second}, min: 5 * time.Second, max: 18 * time.Second},
		"more ended than planned":  {counts: berth.Counts{Planned: 9, Running: 2, Succeeded: 10}, times: even, min: 0, max: 12 * time.Second},
		"max_parallel was lowered": {counts: berth.Counts{Planned: 144, Running: 24, Succeeded: 20}, maxParallel: 1, times: even, min: 900 * time.Second, max: 101 * 12 * time.Second},
		"max_parallel was raised":  {counts: berth.Counts{Planned: 40, Running: 4, Succeeded: 26}, maxParallel: 8, times: even, min: 22500 * time.Millisecond, max: 48 * time.Second},
		"the last one is long":     {counts: berth.Counts{Planned: 12, Running: 1, Succeeded: 11}, times: underway(even, 2*time.Hour), min: 0, max: 2 * time.Hour},
		"one of the next waves is": {counts: berth.Counts{Planned: 40, Running: 4, Succeeded: 26}, times: underway(even, 20*time.Second), min: 22500 * time.Millisecond, max: 48 * time.Second},
		"more than a Duration has": {counts: berth.Counts{Planned: 100_000, Running: 1, Succeeded: 3}, times: berth.TrialTimes{Ended: 3, Mean: days, Lower: days, Upper: days}, min: century, max: century},
	} {
		got, ok := report.EstimateEnd(berth.Sweep{Counts: tt.counts, MaxParallel: tt.maxParallel}, tt.times, time.Now())
		require.Equal(t, !tt.unknown, ok, name)
		require.Equal(t, tt.min, got.Min, name)
		require.Equal(t, tt.max, got.Max, name)
	}
}

// underway is how long trials took, with the oldest that runs.
func underway(t berth.TrialTimes, oldest time.Duration) berth.TrialTimes {
	t.Oldest = oldest

	return t
}

func TestEstimateEnd_SaysItsFigures(t *testing.T) {
	t.Parallel()

	s := berth.Sweep{Counts: berth.Counts{Planned: 40, Running: 4, Succeeded: 26}}
	times := berth.TrialTimes{Ended: 26, Mean: 90 * time.Second, Lower: 9400 * time.Millisecond, Upper: 2 * time.Minute}

	got, _ := report.EstimateEnd(s, times, time.Now())
	require.Equal(t, "10 to start and 4 that run at once; of the newest 26 that ended, half took 9.4s to 2m0s, the mean is 1m30s", got.Why)

	s.MaxParallel, times.Oldest = 3, time.Hour
	got, _ = report.EstimateEnd(s, times, time.Now())
	require.Equal(t, "10 to start and 4 that run, 3 at once by max_parallel; of the newest 26 that ended, half took 9.4s to 2m0s, the mean is 1m30s; one has run for 1h0m0s", got.Why)
}

// limits.max_duration ends the sweep. Pauses do not count for it, and they are not known here.
func TestEstimateEnd_KeepsToMaxDuration(t *testing.T) {
	t.Parallel()

	now := time.Now()
	even := berth.TrialTimes{Ended: 20, Mean: 10 * time.Second, Lower: 9 * time.Second, Upper: 12 * time.Second}

	for name, tt := range map[string]struct {
		ran      time.Duration // since the start
		times    berth.TrialTimes
		min, max time.Duration
		why      string
	}{
		"a minute is left":    {ran: 9 * time.Minute, times: even, min: time.Minute, max: 10*time.Minute + 12*time.Second, why: "limits.max_duration leaves 1m0s"},
		"it was paused":       {ran: time.Hour, times: even, min: 0, max: 10*time.Minute + 12*time.Second, why: "limits.max_duration leaves 0s"},
		"and one is long":     {ran: 9 * time.Minute, times: underway(even, 8*time.Minute), min: time.Minute, max: 18 * time.Minute, why: "limits.max_duration leaves 1m0s"},
		"it ends long before": {ran: 5 * time.Minute, times: berth.TrialTimes{Ended: 20, Mean: 10 * time.Millisecond}, min: 0, max: 25 * time.Second},
	} {
		eta, ok := report.EstimateEnd(berth.Sweep{
			Counts: berth.Counts{Planned: 10_020, Running: 4, Succeeded: 20}, StartedAt: new(now.Add(-tt.ran)),
			Spec: berth.Spec{Limits: berth.Limits{MaxDuration: berth.Duration(10 * time.Minute)}},
		}, tt.times, now)
		require.True(t, ok, name)
		require.Equal(t, tt.min, eta.Min, name)
		require.Equal(t, tt.max, eta.Max.Round(time.Second), name)
		require.Contains(t, eta.Why, tt.why, name)
		require.Equal(t, tt.why != "", strings.Contains(eta.Why, "max_duration"), name)
	}
}

// Packed as now, with each trial as long as one between the quartiles, the end is in the range.
func TestEstimateEnd_HoldsForTrialsBetweenTheQuartiles(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		lower := time.Duration(rapid.IntRange(1, 100).Draw(t, "lower")) * time.Second
		upper := lower + time.Duration(rapid.IntRange(0, 100).Draw(t, "spread"))*time.Second
		underway := rapid.IntRange(1, 20).Draw(t, "underway")
		left := rapid.IntRange(0, 200).Draw(t, "left")
		took := rapid.Int64Range(int64(lower), int64(upper))

		places := make([]time.Duration, underway) // when each is free
		for i := range places {
			places[i] = time.Duration(rapid.Int64Range(0, int64(upper)).Draw(t, "rest"))
		}

		for range left {
			first := 0
			for i := range places {
				if places[i] < places[first] {
					first = i
				}
			}

			places[first] += time.Duration(took.Draw(t, "took"))
		}

		end := time.Duration(0)
		for _, at := range places {
			end = max(end, at)
		}

		eta, ok := report.EstimateEnd(berth.Sweep{Counts: berth.Counts{Planned: left + underway, Running: underway}},
			berth.TrialTimes{Ended: 3, Mean: lower, Lower: lower, Upper: upper}, time.Now())
		require.True(t, ok)
		require.GreaterOrEqual(t, end, eta.Min-time.Millisecond)
		require.LessOrEqual(t, end, eta.Max+time.Millisecond)
	})
}
