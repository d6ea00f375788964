package sampling

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

// Attempts of one shape have the same part each; of several shapes no part is known,
// as long as one reading has both.
func TestApportioner_DividesAmongOneShape(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		there   map[string]string // shapes by attempt
		reading GPUActivity
		want    Part // of each
	}{
		"alone":           {map[string]string{"a": "x"}, GPUActivity{SM: 0.2, DRAM: 0.96, Tensor: 0.1}, Part{parts: parts{0.2, 0.96, 0.1}, known: true}},
		"two of a shape":  {map[string]string{"a": "x", "b": "x"}, GPUActivity{SM: 0.5, DRAM: 0.25}, Part{parts: parts{0.25, 0.125}, known: true}},
		"on a full GPU":   {map[string]string{"a": "x", "b": "x"}, GPUActivity{SM: 0.5, DRAM: 1}, Part{parts: parts{0.25, 0.5}, known: true, full: true}},
		"of two shapes":   {map[string]string{"a": "x", "b": "y"}, GPUActivity{SM: 0.5}, Part{}},
		"three, one else": {map[string]string{"a": "x", "b": "x", "c": "y"}, GPUActivity{SM: 1}, Part{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var a Apportioner

			for second := range 4 {
				tt.reading.At = time.Unix(int64(second), 0)

				for attempt, shape := range tt.there {
					if own := a.Divide(on(attempt, shape), tt.reading, nil); second > 1 {
						require.Equal(t, tt.want, own, attempt)
					}
				}
			}

			for attempt, shape := range tt.there {
				a.Leave(on(attempt, shape))
			}

			require.Empty(t, a.gpus)
		})
	}
}

// Trials of other shapes come and go: nobody can tell what is whose, which is not nothing.
func TestApportioner_ShortTrials(t *testing.T) {
	t.Parallel()

	var (
		a    Apportioner
		mean activityMean
		u    berth.Usage
	)

	for second := range 15 {
		at := time.Unix(int64(second), 0)
		a.Divide(on(fmt.Sprint("b", second), "other"), GPUActivity{At: at, SM: 0.4}, nil)
		mean.add(a.Divide(on("a", "shape"), GPUActivity{At: at, SM: 0.4}, nil), at)
		a.Leave(on(fmt.Sprint("b", second), "other"))
	}

	mean.into(&u)
	require.Equal(t, berth.Usage{DeviceUnknown: berth.Duration(14 * time.Second)}, u)

	u.Wall, u.Samples, u.DeviceSamples = berth.Duration(20*time.Second), 1, 1
	known := berth.Footprint{Samples: 1, DeviceActivity: berth.DeviceActivity{SMMilli: 300}}
	f, _ := memory.Observe(&known, "shape", berth.FootprintFull, berth.FailureOK, u, berth.Demand{DeviceBytes: 1})
	require.Equal(t, int64(300), f.DeviceActivity.SMMilli, "the footprint forgets nothing")
}

// What a program outside Berth does on a GPU is no attempt's, whether one is there or
// several, and teaches nothing of their shapes; what containers of Berth do is theirs.
func TestApportioner_AProgramOutsideBerth(t *testing.T) {
	t.Parallel()

	for _, attempts := range []int{1, 3} {
		a, at := Apportioner{}, time.Unix(0, 0)

		look := func(sm float64, beside ...string) (own Part) {
			at = at.Add(time.Second)

			for range 5 {
				for i := range attempts {
					own = a.Divide(on(fmt.Sprint(i), "shape"), GPUActivity{At: at, SM: sm}, beside)
				}
			}

			return own
		}

		for i := range attempts {
			a.Watch("GPU", "box "+fmt.Sprint(i))
		}

		a.Watch("GPU", "box starts")

		truth := 0.1 * float64(attempts)
		ours := []string{"box 0", "box starts"}

		for range 10 {
			look(truth, ours...)
		}

		require.True(t, look(truth, ours...).known)
		require.InDelta(t, 0.1, look(truth, ours...).parts[0], 0.01)

		for range 30 {
			require.Equal(t, Part{}, look(0.8, "box 0", ""), "of no container")
			require.Equal(t, Part{}, look(0.8, "another"), "of a container of nobody")
		}

		require.Equal(t, Part{}, look(0.8, ours...), "it was there in a part of that second")
		require.InDelta(t, 0.1, look(truth, ours...).parts[0], 0.01, "at once as before")
	}
}

// Company is who is on the GPU, and who was a moment ago.
func TestApportioner_Company(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var a Apportioner

		a.Watch("GPU", "box a")
		require.False(t, a.Company("GPU", "box a"))

		a.Watch("GPU-2", "box c")
		require.False(t, a.Company("GPU", "box a"))

		a.Watch("GPU", "box b")
		require.True(t, a.Company("GPU", "box a"))

		a.Unwatch(on("b", "shape"))
		require.True(t, a.Company("GPU", "box a"))

		time.Sleep(departedFor)
		require.False(t, a.Company("GPU", "box a"))

		a.Unwatch(on("a", "shape"))
		require.Len(t, a.watched, 2, "what ended long ago is forgotten")
	})
}

func on(attempt, shape string) Tenant {
	return Tenant{DeviceID: "GPU", AttemptID: attempt, ContainerID: "box " + attempt, Shape: shape}
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
		m.add(Part{parts: parts{sm, sm / 2, 0}, known: true, full: full}, at)
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

	unknown := usage()
	at = at.Add(time.Second)
	m.add(Part{}, at)
	unknown.DeviceUnknown = berth.Duration(time.Second)
	require.Equal(t, unknown, usage(), "nobody can tell what it did in that second")

	before := usage()
	m = activityMean{}
	m.resume(before)
	require.Equal(t, before, usage())
}
