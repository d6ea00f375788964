package sampling

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// Two shapes that come and go: each is known by its own activity, not by a half of
// the sum.
func TestApportioner_TellsShapesApart(t *testing.T) {
	t.Parallel()

	var a Apportioner

	truth := map[string]float64{"small": 0.02, "large": 0.5}
	shapes := map[string]string{"s1": "small", "s2": "small", "l1": "large"}
	at := time.Unix(0, 0)

	for second := range 60 {
		there := []string{"s1", "s2", "l1"}
		if second%20 < 10 { // the large one starts and ends
			there = there[:2]

			a.Leave(on("l1", "large"))
		}

		sum := 0.0
		for _, attempt := range there {
			sum += truth[shapes[attempt]]
		}

		at = at.Add(time.Second)

		for range 5 { // each attempt meets the same reading several times
			for _, attempt := range there {
				own := a.Divide(on(attempt, shapes[attempt]), GPUActivity{At: at, SM: sum}, nil)
				require.False(t, own.full)
			}
		}
	}

	own := a.Divide(on("s1", "small"), GPUActivity{At: at, SM: 0.54}, nil)
	require.InDelta(t, 0.02, own.parts[0], 0.005)

	own = a.Divide(on("l1", "large"), GPUActivity{At: at, SM: 0.54}, nil)
	require.InDelta(t, 0.5, own.parts[0], 0.01)

	for _, attempt := range []string{"s1", "s2", "l1"} {
		a.Leave(on(attempt, shapes[attempt]))
	}

	require.Empty(t, a.gpus)
}

// gpuWith is an Apportioner that has learnt what one attempt of each shape takes.
func gpuWith(shapes map[string]float64) (*Apportioner, func(sm float64) GPUActivity) {
	a, at := &Apportioner{}, time.Unix(0, 0)
	next := func(sm float64) GPUActivity {
		at = at.Add(time.Second)

		return GPUActivity{At: at, SM: sm}
	}

	for range 20 {
		a.Divide(on("stays", "idle"), next(0), nil)
	}

	for _, shape := range slices.Sorted(maps.Keys(shapes)) {
		for range 20 {
			reading := next(shapes[shape])
			a.Divide(on("stays", "idle"), GPUActivity{At: reading.At, SM: shapes[shape]}, nil)
			a.Divide(on("learns "+shape, shape), reading, nil)
		}

		a.Leave(on("learns "+shape, shape))
	}

	return a, next
}

// On a full GPU nobody becomes heavier than it is known to be, and what is not known
// has what the others leave.
func TestApportioner_AFullGPUKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()

	var alone Apportioner

	own := alone.Divide(on("a", "stream"), GPUActivity{At: time.Unix(1, 0), SM: 0.2, DRAM: 0.96, Tensor: 0.1}, nil)
	require.Equal(t, Part{parts: parts{0.2, 0.96, 0.1}, known: true}, own, "alone nobody slows it down")

	for name, tt := range map[string]struct {
		known map[string]float64
		there map[string]string  // shapes by attempt
		want  map[string]float64 // by attempt; none = nobody can tell
	}{
		"light beside heavy": {
			map[string]float64{"light": 0.02, "heavy": 0.85},
			map[string]string{"l1": "light", "l2": "light", "h1": "heavy", "h2": "heavy"},
			map[string]float64{"l1": 0.01, "l2": 0.01, "h1": 0.46, "h2": 0.46},
		},
		"heavy and never measured, beside light": {
			map[string]float64{"light": 0.02},
			map[string]string{"l1": "light", "l2": "light", "l3": "light", "n1": "new"},
			map[string]float64{"l1": 0.02, "l2": 0.02, "l3": 0.02, "n1": 0.89},
		},
		"light and never measured, beside heavy": {
			map[string]float64{"heavy": 0.8},
			map[string]string{"h1": "heavy", "h2": "heavy", "n1": "new"},
			map[string]float64{"h1": 0.475, "h2": 0.475, "n1": 0},
		},
		"two of one shape never measured": {
			map[string]float64{"light": 0.05},
			map[string]string{"l1": "light", "n1": "new", "n2": "new"},
			map[string]float64{"l1": 0.05, "n1": 0.45, "n2": 0.45},
		},
		"two shapes never measured": {map[string]float64{"light": 0.05}, map[string]string{"l1": "light", "n1": "new", "m1": "newer"}, map[string]float64{"l1": 0.05}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			a, next := gpuWith(tt.known)
			for range 3 {
				reading := next(0.95)
				for attempt, shape := range tt.there {
					a.Divide(on(attempt, shape), reading, nil)
				}
			}

			reading := next(0.95)

			for attempt, shape := range tt.there {
				own := a.Divide(on(attempt, shape), reading, nil)
				want, known := tt.want[attempt]
				require.Equal(t, known, own.known, attempt)

				if known {
					require.InDelta(t, want, own.parts[0], 0.02, attempt)
					require.True(t, own.full)
					require.LessOrEqual(t, own.parts[0], max(tt.known[shape], want)+0.005, attempt)
				}
			}
		})
	}
}

// Trials that come and go faster than shapes can be told apart: nobody can tell what is
// whose, which is not nothing.
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

// A shape that comes is not known by a reading from before it came.
func TestApportioner_AReadingFromBefore(t *testing.T) {
	t.Parallel()

	var a Apportioner

	at := time.Unix(0, 0)
	for second := range 10 {
		at = time.Unix(int64(second), 0)
		for i := range 10 {
			a.Divide(on(fmt.Sprint(i), "old"), GPUActivity{At: at, SM: 0.1}, nil)
		}
	}

	require.False(t, a.Divide(on("n", "new"), GPUActivity{At: at, SM: 0.1}, nil).known)

	at = at.Add(time.Second)
	require.False(t, a.Divide(on("n", "new"), GPUActivity{At: at, SM: 0.5}, nil).known, "the last reading was without it")

	for range 10 {
		at = at.Add(time.Second)
		a.Divide(on("n", "new"), GPUActivity{At: at, SM: 0.5}, nil)
	}

	own := a.Divide(on("n", "new"), GPUActivity{At: at, SM: 0.5}, nil)
	require.True(t, own.known)
	require.InDelta(t, 0.4, own.parts[0], 0.03)
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

// Of a full GPU nobody has more than it is known to take, but for attempts of one
// shape alone, and all together have no more than there is.
func TestApportioner_AFullGPUIsGivenOnce(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		g := &gpuParts{there: make(map[string]string), shapes: make(map[string]estimate)}
		shapes := rapid.IntRange(1, 4).Draw(t, "shapes")

		for i := range rapid.IntRange(2, 12).Draw(t, "attempts") {
			g.there[fmt.Sprint(i)] = fmt.Sprint(rapid.IntRange(1, shapes).Draw(t, "shape"))
		}

		for i := range shapes {
			if rapid.Bool().Draw(t, "known") {
				share := rapid.Float64Range(0, 1)
				g.shapes[fmt.Sprint(i+1)] = estimate{parts: parts{share.Draw(t, "SM"), share.Draw(t, "DRAM"), share.Draw(t, "tensor")}}
			}
		}

		whole := parts{rapid.Float64Range(0.9, 1).Draw(t, "SM"), rapid.Float64Range(0, 1).Draw(t, "DRAM"), 0}
		sum := parts{}

		for _, shape := range g.there {
			own := g.ofFull(whole, shape)
			known, estimated := g.shapes[shape]

			for i := range sum {
				require.GreaterOrEqual(t, own.parts[i], 0.0)

				sum[i] += own.parts[i]
				if estimated && len(g.counts()) > 1 {
					require.LessOrEqual(t, own.parts[i], known.parts[i])
				}
			}

			if !own.known {
				require.Equal(t, Part{}, own)
			}
		}

		for i := range sum {
			require.LessOrEqual(t, sum[i], whole[i]+1e-9)
		}
	})
}

// Whatever the readings, parts are no shares below 0, and those of attempts of one
// shape that are always there together add up to the reading.
func TestApportioner_PartsAddUp(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		var a Apportioner

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
				own := a.Divide(on(fmt.Sprint(i), "shape"), reading, nil)
				require.GreaterOrEqual(t, own.parts[0], 0.0)

				sum += own.parts[0]
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
