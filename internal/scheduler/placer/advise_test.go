package placer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
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

// advises makes a round over waiting trials on gpuHost with these paces.
func advises(t *testing.T, waiting []berth.WaitingRequest, change func(f *queue), paces ...berth.MixPace) *queue {
	t.Helper()

	p, f := setup(t, waiting...)
	f.hosts, f.paces = []berth.Host{gpuHost()}, paces

	if change != nil {
		change(f)
	}

	require.NoError(t, p.Round(t.Context()))

	return f
}

// The placer does not try more attempts than the GPU's memory, its clients or the
// sweeps' own limits allow: that number could never be measured, and the other mode
// would wait for it.
func TestRound_TriesNoMoreThanThereCanBe(t *testing.T) {
	t.Parallel()

	for name, limit := range map[string]func(f *queue){
		"memory":           func(f *queue) { f.hosts[0].Devices[0].HeadroomBytes = 61 * gib },
		"clients":          func(f *queue) { f.hosts[0].Devices[0].MPSContexts, f.hosts[0].Devices[0].MaxContexts = 3, 3 },
		"the host":         func(f *queue) { f.hosts[0].Devices[0].MaxAttempts = 3 },
		"its sweep":        func(f *queue) { f.use["s"] = berth.SweepUse{MaxParallel: 3, State: berth.SweepRunning} },
		"its cores":        func(f *queue) { each(f, func(w *berth.WaitingRequest) { w.Resources.CPUs = 1300 }) },
		"host memory":      func(f *queue) { each(f, func(w *berth.WaitingRequest) { w.Resources.Memory = 20 * gib }) },
		"the host's own":   func(f *queue) { f.hosts[0].MaxAttempts = 3 },
		"what others hold": func(f *queue) { f.hosts[0].Devices[0].FreeBytes = 3 * gib },
		"a paused sweep has smaller ones": func(f *queue) {
			each(f, func(w *berth.WaitingRequest) { w.Resources.GPUMemory = 20 * gib })

			paused := onGPU("paused", "s1")
			paused.SweepID, f.use["paused"] = "paused", berth.SweepUse{State: berth.SweepPaused}
			f.waiting = append(f.waiting, paused)
		},
		"nothing else": nil,
	} {
		want := 2 // fewer are tried instead
		if limit == nil {
			want = 4
		}

		f := advises(t, many(30, "s1"), limit, paced(s1, "s1", berth.SharingMPS, 3, 30, 10))
		require.Equal(t, berth.Company{Mode: berth.SharingMPS, AtOnce: want}, f.advice["GPU-1"].Company, name)
	}
}

// Measurement decides how many share a GPU: more than their cores would allow,
// and no more than that.
func TestRound_TakesAsManyAsDoMost(t *testing.T) {
	t.Parallel()

	f := advises(t, many(14, "s1"), nil)
	require.Len(t, f.placed[0], 6, "two thirds of a core each")
	require.Empty(t, f.advice)
	require.Equal(t, berth.Mix{Key: s1.key, Own: "s1"}, f.placed[0]["s1-000"].Mix)

	paces := []berth.MixPace{
		paced(s1, "s1", berth.SharingMPS, 6, 30, 10), paced(s1, "s1", berth.SharingMPS, 8, 30, 8),
		paced(s1, "s1", berth.SharingMPS, 12, 30, 6), paced(s1, "s1", berth.SharingMPS, 16, 30, 5.9),
	}

	f = advises(t, many(14, "s1"), nil, paces...)
	require.Len(t, f.placed[0], 12)
	require.Equal(t, berth.Advice{
		Company: berth.Company{Mode: berth.SharingMPS, AtOnce: 12}, Capped: true,
		Why: "12 by MPS; measured: 12 by MPS 100 % (30 attempts), 6 by MPS 60 % (30 attempts), 8 by MPS 75 % (30 attempts), " +
			"16 by MPS 102 % (30 attempts)",
	}, f.advice["GPU-1"])
	require.Equal(t, "host host, GPU GPU-1: 12 attempts share it, as many as it is to have now: "+f.advice["GPU-1"].Why, f.reasons[0]["s1-013"][0].Reason)
	require.EqualValues(t, 4000/12, f.placed[0]["s1-000"].Demand.CPUMilli)

	for i := range paces { // of another kind of machine they do not count here
		paces[i].Place = "NVIDIA H200, 1 of 1, 16 cores"
	}

	require.Len(t, advises(t, many(14, "s1"), nil, paces...).placed[0], 6)
}

// More at once are tried only if enough requests wait to gain by it, counting the
// trials that sweeps have still to start.
func TestRound_TriesMoreWhereMuchIsLeft(t *testing.T) {
	t.Parallel()

	pace := paced(s1, "s1", berth.SharingMPS, 6, 30, 10)

	advice := advises(t, many(2, "s1"), nil, pace).advice["GPU-1"]
	require.False(t, advice.Trying)
	require.Equal(t, 6, advice.AtOnce)
	require.False(t, advice.Capped, "more may do more")

	advice = advises(t, many(2, "s1"), func(f *queue) { f.use["s"] = berth.SweepUse{State: berth.SweepRunning, Left: 100} }, pace).advice["GPU-1"]
	require.True(t, advice.Trying)
	require.Equal(t, 8, advice.AtOnce)

	ofFour := pace
	ofFour.Place = "NVIDIA H200, 1 of 4, 4 cores"
	small := many(24, "s1") // each of its own sweep with 3 more trials: 18 for each of four GPUs
	advice = advises(t, small, func(f *queue) {
		f.hosts[0].Devices = slices.Repeat(f.hosts[0].Devices, 4)
		for i := range f.hosts[0].Devices {
			f.hosts[0].Devices[i].ID = fmt.Sprintf("GPU-%d", i)
		}

		for i := range small {
			small[i].SweepID = fmt.Sprintf("sweep-%d", i)
			f.use[small[i].SweepID] = berth.SweepUse{State: berth.SweepRunning, Left: 3}
		}
	}, ofFour).advice["GPU-1"]
	require.True(t, advice.Trying, "all of them together leave much")
}

// The first of two that share a GPU comes alone: it has the mode that was better when
// it last had company.
func TestRound_TheFirstOfAPairChoosesTheMode(t *testing.T) {
	t.Parallel()

	pair := mixOf([]berth.Loaded{{ShapeKey: "full"}, {ShapeKey: "small"}})
	pace := func(of mix, mode berth.SharingMode, seconds float64) berth.MixPace {
		return paced(of, "full", mode, 2, 9, seconds)
	}
	long := pace(mix{key: "x"}, berth.SharingMPS, 9)
	long.At = long.At.Add(-time.Hour)

	for name, c := range map[string]struct {
		paces []berth.MixPace
		want  berth.DeviceClass
	}{
		"nothing known":    {nil, "NVIDIA H200 (MPS)"},
		"slices, with it":  {[]berth.MixPace{pace(pair, berth.SharingMPS, 10), pace(pair, berth.SharingTimeSlicing, 8)}, "NVIDIA H200"},
		"MPS, with it":     {[]berth.MixPace{pace(pair, berth.SharingMPS, 8), pace(pair, berth.SharingTimeSlicing, 10)}, "NVIDIA H200 (MPS)"},
		"others, long ago": {[]berth.MixPace{long, pace(pair, berth.SharingMPS, 10), pace(pair, berth.SharingTimeSlicing, 8)}, "NVIDIA H200"},
	} {
		f := advises(t, []berth.WaitingRequest{onGPU("a", "full")}, nil, c.paces...)
		require.Equal(t, c.want, f.placed[0]["a"].Class, name)
		require.Equal(t, mixOf([]berth.Loaded{{ShapeKey: "full"}}).key, f.placed[0]["a"].Mix.Key, name)
	}
}

// What insists on one mode makes no GPU change to another, and a paused sweep is no
// company and no queue.
func TestRound_AdvisesWhatAllThatWaitCanHave(t *testing.T) {
	t.Parallel()

	advised := func(waiting ...berth.WaitingRequest) berth.Advice {
		return advises(t, waiting, func(f *queue) { f.use["paused"] = berth.SweepUse{State: berth.SweepPaused, Left: 1000} },
			paced(s1, "s1", berth.SharingMPS, 2, 30, 10), paced(s1, "s1", berth.SharingTimeSlicing, 2, 30, 5)).advice["GPU-1"]
	}

	one, two, insists, paused := onGPU("a", "s1"), onGPU("b", "s1"), onGPU("c", "s1"), onGPU("d", "other")
	insists.Resources.GPUSharing = string(berth.SharingMPS)
	paused.SweepID = "paused"

	require.Equal(t, berth.SharingTimeSlicing, advised(one, two).Mode)

	// A draining GPU says that it drains, and not that it has enough.
	f := advises(t, many(6, "s1"), func(f *queue) { sharedBy(f, berth.SharingMPS, 4, "s1") },
		paced(s1, "s1", berth.SharingMPS, 4, 30, 10), paced(s1, "s1", berth.SharingTimeSlicing, 3, 30, 4))
	require.Empty(t, f.placed)
	require.Contains(t, f.reasons[0]["s1-000"][0].Reason, "4 attempt(s) share it by MPS, and it is to be shared by time slices once they have ended")

	require.Equal(t, berth.SharingMPS, advised(one, two, insists).Mode)
	require.Equal(t, berth.SharingTimeSlicing, advised(one, two, paused).Mode)
	require.False(t, advised(one, two, paused).Trying)
}

// A GPU runs empty for another mode for half an hour at most; then it stays as it is for
// five times as long. A GPU that began to drain keeps its remaining time, whatever waited
// for a moment.
func TestDrains(t *testing.T) {
	t.Parallel()

	for interrupted, seconds := range map[bool]int{false: 3*3600 + 2, true: 18 * 3600} {
		var d drains

		host := gpuHost()
		dev := &host.Devices[0]
		dev.Attempts, dev.Mode = 1, berth.SharingMPS
		place, rested, drained := packing.Place{HostID: "h", DeviceID: "GPU-1"}, 0, 0

		for second := range seconds {
			dev.Advice = berth.Advice{}
			if !interrupted || second%500 >= 5 && !d.rests(place) {
				dev.Advice = berth.Advice{Company: berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 2}}
				drained++
			}

			d.begin([]berth.Host{host}, time.Unix(int64(second), 0))

			if d.rests(place) {
				rested++
				require.GreaterOrEqual(t, second, 1790)
			}
		}

		if interrupted {
			require.LessOrEqual(t, drained, seconds/6+1800)
		} else {
			require.InDelta(t, 9000, rested, 10)
			require.False(t, d.rests(place), "a new turn")
		}

		dev.Attempts, dev.Advice = 0, berth.Advice{}
		d.begin([]berth.Host{host}, time.Unix(int64(seconds), 0))
		require.Empty(t, d.spent, "it is empty")
	}
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
