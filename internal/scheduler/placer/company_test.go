package placer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// paced is a measured pace of a shape, or template, on gpuHost.
func paced(mix mix, own string, mode berth.SharingMode, atOnce, samples int, seconds float64) berth.MixPace {
	return berth.MixPace{Mix: mix.key, Place: "NVIDIA H200, 1 of 1, 4 cores", At: time.Now(), Pace: berth.Pace{
		ShapeKey: own, Company: berth.Company{Mode: mode, AtOnce: atOnce}, Samples: samples, Mean: seconds,
	}}
}

// many are trials of one shape.
func many(n int, shape string) (waiting []berth.WaitingRequest) {
	for i := range n {
		waiting = append(waiting, onGPU(fmt.Sprintf("%s-%03d", shape, i), shape))
	}

	return waiting
}

// sharedBy is gpuHost with attempts of a shape.
func sharedBy(f *queue, mode berth.SharingMode, attempts int, shape string) {
	h := gpuHost()
	dev := &h.Devices[0]
	dev.Mode, dev.Attempts, dev.ReservedBytes, dev.ContextsReserved = mode, attempts, int64(attempts)*gib, attempts
	h.Attempts = attempts
	f.hosts, f.loaded = []berth.Host{h}, map[string][]berth.Loaded{"GPU-1": {{ShapeKey: shape}}}
}

var s1 = mixOf([]berth.Loaded{{ShapeKey: "s1"}})

// One trial that cannot have the better mode, in which the GPU is, does not make it run
// empty for the other one.
func TestRound_OneThatInsistsChangesNoMode(t *testing.T) {
	t.Parallel()

	apart := onGPU("one", "s1")
	apart.Apart = true

	alone := onGPU("one", "s1") // out of memory once more, and it has the GPU to itself in each mode
	alone.Resources.GPUMemory = 0
	alone.Last = &berth.LastOOM{Device: true, Count: 2, Max: 3, PeakBytes: gib, Demand: berth.Demand{DeviceBytes: gib, MemoryBytes: gib, Contexts: 1}}

	for name, c := range map[string]struct {
		one  berth.WaitingRequest
		mode berth.SharingMode
	}{"by MPS": {apart, berth.SharingMPS}, "by time slices": {alone, berth.SharingTimeSlicing}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, f := setup(t, append(many(20, "s1"), c.one)...)
			sharedBy(f, c.mode, 1, "s1")

			for _, mode := range []berth.SharingMode{berth.SharingMPS, berth.SharingTimeSlicing} {
				seconds := 12.0
				if mode == c.mode {
					seconds = 5
				}

				f.paces = append(f.paces, paced(s1, "s1", mode, 2, 30, seconds))
			}

			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, c.mode, f.advice["GPU-1"].Mode, f.advice["GPU-1"].Why)
			require.NotEmpty(t, f.placed, "there is room")
		})
	}
}

// Heavy shapes of a template do not come in the numbers that are good for its light ones.
func TestRound_HeavyShapesOfATemplate(t *testing.T) {
	t.Parallel()

	var waiting []berth.WaitingRequest

	known := map[string]berth.Footprints{}

	for i := range 24 {
		shape := fmt.Sprintf("heavy%d", i%5)
		waiting = append(waiting, onGPU(fmt.Sprintf("h%02d", i), shape))
		known[shape] = berth.Footprints{"NVIDIA H200 (MPS)": {
			Source: berth.FootprintFull, Samples: 3, DevicePeakBytes: gib / 2, MemoryPeakBytes: gib / 8,
			Duration: berth.Duration(30 * time.Minute), DeviceActivity: berth.DeviceActivity{SMMilli: 900},
		}}
	}

	light := func(shape string) berth.Loaded { return loadOf(shape, "t", known) }
	mix := mixOf([]berth.Loaded{light("a"), light("b"), light("c"), light("d")})

	p, f := setup(t, waiting...)
	f.use["s"] = berth.SweepUse{State: berth.SweepRunning, Template: "t"}
	f.known, f.hosts = known, []berth.Host{gpuHost()}
	f.hosts[0].CPUMilli = 64_000
	f.paces = []berth.MixPace{paced(mix, "t", berth.SharingMPS, 12, 40, 1), paced(mix, "t", berth.SharingMPS, 16, 40, 1)}

	for i := range f.paces {
		f.paces[i].Place = "NVIDIA H200, 1 of 1, 64 cores"
	}

	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.placed[0], 1)
}

// Of many GPUs that would change their mode a quarter drains: GPUs that already drain
// come first. A closed host counts neither way.
func TestRound_AQuarterRunsEmpty(t *testing.T) {
	t.Parallel()

	p, f := setup(t, many(100, "s1")...)
	sharedBy(f, berth.SharingMPS, 1, "s1")

	one, better := f.hosts[0], berth.Advice{Company: berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 2}}
	f.hosts = nil

	for i := range 10 {
		h := one
		h.ID = fmt.Sprintf("h%d", i)
		h.Devices = append([]berth.Device{}, one.Devices...)
		h.Devices[0].ID, h.Devices[0].HostID = fmt.Sprintf("GPU-%d", i), h.ID

		if i < 2 {
			h.State = berth.HostLost
		}

		if i >= 8 {
			h.Devices[0].Advice = better
		}

		f.hosts = append(f.hosts, h)
	}

	f.paces = []berth.MixPace{paced(s1, "s1", berth.SharingMPS, 2, 30, 10), paced(s1, "s1", berth.SharingTimeSlicing, 2, 30, 5)}
	require.NoError(t, p.Round(t.Context()))

	for i := 2; i < 8; i++ {
		require.Equal(t, berth.SharingMPS, f.advice[fmt.Sprintf("GPU-%d", i)].Mode, i)
	}

	for i := 8; i < 10; i++ {
		require.Equal(t, berth.SharingTimeSlicing, f.advice[fmt.Sprintf("GPU-%d", i)].Mode, i)
	}

	require.NotContains(t, f.advice, "GPU-0")
}

// A GPU that attempts share by time slices without need drains, from the first round on, for
// requests that can use MPS, where at least four would be there, and nothing that comes
// must have time slices. Once it is empty they are there by MPS.
func TestRound_AGPUComesBackToMPS(t *testing.T) {
	t.Parallel()

	apart := onGPU("one", "s1")
	apart.Apart = true

	for name, c := range map[string]struct {
		waiting  []berth.WaitingRequest
		attempts int
		change   func(f *queue)
		drains   bool
	}{
		"four would be there":     {many(3, "s1"), 1, func(*queue) {}, true},
		"few would":               {many(2, "s1"), 1, func(*queue) {}, false},
		"few may, by their limit": {many(9, "s1"), 1, func(f *queue) { f.use["s"] = berth.SweepUse{State: berth.SweepRunning, MaxParallel: 3, Running: 1} }, false},
		"one must share by turns": {append(many(9, "s1"), apart), 1, func(*queue) {}, false},
		"MPS is away":             {many(9, "s1"), 1, func(f *queue) { f.hosts[0].Devices[0].MPSProblem = "no daemon" }, false},
		"it was measured otherwise": {many(9, "s1"), 1, func(f *queue) {
			f.paces = append(f.paces, paced(s1, "s1", berth.SharingTimeSlicing, 2, 30, 5), paced(s1, "s1", berth.SharingMPS, 2, 30, 10))
		}, false},
		"it is empty": {many(3, "s1"), 0, func(*queue) {}, false},
	} {
		p, f := setup(t, c.waiting...)
		sharedBy(f, berth.SharingTimeSlicing, c.attempts, "s1")
		c.change(f)
		require.NoError(t, p.Round(t.Context()), name)
		require.Equal(t, c.drains, len(f.placed) == 0, name)

		if c.drains {
			require.Contains(t, f.reasons[0]["s1-000"][0].Reason, "it is to be shared by MPS once they have ended: nothing needs time slices any more")
		}

		if c.attempts == 0 {
			require.Equal(t, berth.DeviceClass("NVIDIA H200 (MPS)"), f.placed[0]["s1-000"].Class)
		}
	}
}

// Advice is for waiting requests: without any, no GPU keeps one.
func TestRound_ForgetsAdvice(t *testing.T) {
	t.Parallel()

	p, f := setup(t, many(3, "s1")...)
	f.hosts, f.paces = []berth.Host{gpuHost()}, []berth.MixPace{paced(s1, "s1", berth.SharingMPS, 2, 30, 10)}
	require.NoError(t, p.Round(t.Context()))
	require.NotEmpty(t, f.advice)

	f.waiting = nil
	require.NoError(t, p.Round(t.Context()))
	require.Empty(t, f.advice)

	f.advice = map[string]berth.Advice{"GPU-1": {}}
	require.NoError(t, p.Round(t.Context()))
	require.NotEmpty(t, f.advice, "once is enough")
}
