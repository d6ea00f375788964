package berth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
)

func TestEstimateEnd(t *testing.T) {
	t.Parallel()

	even := berth.TrialTimes{Ended: 10, Mean: 10 * time.Second, Lower: 9 * time.Second, Upper: 12 * time.Second}

	for name, tt := range map[string]struct {
		counts   berth.Counts
		times    berth.TrialTimes
		min, max time.Duration
		unknown  bool
	}{
		"nobody knows how many":   {counts: berth.Counts{Running: 2, Succeeded: 10}, times: even, unknown: true},
		"too few ended":           {counts: berth.Counts{Planned: 9, Running: 2, Succeeded: 2}, times: berth.TrialTimes{Ended: 2, Mean: time.Second}, unknown: true},
		"nothing runs":            {counts: berth.Counts{Planned: 20, Waiting: 10, Succeeded: 10}, times: even, unknown: true},
		"two waves and a part":    {counts: berth.Counts{Planned: 40, Running: 4, Succeeded: 24, Failed: 2}, times: even, min: 22500 * time.Millisecond, max: 48 * time.Second},
		"the last ones run":       {counts: berth.Counts{Planned: 12, Running: 2, Succeeded: 10}, times: even, min: 0, max: 12 * time.Second},
		"a few take very long":    {counts: berth.Counts{Planned: 20, Running: 5, Succeeded: 10}, times: berth.TrialTimes{Ended: 10, Mean: 30 * time.Second, Lower: time.Second, Upper: 2 * time.Second}, min: time.Second, max: time.Minute},
		"a few take no time":      {counts: berth.Counts{Planned: 20, Running: 5, Succeeded: 10}, times: berth.TrialTimes{Ended: 10, Mean: 5 * time.Second, Lower: 9 * time.Second, Upper: 9 * time.Second}, min: 5 * time.Second, max: 18 * time.Second},
		"more ended than planned": {counts: berth.Counts{Planned: 9, Running: 2, Succeeded: 10}, times: even, min: 0, max: 12 * time.Second},
	} {
		got, ok := berth.EstimateEnd(tt.counts, tt.times)
		require.Equal(t, !tt.unknown, ok, name)
		require.Equal(t, tt.min, got.Min, name)
		require.Equal(t, tt.max, got.Max, name)
	}

	got, _ := berth.EstimateEnd(berth.Counts{Planned: 40, Running: 4, Succeeded: 26}, berth.TrialTimes{Ended: 26, Mean: 90 * time.Second, Lower: 9400 * time.Millisecond, Upper: 2 * time.Minute})
	require.Equal(t, "10 to start and 4 that run at once; of the newest 26 that ended, half took 9.4s to 2m0s, the mean is 1m30s", got.Why)
}

// Packed as now, with each trial as long as one between the quartiles, the end is in the range.
func TestEstimateEnd_HoldsForTrialsBetweenTheQuartiles(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		lower := time.Duration(rapid.IntRange(1, 100).Draw(t, "lower")) * time.Second
		upper := lower + time.Duration(rapid.IntRange(0, 100).Draw(t, "spread"))*time.Second
		running := rapid.IntRange(1, 20).Draw(t, "running")
		left := rapid.IntRange(0, 200).Draw(t, "left")
		took := rapid.Int64Range(int64(lower), int64(upper))

		places := make([]time.Duration, running) // when each is free
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

		eta, ok := berth.EstimateEnd(berth.Counts{Planned: left + running, Running: running}, berth.TrialTimes{Ended: 3, Mean: lower, Lower: lower, Upper: upper})
		require.True(t, ok)
		require.GreaterOrEqual(t, end, eta.Min-time.Millisecond)
		require.LessOrEqual(t, end, eta.Max+time.Millisecond)
	})
}
