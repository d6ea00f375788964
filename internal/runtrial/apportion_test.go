package runtrial

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
)

// Two shapes that come and go: each is known by its own activity, not by a half of
// the sum.
func TestApportioner_TellsShapesApart(t *testing.T) {
	t.Parallel()

	var a apportioner

	truth := map[string]float64{"small": 0.02, "large": 0.5}
	shapes := map[string]string{"s1": "small", "s2": "small", "l1": "large"}
	at := time.Unix(0, 0)

	for second := range 60 {
		there := []string{"s1", "s2", "l1"}
		if second%20 < 10 { // the large one starts and ends
			there = there[:2]

			a.leave("GPU", "l1")
		}

		sum := 0.0
		for _, attempt := range there {
			sum += truth[shapes[attempt]]
		}

		at = at.Add(time.Second)

		for range 5 { // each attempt meets the same reading several times
			for _, attempt := range there {
				_, full := a.divide("GPU", attempt, shapes[attempt], GPUActivity{At: at, SM: sum})
				require.False(t, full)
			}
		}
	}

	own, _ := a.divide("GPU", "s1", "small", GPUActivity{At: at, SM: 0.54})
	require.InDelta(t, 0.02, own[0], 0.005)

	own, _ = a.divide("GPU", "l1", "large", GPUActivity{At: at, SM: 0.54})
	require.InDelta(t, 0.5, own[0], 0.01)

	for _, attempt := range []string{"s1", "s2", "l1"} {
		a.leave("GPU", attempt)
	}

	require.Empty(t, a.gpus)
}

func TestApportioner_AFullGPU(t *testing.T) {
	t.Parallel()

	var a apportioner

	full := GPUActivity{At: time.Unix(1, 0), SM: 0.2, DRAM: 0.96, Tensor: 0.1}
	own, contended := a.divide("GPU", "a", "stream", full)
	require.Equal(t, parts{0.2, 0.96, 0.1}, own)
	require.False(t, contended, "alone nobody slows it down")

	own, contended = a.divide("GPU", "b", "stream", full)
	require.True(t, contended)
	require.InDeltaSlice(t, []float64{0.1, 0.48, 0.05}, own[:], 1e-9)
}

// Whatever the readings, parts are no shares below 0, and those of attempts of one
// shape that are always there together add up to the reading.
func TestApportioner_PartsAddUp(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		var a apportioner

		attempts := rapid.IntRange(1, 20).Draw(t, "attempts")
		steady := rapid.Float64Range(0, 0.89).Draw(t, "steady")
		sum := 0.0

		for second := range 30 {
			reading := GPUActivity{At: time.Unix(int64(second+1), 0), SM: steady}
			if second < 10 {
				reading.SM = rapid.Float64Range(0, 1).Draw(t, "SM")
			}

			sum = 0

			for i := range attempts {
				own, _ := a.divide("GPU", fmt.Sprint(i), "shape", reading)
				require.GreaterOrEqual(t, own[0], 0.0)

				sum += own[0]
			}
		}

		require.InDelta(t, steady, sum, 0.02)
	})
}

func TestActivityMean(t *testing.T) {
	t.Parallel()

	var m activityMean

	at := time.Unix(100, 0)
	usage := func() (u berth.Usage) {
		m.into(&u)

		return u
	}
	add := func(after time.Duration, sm float64, full bool) {
		at = at.Add(after)
		m.add(parts{sm, sm / 2, 0}, full, at)
	}

	require.Zero(t, usage())
	add(0, 0.9, false) // of the time before nothing is known
	require.Zero(t, usage())

	add(time.Second, 0.4, true)
	require.Equal(t, berth.Usage{
		DeviceActivity: berth.DeviceActivity{SMMilli: 400, DRAMMilli: 200}, DeviceActive: berth.Duration(time.Second), DeviceContended: true,
	}, usage())

	add(time.Second, 0.1, false)
	require.True(t, usage().DeviceContended, "one second says little")
	add(time.Second, 0.2, false)
	require.Equal(t, berth.Usage{
		DeviceActivity: berth.DeviceActivity{SMMilli: 150, DRAMMilli: 75}, DeviceActive: berth.Duration(3 * time.Second),
	}, usage())

	add(time.Hour, 0.2, false)
	require.Equal(t, berth.Duration(3*time.Second+gapAfter), usage().DeviceActive, "nobody measured that hour")

	before := usage()
	m = activityMean{}
	m.resume(before)
	require.Equal(t, before, usage())
}
