package placer

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// onGPU is a trial of a shape that needs a GiB of a GPU.
func onGPU(id, shape string) berth.WaitingRequest {
	w := request(id, gib)
	w.ShapeKey, w.Resources = shape, berth.Resources{Device: berth.DeviceGPU, GPUMemory: gib, Memory: gib / 8}

	return w
}

// gpuHost is a host of 4 cores and one GPU that can be shared by MPS.
func gpuHost() berth.Host {
	return berth.Host{
		ID: "h", Name: "host", State: berth.HostReady, CPUMilli: 4000, MemoryBytes: 64 * gib, MemoryFreeBytes: 64 * gib,
		Devices: []berth.Device{{
			ID: "GPU-1", HostID: "h", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 64 * gib, FreeBytes: 64 * gib, MaxContexts: 48, MPSContexts: 44,
		}},
	}
}

// each changes all that waits.
func each(f *queue, edit func(*berth.WaitingRequest)) {
	f.waiting = slices.Clone(f.waiting)
	for i := range f.waiting {
		edit(&f.waiting[i])
	}
}

// The placer does not try more attempts than the GPU's memory, its clients or the
// sweeps' own limits allow: that number could never be measured, and the other mode
// would wait for it.
func TestRound_TriesNoMoreThanThereCanBe(t *testing.T) {
	t.Parallel()

	var waiting []berth.WaitingRequest
	for i := range 30 {
		waiting = append(waiting, onGPU(string(rune('a'+i)), "s1"))
	}

	p, f := setup(t, waiting...)
	f.hosts = []berth.Host{gpuHost()}
	require.NoError(t, p.Round(t.Context()))

	mix := f.placed[0]["a"].Mix.Key

	for name, limit := range map[string]func(f *queue){
		"memory":   func(f *queue) { f.hosts[0].Devices[0].HeadroomBytes = 61 * gib },
		"clients":  func(f *queue) { f.hosts[0].Devices[0].MPSContexts, f.hosts[0].Devices[0].MaxContexts = 3, 3 },
		"the host": func(f *queue) { f.hosts[0].Devices[0].MaxAttempts = 3 },
		"its sweep": func(f *queue) {
			f.use = map[string]berth.SweepUse{waiting[0].SweepID: {MaxParallel: 3, State: berth.SweepRunning}}
		},
		"its cores":      func(f *queue) { each(f, func(w *berth.WaitingRequest) { w.Resources.CPUs = 1300 }) },
		"host memory":    func(f *queue) { each(f, func(w *berth.WaitingRequest) { w.Resources.Memory = 20 * gib }) },
		"the host's own": func(f *queue) { f.hosts[0].MaxAttempts = 3 },
		"what others hold": func(f *queue) {
			f.hosts[0].Devices[0].FreeBytes = 3 * gib
		},
		"a paused sweep has smaller ones": func(f *queue) {
			each(f, func(w *berth.WaitingRequest) { w.Resources.GPUMemory = 20 * gib })

			paused := onGPU("paused", "s1")
			paused.SweepID, f.use["paused"] = "paused", berth.SweepUse{State: berth.SweepPaused}
			f.waiting = append(f.waiting, paused)
		},
		"nothing else": func(*queue) {},
	} {
		p, f := setup(t, waiting...)
		f.hosts = []berth.Host{gpuHost()}
		f.paces = []berth.MixPace{{Mix: mix, Place: "NVIDIA H200, 1 of 1, 4 cores", Pace: berth.Pace{
			ShapeKey: "s1", Company: berth.Company{Mode: berth.SharingMPS, AtOnce: 3}, Samples: 30, Mean: 10,
		}}}
		limit(f)
		require.NoError(t, p.Round(t.Context()))

		want := 2 // fewer are tried instead
		if name == "nothing else" {
			want = 4
		}

		require.Equal(t, berth.Company{Mode: berth.SharingMPS, AtOnce: want}, f.advice["GPU-1"].Company, name)
	}
}

// Measurement decides how many share a GPU: more than their cores would allow,
// and no more than that.
func TestRound_TakesAsManyAsDoMost(t *testing.T) {
	t.Parallel()

	var waiting []berth.WaitingRequest
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "i", "j", "k", "l", "m", "n", "o"} {
		waiting = append(waiting, onGPU(id, "s1"))
	}

	p, f := setup(t, waiting...)
	f.hosts = []berth.Host{gpuHost()}
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.placed[0], 6, "two thirds of a core each")
	require.Empty(t, f.advice)

	mix := f.placed[0]["a"].Mix
	require.Equal(t, "s1", mix.Own)
	require.Len(t, mix.Key, 64)

	pace := func(atOnce int, seconds float64) berth.MixPace {
		return berth.MixPace{Mix: mix.Key, Place: "NVIDIA H200, 1 of 1, 4 cores", Pace: berth.Pace{
			ShapeKey: "s1", Company: berth.Company{Mode: berth.SharingMPS, AtOnce: atOnce}, Samples: 30, Mean: seconds,
		}}
	}

	p, f = setup(t, waiting...)
	f.hosts = []berth.Host{gpuHost()}
	f.paces = []berth.MixPace{pace(6, 10), pace(8, 8), pace(12, 6), pace(16, 5.9)}
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.placed[0], 12)
	require.Equal(t, berth.Advice{
		Company: berth.Company{Mode: berth.SharingMPS, AtOnce: 12}, Capped: true,
		Why: "12 by MPS; measured: 12 by MPS 100 % (30 attempts), 6 by MPS 60 % (30 attempts), 8 by MPS 75 % (30 attempts), " +
			"16 by MPS 102 % (30 attempts)",
	}, f.advice["GPU-1"])
	require.Equal(t, "host host, GPU GPU-1: 12 attempts share it, as many as it is to have now: "+f.advice["GPU-1"].Why, f.reasons[0]["o"][0].Reason)
	require.EqualValues(t, 4000/12, f.placed[0]["a"].Demand.CPUMilli)

	// Paces of another kind of machine do not count here.
	for i := range f.paces {
		f.paces[i].Place = "NVIDIA H200, 1 of 1, 16 cores"
	}

	f.hosts, f.placed = []berth.Host{gpuHost()}, nil
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.placed[0], 6)
}

// More at once are tried only if enough requests wait to gain by it, counting the
// trials that sweeps have still to start.
func TestRound_TriesMoreWhereMuchIsLeft(t *testing.T) {
	t.Parallel()

	waiting := []berth.WaitingRequest{onGPU("a", "s1"), onGPU("b", "s1")}
	mix := mixOf([]berth.Loaded{{ShapeKey: "s1"}})

	p, f := setup(t, waiting...)
	f.hosts = []berth.Host{gpuHost()}
	f.paces = []berth.MixPace{{Mix: mix.key, Place: "NVIDIA H200, 1 of 1, 4 cores", Pace: berth.Pace{
		ShapeKey: "s1", Company: berth.Company{Mode: berth.SharingMPS, AtOnce: 6}, Samples: 30, Mean: 10,
	}}}
	require.NoError(t, p.Round(t.Context()))
	require.False(t, f.advice["GPU-1"].Trying)
	require.Equal(t, 6, f.advice["GPU-1"].AtOnce)
	require.False(t, f.advice["GPU-1"].Capped, "more may do more")

	f.use["s"] = berth.SweepUse{State: berth.SweepRunning, Left: 100}
	f.hosts = []berth.Host{gpuHost()}
	require.NoError(t, p.Round(t.Context()))
	require.True(t, f.advice["GPU-1"].Trying)
	require.Equal(t, 8, f.advice["GPU-1"].AtOnce)
}

// The first of two that share a GPU comes alone: it has the mode that was better when
// it last had company.
func TestRound_TheFirstOfAPairChoosesTheMode(t *testing.T) {
	t.Parallel()

	pair := mixOf([]berth.Loaded{{ShapeKey: "full"}, {ShapeKey: "small"}}).key
	now := time.Now()
	pace := func(mix string, mode berth.SharingMode, seconds float64, at time.Time) berth.MixPace {
		return berth.MixPace{Mix: mix, Place: "NVIDIA H200, 1 of 1, 4 cores", At: at, Pace: berth.Pace{
			ShapeKey: "full", Company: berth.Company{Mode: mode, AtOnce: 2}, Samples: 9, Mean: seconds,
		}}
	}

	for name, c := range map[string]struct {
		paces []berth.MixPace
		want  berth.DeviceClass
	}{
		"nothing known":    {nil, "NVIDIA H200 (MPS)"},
		"slices, with it":  {[]berth.MixPace{pace(pair, berth.SharingMPS, 10, now), pace(pair, berth.SharingTimeSlicing, 8, now)}, "NVIDIA H200"},
		"MPS, with it":     {[]berth.MixPace{pace(pair, berth.SharingMPS, 8, now), pace(pair, berth.SharingTimeSlicing, 10, now)}, "NVIDIA H200 (MPS)"},
		"others, long ago": {[]berth.MixPace{pace("x", berth.SharingMPS, 9, now.Add(-time.Hour)), pace(pair, berth.SharingMPS, 10, now), pace(pair, berth.SharingTimeSlicing, 8, now)}, "NVIDIA H200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, f := setup(t, onGPU("a", "full"))
			f.hosts, f.paces = []berth.Host{gpuHost()}, c.paces
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, c.want, f.placed[0]["a"].Class)
			require.Equal(t, mixOf([]berth.Loaded{{ShapeKey: "full"}}).key, f.placed[0]["a"].Mix.Key)
		})
	}
}

// What insists on one mode makes no GPU change to another, and a paused sweep is no
// company and no queue.
func TestRound_AdvisesWhatAllThatWaitCanHave(t *testing.T) {
	t.Parallel()

	pace := func(mode berth.SharingMode, seconds float64) berth.MixPace {
		return berth.MixPace{Mix: mixOf([]berth.Loaded{{ShapeKey: "s1"}}).key, Place: "NVIDIA H200, 1 of 1, 4 cores", Pace: berth.Pace{
			ShapeKey: "s1", Company: berth.Company{Mode: mode, AtOnce: 2}, Samples: 30, Mean: seconds,
		}}
	}

	advised := func(waiting ...berth.WaitingRequest) berth.Advice {
		p, f := setup(t, waiting...)
		f.hosts = []berth.Host{gpuHost()}
		f.paces = []berth.MixPace{pace(berth.SharingMPS, 10), pace(berth.SharingTimeSlicing, 5)}
		f.use["paused"] = berth.SweepUse{State: berth.SweepPaused, Left: 1000}
		require.NoError(t, p.Round(t.Context()))

		return f.advice["GPU-1"]
	}

	one, two, insists, paused := onGPU("a", "s1"), onGPU("b", "s1"), onGPU("c", "s1"), onGPU("d", "other")
	insists.Resources.GPUSharing = string(berth.SharingMPS)
	paused.SweepID = "paused"

	require.Equal(t, berth.SharingTimeSlicing, advised(one, two).Mode)
	require.Equal(t, berth.SharingMPS, advised(one, two, insists).Mode)
	require.Equal(t, berth.SharingTimeSlicing, advised(one, two, paused).Mode)
	require.False(t, advised(one, two, paused).Trying)
}

// A GPU runs empty for another mode for ten minutes at most; then it stays as it is for
// five times as long.
func TestDrains(t *testing.T) {
	t.Parallel()

	var d drains

	host := gpuHost()
	dev := &host.Devices[0]
	dev.Attempts, dev.Mode, dev.Advice = 1, berth.SharingMPS, berth.Advice{Company: berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 2}}
	place, at, rested := packing.Place{HostID: "h", DeviceID: "GPU-1"}, time.Unix(0, 0), 0

	for second := range 3600 {
		d.begin([]berth.Host{host}, at.Add(time.Duration(second)*time.Second))

		if d.rests(place) {
			rested++
			require.GreaterOrEqual(t, second, 590)
		}
	}

	require.InDelta(t, 3000, rested, 10)

	d.begin([]berth.Host{host}, at.Add(3601*time.Second))
	require.False(t, d.rests(place), "a new turn")
}

// For many shapes the templates stand for them: each shape alone would be seen too
// rarely.
func TestMixOf(t *testing.T) {
	t.Parallel()

	shape := func(key, template string) berth.Loaded { return berth.Loaded{ShapeKey: key, Template: template} }
	few := mixOf([]berth.Loaded{shape("b", "t"), shape("a", "t"), shape("b", "t"), shape("c", "u")})
	require.Equal(t, few.key, mixOf([]berth.Loaded{shape("c", "u"), shape("a", "t"), shape("b", "t")}).key, "in any order")
	require.Equal(t, "c", few.own(shape("c", "u")))

	many := mixOf([]berth.Loaded{shape("a", "t"), shape("b", "t"), shape("c", "u"), shape("d", "u")})
	require.Equal(t, "u", many.own(shape("c", "u")))
	require.Equal(t, many.key, mixOf([]berth.Loaded{shape("e", "t"), shape("f", "t"), shape("g", "u"), shape("h", "u")}).key)
	require.NotEqual(t, few.key, many.key)
}
