package memory_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

func sibling(peak, device int64, at ...float64) memory.Sibling {
	return memory.Sibling{At: at, Footprint: berth.Footprint{
		Class: berth.ClassCPU, Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: peak * mib, DevicePeakBytes: device * mib, CPUMilli: 900, Duration: 7,
	}}
}

// network is the memory of a training in MiB: what TensorFlow needs, parameters and
// activations.
func network(batch, width float64) int64 { return int64(280 + width*width/1000 + batch*width/20) }

func predicted(t *testing.T, at []float64, siblings ...memory.Sibling) berth.Footprint {
	t.Helper()

	f, ok := memory.NewFamily(siblings).Predict("key", at)
	require.True(t, ok)

	return f
}

// Four corners say what all shapes between them need.
func TestPredict_FromCorners(t *testing.T) {
	t.Parallel()

	var corners []memory.Sibling

	for _, batch := range []float64{16, 128} {
		for _, width := range []float64{32, 512} {
			corners = append(corners, sibling(network(batch, width), 0, batch, width))
		}
	}

	var slack []float64

	for _, batch := range []float64{16, 32, 64, 96, 128} {
		for _, width := range []float64{32, 64, 128, 256, 384, 512} {
			f := predicted(t, []float64{batch, width}, corners...)
			need := network(batch, width) * mib
			require.GreaterOrEqual(t, f.MemoryPeakBytes, need, "batch %g, width %g", batch, width)
			require.Zero(t, f.DevicePeakBytes)

			slack = append(slack, float64(f.MemoryPeakBytes)/float64(need)-1)
		}
	}

	slices.Sort(slack)
	require.Less(t, slack[len(slack)/2], 0.2)

	f := predicted(t, []float64{120, 500}, corners...)
	require.Equal(t, berth.Footprint{
		ShapeKey: "key", Class: berth.ClassCPU, Source: berth.FootprintPredicted, MemoryPeakBytes: f.MemoryPeakBytes, CPUMilli: 900, Duration: 7,
	}, f)
}

// The more siblings are measured, the more their spread decides the margin.
func TestPredict_LearnsTheSpread(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(7, 7))

	var siblings []memory.Sibling

	below := 0

	for i := range 120 {
		at := []float64{16 + 112*random.Float64(), 32 + 480*random.Float64()}
		need := network(at[0], at[1]) * (95 + random.Int64N(11)) / 100

		if i >= 60 {
			if f, ok := memory.NewFamily(siblings).Predict("key", at); ok && f.MemoryPeakBytes < need*mib {
				below++
			}
		}

		siblings = append(siblings, sibling(need, 0, at...))
	}

	require.LessOrEqual(t, below, 3, "of 60")
}

func TestPredict_Bounds(t *testing.T) {
	t.Parallel()

	_, ok := memory.NewFamily(nil).Predict("key", []float64{2})
	require.False(t, ok, "nothing is measured")

	_, ok = memory.NewFamily([]memory.Sibling{sibling(100, 0, 2)}).Predict("key", []float64{2})
	require.False(t, ok, "one is too few")

	pair := []memory.Sibling{sibling(300, 0, 16, 32), sibling(900, 0, 64, 64)}

	_, ok = memory.NewFamily(pair).Predict("key", []float64{65, 64})
	require.False(t, ok, "outside")

	_, ok = memory.NewFamily(pair).Predict("key", []float64{16, 31})
	require.False(t, ok, "outside")

	f := predicted(t, []float64{32, 48}, pair...)
	require.Equal(t, int64(945*mib), f.MemoryPeakBytes, "two points fit no plane: no more than the larger one, and 5 %")

	_, ok = memory.NewFamily([]memory.Sibling{sibling(300, 0, 16, 64), sibling(900, 0, 64, 32)}).Predict("key", []float64{32, 48})
	require.False(t, ok, "neither is as large in both numbers")

	// A number that needs less memory when it is larger: nothing but the fit bounds the others.
	shards := []memory.Sibling{sibling(900, 0, 1), sibling(500, 0, 2), sibling(300, 0, 3)}
	f = predicted(t, []float64{2.5}, shards...)
	require.Greater(t, f.MemoryPeakBytes, int64(300*mib))

	// Of a number that never differed nothing is known elsewhere.
	same := []memory.Sibling{sibling(300, 0, 16, 5), sibling(400, 0, 64, 5)}
	require.Positive(t, predicted(t, []float64{32, 5}, same...).MemoryPeakBytes)

	_, ok = memory.NewFamily(same).Predict("key", []float64{32, 6})
	require.False(t, ok)
}

// A GPU's memory rises in steps: the prediction is never below what a smaller sibling needs,
// nor above what a larger one does.
func TestPredict_OfAGPU(t *testing.T) {
	t.Parallel()

	step := func(batch float64) int64 {
		region := int64(256)
		for region < int64(10*batch) {
			region *= 2
		}

		return 400 + region
	}

	siblings := []memory.Sibling{sibling(300, step(16), 16), sibling(300, step(64), 64), sibling(300, step(128), 128)}
	for _, batch := range []float64{16, 20, 40, 60, 80, 100, 128} {
		f := predicted(t, []float64{batch}, siblings...)
		require.GreaterOrEqual(t, f.DevicePeakBytes, step(16)*mib)
		require.LessOrEqual(t, f.DevicePeakBytes, step(128)*mib*105/100)
	}
}

// Predictions are bounded by the siblings, and the same in any order of these.
func TestPredict_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 4).Draw(t, "dims")
		grid := rapid.SliceOfN(rapid.Float64Range(1, 8), dims, dims)
		slopes := rapid.SliceOfN(rapid.Float64Range(0, 50), dims, dims).Draw(t, "slopes")
		need := func(at []float64) int64 {
			sum := 200.0
			for j, x := range at {
				sum += slopes[j] * x
			}

			return int64(sum)
		}

		var siblings []memory.Sibling
		for _, at := range rapid.SliceOfN(grid, 2, 30).Draw(t, "siblings") {
			siblings = append(siblings, sibling(need(at), 0, at...))
		}

		at := grid.Draw(t, "at")
		f, ok := memory.NewFamily(siblings).Predict("key", at)
		again, okAgain := memory.NewFamily(reversed(siblings)).Predict("key", at)
		require.Equal(t, ok, okAgain)

		if ok {
			require.InEpsilon(t, f.MemoryPeakBytes, again.MemoryPeakBytes, 1e-6)
			require.GreaterOrEqual(t, float64(f.MemoryPeakBytes), 0.98*float64(need(at)*mib), "of a linear need")
		}
	})
}

// A measurement takes the place of a prediction; an attempt that teaches nothing leaves it.
func TestObserve_AfterAPrediction(t *testing.T) {
	t.Parallel()

	prior := berth.Footprint{ShapeKey: "key", Source: berth.FootprintPredicted, MemoryPeakBytes: 500 * mib, CPUMilli: 800}
	reserved := berth.Demand{MemoryBytes: 576 * mib}
	require.True(t, memory.Known(&prior))
	require.True(t, memory.Predicted(berth.Footprints{berth.ClassCPU: prior}))
	require.Equal(t, int64(576*mib), memory.Reserve(prior))

	f, ok := memory.Observe(&prior, "key", berth.FootprintFull, berth.FailureOK, usage(300*mib, 60, 900), reserved)
	require.True(t, ok)
	require.Equal(t, berth.FootprintFull, f.Source)
	require.Equal(t, int64(300*mib), f.MemoryPeakBytes)
	require.False(t, memory.Predicted(berth.Footprints{berth.ClassCPU: f}))

	f, ok = memory.Observe(&prior, "key", berth.FootprintFull, berth.FailureUserError, usage(300*mib, 60, 900), reserved)
	require.True(t, ok)
	require.Equal(t, prior, f)

	ran := usage(570*mib, 60, 900)
	ran.OOMKills = 1
	f, ok = memory.Observe(&prior, "key", berth.FootprintFull, berth.FailureHostOOM, ran, reserved)
	require.True(t, ok)
	require.Equal(t, berth.FootprintRaised, f.Source)
	require.Equal(t, reserved.MemoryBytes, f.MemoryFloorBytes)

	f = memory.ObserveRunning(&prior, "key", usage(600*mib, 60, 900))
	require.Equal(t, berth.FootprintPredicted, f.Source)
	require.Equal(t, int64(600*mib), f.MemoryPeakBytes)
}

func reversed(siblings []memory.Sibling) []memory.Sibling {
	out := slices.Clone(siblings)
	slices.Reverse(out)

	return out
}

// Peaks of 16 shapes on one H200 (docs/measurements/nvidia-h200-2026-11-28.md), in the order in which
// they ran, four at once: batch, filters, MiB of the host and of the GPU.
var onH200 = [][4]int64{
	{32, 16, 905, 744},
	{256, 16, 935, 1128},
	{32, 128, 977, 1138},
	{256, 128, 1015, 2674},
	{256, 32, 936, 1132},
	{64, 128, 1003, 1650},
	{128, 128, 989, 1650},
	{128, 64, 937, 1134},
	{128, 32, 932, 1132},
	{64, 16, 914, 744},
	{64, 64, 947, 1134},
	{32, 32, 914, 876},
	{128, 16, 904, 872},
	{64, 32, 925, 876},
	{32, 64, 919, 876},
	{256, 64, 954, 1646},
}

// What is measured between the corners of a real card's steps makes predictions no worse: a
// corner that the others do not span says nothing of the margin.
func TestPredict_OfARealGPU(t *testing.T) {
	t.Parallel()

	const corners, atOnce = 4, 4

	var (
		siblings []memory.Sibling
		slack    []float64
	)

	for i, shape := range onH200 {
		at := []float64{float64(shape[0]), float64(shape[1])}

		if i >= corners {
			f := predicted(t, at, siblings[:max(corners, i-atOnce+1)]...)
			require.GreaterOrEqual(t, f.MemoryPeakBytes, shape[2]*mib, "the host, at %v", at)
			require.GreaterOrEqual(t, f.DevicePeakBytes, shape[3]*mib, "the GPU, at %v", at)

			slack = append(slack, float64(f.MemoryPeakBytes+f.DevicePeakBytes)/float64((shape[2]+shape[3])*mib)-1)
		}

		siblings = append(siblings, sibling(shape[2], shape[3], at...))
	}

	slices.Sort(slack)
	require.Less(t, slack[len(slack)/2], 0.2)
}
