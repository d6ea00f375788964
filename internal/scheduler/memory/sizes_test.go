package memory_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

const (
	mib16 = 16 << 20
	big   = berth.DeviceClass("big")
	small = berth.DeviceClass("small")
)

// card is a GPU with this many GiB to give.
func card(class berth.DeviceClass, gibibytes int64) berth.Device {
	return berth.Device{Model: string(class), Mode: berth.SharingTimeSlicing, MemoryBytes: (gibibytes + 1) * gib, HeadroomBytes: gib, FreeBytes: gibibytes * gib}
}

func gpuHost(cards ...berth.Device) berth.Host {
	h := machine(berth.HostReady, 64, 64)
	h.Devices = cards

	return h
}

func in(state berth.HostState, h berth.Host) berth.Host {
	h.State = state

	return h
}

// onGPU is the footprint of a shape measured to use this many MiB of a GPU.
func onGPU(mebibytes, floor int64) berth.Footprint {
	return berth.Footprint{
		Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: gib, DevicePeakBytes: mebibytes << 20, DeviceFloorBytes: floor << 20,
	}
}

func ranOutOfGPU(had int64, alone bool, count int) *berth.LastOOM {
	return &berth.LastOOM{
		Demand: berth.Demand{MemoryBytes: 3 * gib, CPUMilli: 1000, DeviceBytes: had * gib, ExclusiveDevice: alone},
		Device: true, PeakBytes: had * gib, Count: count, Max: 3,
	}
}

// Which classes a trial asks for, and with how much of a GPU (in MiB), alone or not.
func TestSizes(t *testing.T) {
	t.Parallel()

	type want struct {
		mib   int64
		alone bool
	}

	type wants map[berth.DeviceClass]want

	cores := machine(berth.HostReady, 64, 64)
	mps := card(big, 80)
	mps.MPSContexts = 44
	lone := card(big, 80)
	lone.Mode, lone.MPSContexts = berth.SharingExclusive, 44

	const bigMPS = big + " (MPS)"

	sick := card(big, 80)
	sick.Problem = "it fell off the bus"
	cordoned := card(big, 80)
	cordoned.CordonedAt = new(time.Unix(0, 0))
	muted := card(big, 80)
	muted.MPSContexts, muted.MPSProblem = 44, "its MPS daemon does not run: no permission"
	mixed := []berth.Host{cores, gpuHost(card(big, 80), card(small, 16))}
	gpu, auto := berth.Resources{Device: berth.DeviceGPU}, berth.Resources{Device: berth.DeviceAuto}
	insists := berth.Resources{Device: berth.DeviceGPU, GPUSharing: "mps"}
	one, oneMPS := []berth.Host{gpuHost(card(big, 80))}, []berth.Host{gpuHost(mps)}
	known := berth.Footprints{big: onGPU(910, 0)}

	for name, tt := range map[string]struct {
		resources  berth.Resources
		hosts      []berth.Host
		known      berth.Footprints
		last       *berth.LastOOM
		want       wants
		infeasible bool
	}{
		"cores, as there is no GPU":       {resources: auto, hosts: []berth.Host{cores}, want: wants{berth.ClassCPU: {}}},
		"nothing, as there is no GPU":     {resources: gpu, hosts: []berth.Host{cores}, want: wants{}},
		"cores, as it says so":            {resources: berth.Resources{Device: berth.DeviceCPU}, hosts: mixed, want: wants{berth.ClassCPU: {}}},
		"alone where nothing is measured": {resources: auto, hosts: mixed, want: wants{big: {20 * 1024, true}, small: {4 * 1024, true}}},
		"what was measured, on its class alone": {
			resources: gpu, hosts: mixed, known: berth.Footprints{big: onGPU(910, 0), berth.ClassCPU: onGPU(0, 0)},
			want: wants{big: {1040, false}, small: {4 * 1024, true}},
		},
		"10 % of much is more than 256 MiB": {resources: gpu, hosts: one, known: berth.Footprints{big: onGPU(10000, 0)}, want: wants{big: {11008, false}}},
		"no more than a card has": {
			resources: gpu, hosts: []berth.Host{gpuHost(card(small, 16))}, known: berth.Footprints{small: onGPU(16*1024-100, 0)},
			want: wants{small: {16 * 1024, false}},
		},
		"what a sibling ran out of":            {resources: gpu, hosts: one, known: berth.Footprints{big: onGPU(910, 1216)}, want: wants{big: {1856, false}}},
		"at most four times what was measured": {resources: gpu, hosts: one, known: berth.Footprints{big: onGPU(910, 9000)}, want: wants{big: {4 * 1040, false}}},
		"what the user wrote": {
			resources: berth.Resources{Device: berth.DeviceGPU, GPUMemory: 2 * gib}, hosts: mixed, known: berth.Footprints{big: onGPU(910, 1216)},
			want: wants{big: {2048, false}, small: {2048, false}},
		},
		"alone, as the user wrote": {resources: berth.Resources{Device: berth.DeviceGPU, GPUSharing: "exclusive"}, hosts: one, known: known, want: wants{big: {1040, true}}},
		"by time slices, as the user wrote": {
			resources: berth.Resources{Device: berth.DeviceGPU, GPUSharing: "time_slicing", GPUMemory: gib},
			hosts:     []berth.Host{gpuHost(mps, card(small, 16))}, want: wants{big: {1024, false}, small: {1024, false}},
		},
		"by MPS, as the user wrote":                          {resources: insists, known: known, hosts: []berth.Host{gpuHost(mps, card(small, 16))}, want: wants{bigMPS: {1168, false}}},
		"nothing, as no GPU has MPS":                         {resources: insists, hosts: []berth.Host{gpuHost(lone, card(small, 16))}, want: wants{}},
		"a 32nd where nothing is measured, as MPS bounds it": {resources: gpu, hosts: oneMPS, want: wants{bigMPS: {2560, false}, big: {20 * 1024, true}}},
		"MPS, as it insists, though its daemon does not run": {
			resources: berth.Resources{Device: berth.DeviceAuto, GPUSharing: "mps"}, hosts: []berth.Host{gpuHost(muted)}, want: wants{bigMPS: {2560, false}},
		},
		"cores, as the GPU has a problem and it may spill": {
			resources: berth.Resources{Device: berth.DeviceAuto, GPUMemory: 100 * gib, GPUMemorySpill: true}, hosts: []berth.Host{gpuHost(sick)},
			want: wants{berth.ClassCPU: {}},
		},
		"2 GiB of a GPU with less than 64": {
			resources: insists, hosts: []berth.Host{gpuHost(func() berth.Device {
				d := card(small, 8)
				d.MPSContexts = 44

				return d
			}())}, want: wants{small + " (MPS)": {2048, false}},
		},
		"what a sibling ran out of at the guess": {
			resources: insists, hosts: oneMPS,
			known: berth.Footprints{bigMPS: {Source: berth.FootprintRaised, DeviceFloorBytes: 2560 << 20}}, want: wants{bigMPS: {3840, false}},
		},
		"what a part of a run held": {
			resources: insists, hosts: oneMPS,
			known: berth.Footprints{bigMPS: {Source: berth.FootprintPartial, DevicePeakBytes: 10 * gib}}, want: wants{bigMPS: {12 * 1024, false}},
		},
		"a fifth more than what much was measured in the other mode, and what it ran out of": {
			resources: gpu, hosts: oneMPS,
			known: berth.Footprints{bigMPS: onGPU(10000, 0), big: {Source: berth.FootprintRaised, DeviceFloorBytes: 10 * gib}},
			want:  wants{bigMPS: {11008, false}, big: {15 * 1024, false}},
		},
		"what was measured in the other mode": {resources: gpu, hosts: oneMPS, known: berth.Footprints{bigMPS: onGPU(910, 0)}, want: wants{bigMPS: {1040, false}, big: {1168, false}}},
		"what was measured in each mode": {
			resources: gpu, hosts: oneMPS, known: berth.Footprints{bigMPS: onGPU(910, 0), big: onGPU(1500, 0)},
			want: wants{bigMPS: {1040, false}, big: {1664, false}},
		},
		"a GPU without MPS, for a trial that wants it alone": {
			resources: berth.Resources{Device: berth.DeviceGPU, GPUSharing: "exclusive"}, hosts: oneMPS,
			known: berth.Footprints{bigMPS: onGPU(910, 0)}, want: wants{big: {1168, true}},
		},
		"a GPU that a person keeps for one attempt at a time": {resources: gpu, hosts: []berth.Host{gpuHost(lone)}, known: known, want: wants{big: {1040, false}}},

		"cores, as the GPU has a problem":  {resources: auto, hosts: []berth.Host{cores, gpuHost(sick)}, want: wants{berth.ClassCPU: {}}},
		"cores, as the GPU is cordoned":    {resources: auto, hosts: []berth.Host{cores, gpuHost(cordoned)}, want: wants{berth.ClassCPU: {}}},
		"other GPUs, as one is cordoned":   {resources: auto, hosts: []berth.Host{cores, gpuHost(cordoned, card(small, 16))}, want: wants{small: {4 * 1024, true}}},
		"the cordoned GPU, as it must":     {resources: gpu, hosts: []berth.Host{cores, gpuHost(cordoned)}, want: wants{big: {20 * 1024, true}}},
		"the sick GPU, as it must":         {resources: gpu, hosts: []berth.Host{cores, gpuHost(sick)}, want: wants{big: {20 * 1024, true}}},
		"cores, as the GPU's host is lost": {resources: auto, hosts: []berth.Host{cores, in(berth.HostLost, gpuHost(card(big, 80)))}, want: wants{berth.ClassCPU: {}}},
		"or drained":                       {resources: auto, hosts: []berth.Host{cores, in(berth.HostDraining, gpuHost(card(big, 80)))}, want: wants{berth.ClassCPU: {}}},
		"the lost GPU, as it must":         {resources: gpu, hosts: []berth.Host{cores, in(berth.HostLost, gpuHost(card(big, 80)))}, want: wants{big: {20 * 1024, true}}},
		"alone where it was measured in part": {
			resources: gpu, hosts: one, known: berth.Footprints{big: {Source: berth.FootprintPartial, DevicePeakBytes: 520 << 20}},
			want: wants{big: {20 * 1024, true}},
		},
		"cores, as the GPU that it ran out on is gone": {resources: auto, hosts: []berth.Host{cores}, last: ranOutOfGPU(4, true, 1), want: wants{berth.ClassCPU: {}}},

		"a step more":               {resources: gpu, hosts: one, known: known, last: ranOutOfGPU(4, false, 1), want: wants{big: {6 * 1024, false}}},
		"the last attempt is alone": {resources: gpu, hosts: one, known: known, last: ranOutOfGPU(4, false, 2), want: wants{big: {6 * 1024, true}}},
		"the last attempt is alone, though the one before it taught its shape as much": {
			resources: gpu, hosts: one, known: berth.Footprints{big: onGPU(910, 4*1024)}, last: ranOutOfGPU(4, false, 2),
			want: wants{big: {6 * 1024, true}},
		},
		"so it is where nothing is measured": {
			resources: insists, hosts: oneMPS,
			known: berth.Footprints{bigMPS: {Source: berth.FootprintRaised, DeviceFloorBytes: 4 * gib}}, last: ranOutOfGPU(4, false, 2),
			want: wants{bigMPS: {6 * 1024, true}},
		},
		"another run has measured more":               {resources: gpu, hosts: one, known: berth.Footprints{big: onGPU(10000, 0)}, last: ranOutOfGPU(4, false, 1), want: wants{big: {11008, false}}},
		"a step is all of the card":                   {resources: gpu, hosts: []berth.Host{gpuHost(card(small, 16))}, last: ranOutOfGPU(15, false, 1), want: wants{small: {16 * 1024, true}}},
		"it had a card of the small class for itself": {resources: gpu, hosts: mixed, last: ranOutOfGPU(16, true, 1), want: wants{big: {24 * 1024, true}}},
		"it had the largest for itself":               {resources: gpu, hosts: mixed, last: ranOutOfGPU(80, true, 1), infeasible: true},
		"there are no more attempts":                  {resources: gpu, hosts: mixed, last: ranOutOfGPU(4, false, 3), infeasible: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			demands, ok := memory.Sizes(memory.Ask{Resources: tt.resources, Last: tt.last}, tt.known, tt.hosts)
			require.Equal(t, !tt.infeasible, ok)

			if tt.infeasible {
				return
			}

			got := wants{}

			for class, d := range demands {
				got[class] = want{d.DeviceBytes >> 20, d.ExclusiveDevice}
				require.Zero(t, d.DeviceBytes%mib16)
				require.Positive(t, d.MemoryBytes)
				require.Positive(t, d.CPUMilli)
				require.Equal(t, class != berth.ClassCPU, d.Contexts == 1)
				require.False(t, class == berth.ClassCPU && d.ExclusiveDevice)
			}

			require.Equal(t, tt.want, got)
		})
	}
}

// The hosts with the class count: a larger host without a GPU does not size a
// trial for a GPU, and the trial's last host memory stays enough. Beside a GPU Berth books
// two thirds of the cores that an attempt keeps busy, and the user's value in full.
func TestSizes_OfTheHostsWithTheClass(t *testing.T) {
	t.Parallel()

	withGPU := gpuHost(card(big, 80))
	withGPU.MemoryBytes = 8 * gib
	cores := machine(berth.HostReady, 512, 512)
	both := []berth.Host{cores, withGPU}

	busy := onGPU(910, 0)
	busy.CPUMilli = 900 // with a tenth: 990, and at most its own limit
	idle := busy
	idle.CPUMilli = 20

	ran := ranOut(4, 1) // of the host's memory, on a GPU
	ran.Demand.DeviceBytes, ran.Demand.Contexts, ran.Demand.ExclusiveDevice = 8*gib, 1, true

	for name, tt := range map[string]struct {
		hosts       []berth.Host
		known       berth.Footprints
		cpus        berth.CPUs
		last        *berth.LastOOM
		class       berth.DeviceClass
		memory, cpu int64
	}{
		"a quarter of that host":   {hosts: both, class: big, memory: 2 * gib, cpu: 650},
		"it ran out of its GPU":    {hosts: both, last: ranOutOfGPU(4, false, 1), class: big, memory: 3 * gib, cpu: 650},
		"there is no GPU any more": {hosts: both[:1], last: ran, class: berth.ClassCPU, memory: 6 * gib, cpu: 1000},
		"busy cores":               {hosts: both, known: berth.Footprints{big: busy}, class: big, memory: gib + 112*mib, cpu: 650},
		"idle cores":               {hosts: both, known: berth.Footprints{big: idle}, class: big, memory: gib + 112*mib, cpu: 100},
		"the cores of the user":    {hosts: both, cpus: 800, class: big, memory: 1600 * mib, cpu: 800},
	} {
		demands, ok := memory.Sizes(memory.Ask{Resources: berth.Resources{Device: berth.DeviceAuto, CPUs: tt.cpus}, Last: tt.last}, tt.known, tt.hosts)
		require.True(t, ok, name)
		require.Len(t, demands, 1, name)
		require.Equal(t, []int64{tt.memory, tt.cpu}, []int64{demands[tt.class].MemoryBytes, demands[tt.class].CPUMilli}, name)
	}
}

// What a client of MPS holds that trains sizes its siblings; until then a share is a guess.
func TestGuesses(t *testing.T) {
	t.Parallel()

	shared, sliced := card(big, 80), card(big, 80)
	shared.MPSContexts = 44

	trains := memory.ObserveRunning(nil, "shape", berth.Usage{DevicePeakBytes: 9000 * mib})
	require.Equal(t, berth.Footprint{ShapeKey: "shape", Source: berth.FootprintPartial, DevicePeakBytes: 9000 * mib}, trains)

	for name, tt := range map[string]struct {
		card    berth.Device
		ask     berth.Resources
		known   berth.Footprints
		guesses bool
		mib     int64 // by MPS
	}{
		"nothing is known":        {shared, berth.Resources{Device: berth.DeviceGPU}, nil, true, 2560},
		"what trains":             {shared, berth.Resources{Device: berth.DeviceGPU}, berth.Footprints{big.Twin(): trains}, false, 10800}, // 20 % more
		"a whole run, elsewhere":  {shared, berth.Resources{Device: berth.DeviceGPU}, berth.Footprints{big: onGPU(910, 0)}, false, 1168},
		"the user's word":         {shared, berth.Resources{Device: berth.DeviceGPU, GPUMemory: gib}, nil, false, 1024},
		"alone, by time slices":   {sliced, berth.Resources{Device: berth.DeviceGPU}, nil, false, 0},
		"alone, as the user says": {shared, berth.Resources{Device: berth.DeviceGPU, GPUSharing: "exclusive"}, nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ask := memory.Ask{Resources: tt.ask}
			demands, ok := memory.Sizes(ask, tt.known, []berth.Host{gpuHost(tt.card)})
			require.True(t, ok)
			require.Equal(t, tt.guesses, memory.Guesses(ask, tt.known, demands))
			require.Equal(t, tt.mib, demands[big.Twin()].DeviceBytes>>20)
		})
	}

	cores, ok := memory.Sizes(memory.Ask{}, nil, []berth.Host{machine(berth.HostReady, 64, 64)})
	require.True(t, ok)
	require.False(t, memory.Guesses(memory.Ask{}, nil, cores), "cores are no GPU")
}

// A fault of one MPS client ends all: a trial that met one shares with no
// others there.
func TestSizes_Apart(t *testing.T) {
	t.Parallel()

	shared := card(big, 80)
	shared.Mode, shared.MPSContexts = berth.SharingTimeSlicing, 44
	hosts := []berth.Host{gpuHost(shared)}
	known := berth.Footprints{big: onGPU(1024, 0)}

	sizes := func(sharing berth.SharingMode, apart bool) berth.Demands {
		demands, ok := memory.Sizes(memory.Ask{Resources: berth.Resources{Device: berth.DeviceGPU, GPUSharing: string(sharing)}, Apart: apart}, known, hosts)
		require.True(t, ok)

		return demands
	}

	require.Len(t, sizes("", false), 2)
	require.Equal(t, []berth.DeviceClass{big}, slices.Collect(maps.Keys(sizes("", true))))
	require.False(t, sizes("", true)[big].ExclusiveDevice, "by time slices a fault is its program's alone")
	require.Equal(t, []berth.DeviceClass{big.Twin()}, slices.Collect(maps.Keys(sizes(berth.SharingMPS, true))))
	require.True(t, sizes(berth.SharingMPS, true)[big.Twin()].ExclusiveDevice, "it insists on MPS")
	require.False(t, sizes(berth.SharingMPS, false)[big.Twin()].ExclusiveDevice)
	require.Equal(t, sizes(berth.SharingTimeSlicing, false), sizes(berth.SharingTimeSlicing, true))
	require.Equal(t, sizes(berth.SharingExclusive, false), sizes(berth.SharingExclusive, true))
}

// An out-of-memory on a GPU teaches its siblings, until three of them have shown
// that they need less. One that had a GPU for itself teaches none.
func TestObserve_DeviceFloor(t *testing.T) {
	t.Parallel()

	see := func(f berth.Footprint, kind berth.FailureKind, peak int64, had berth.Demand) berth.Footprint {
		u := berth.Usage{MemoryPeakBytes: gib, DevicePeakBytes: peak * gib, Samples: 9, DeviceSamples: 9}
		after, ok := memory.Observe(&f, "key", berth.FootprintFull, kind, u, had)
		require.True(t, ok)

		return after
	}
	four := berth.Demand{MemoryBytes: 2 * gib, DeviceBytes: 4 * gib}
	alone := berth.Demand{MemoryBytes: 2 * gib, DeviceBytes: 80 * gib, ExclusiveDevice: true}

	f := see(berth.Footprint{}, berth.FailureOK, 3, four)
	require.Equal(t, int64(3*gib+20*mib16), memory.ReserveDevice(f))
	require.Equal(t, f, see(f, berth.FailureDeviceOOM, 80, alone), "that trial is infeasible, not its siblings")

	f = see(f, berth.FailureDeviceOOM, 4, four)
	require.Equal(t, int64(4*gib), f.DeviceFloorBytes)
	require.Zero(t, f.MemoryFloorBytes)
	require.Equal(t, int64(6*gib), memory.ReserveDevice(f))

	for range 2 {
		f = see(f, berth.FailureOK, 2, four)
		require.Equal(t, int64(6*gib), memory.ReserveDevice(f))
	}

	f = see(f, berth.FailureOK, 2, four)
	require.Zero(t, f.DeviceFloorBytes)
	require.Equal(t, int64(3*gib+10*mib16), memory.ReserveDevice(f), "four runs: 5 % over the peak")
}

// What ran out of memory with the small GPU for itself is not infeasible while the
// large one takes nothing.
func TestSizes_OOMWhileTheLargeGPUIsAway(t *testing.T) {
	t.Parallel()

	for name, edit := range map[string]func(h *berth.Host){
		"cordoned": func(h *berth.Host) { h.Devices[0].CordonedAt = new(time.Unix(0, 0)) },
		"drained":  func(h *berth.Host) { h.State = berth.HostDraining },
		"lost":     func(h *berth.Host) { h.State = berth.HostLost },
	} {
		h := gpuHost(card(big, 80))
		edit(&h)

		d, ok := memory.Sizes(memory.Ask{Resources: berth.Resources{Device: berth.DeviceAuto}, Last: ranOutOfGPU(16, true, 1)}, nil,
			[]berth.Host{gpuHost(card(small, 16)), h})
		require.True(t, ok, name)
		require.Equal(t, []berth.DeviceClass{big}, slices.Collect(maps.Keys(d)), name)
	}
}
