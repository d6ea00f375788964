package packing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// ask is a request of this many GiB and cores.
func ask(id string, gibibytes, cores int64) packing.Request {
	return packing.Request{AttemptID: id, Demands: needs(berth.Demand{MemoryBytes: gibibytes * gib, CPUMilli: cores * 1000})}
}

// where maps attempts to the host they were placed on.
func where(decisions []packing.Decision) map[string]string {
	out := map[string]string{}

	for _, d := range decisions {
		if d.Placed {
			out[d.AttemptID] = d.Placement.HostID + d.Placement.DeviceID
		}
	}

	return out
}

// Attempts are spread first. Of two hosts that are equally loaded the one with the better
// fit is taken, and of a host's GPUs the one with the least load.
func TestDecide_SpreadsThenPacks(t *testing.T) {
	t.Parallel()

	gpus := withDevices(host("a", 8, 64), 2, 8)
	gpus.Devices[0].ReservedBytes, gpus.Devices[0].ContextsReserved = 4*gib, 1

	for name, tt := range map[string]struct {
		hosts    []berth.Host
		requests []packing.Request
		want     map[string]string
	}{
		"spread": {
			[]berth.Host{host("a", 4, 8), host("b", 4, 8)},
			[]packing.Request{ask("1", 2, 1), ask("2", 2, 1), ask("3", 2, 1), ask("4", 2, 1)},
			map[string]string{"1": "a", "2": "b", "3": "a", "4": "b"},
		},
		"b leaves less memory unused": {[]berth.Host{host("a", 4, 64), host("b", 4, 16)}, []packing.Request{ask("1", 2, 1)}, map[string]string{"1": "b"}},
		"the idle GPU":                {[]berth.Host{gpus}, []packing.Request{onGPU("1", 2)}, map[string]string{"1": "aGPU-a-1"}},
	} {
		require.Equal(t, tt.want, where(packing.Decide(tt.hosts, nil, tt.requests)), name)
	}
}

func TestDecide_Order(t *testing.T) {
	t.Parallel()

	long := ask("long", 2, 1)
	long.Expected = time.Hour
	wide := ask("wide", 4, 1) // half of the memory for half the time weighs as much as...
	wide.Expected = 40 * time.Minute
	old := ask("old", 2, 1)
	old.Waited = time.Minute
	late := ask("late", 2, 1)
	late.Waited = packing.DrainAfter
	later := ask("later", 2, 1)
	later.Waited = 2 * packing.DrainAfter
	first, second := ask("z", 2, 1), ask("y", 2, 1)
	first.Number, second.Number = 1, 2
	second.Waited = 300 * time.Millisecond // their workflows asked within a second

	var order []string
	for _, d := range packing.Decide([]berth.Host{host("a", 8, 8)}, nil, []packing.Request{second, first, old, long, wide, late, later}) {
		order = append(order, d.AttemptID)
	}

	// Requests with an unknown duration come before the others.
	require.Equal(t, []string{"later", "late", "old", "z", "y", "wide", "long"}, order)
}

// The weight of a request is its share of the live hosts.
func TestDecide_OrderIgnoresLostHosts(t *testing.T) {
	t.Parallel()

	lost := host("b", 4, 800)
	lost.State = berth.HostLost

	memory, cpu := ask("memory", 6, 1), ask("cpu", 1, 2)
	memory.Expected, cpu.Expected = time.Hour, time.Hour

	decisions := packing.Decide([]berth.Host{host("a", 4, 8), lost}, nil, []packing.Request{cpu, memory})
	require.Equal(t, "memory", decisions[0].AttemptID)
}

func TestDecide_KeepsOneHostFreeForWhatWaitedLong(t *testing.T) {
	t.Parallel()

	large := ask("large", 6, 1)
	large.Waited = packing.DrainAfter

	a, b := host("a", 4, 8), host("b", 4, 8)
	a.MemoryReservedBytes, a.Attempts = 4*gib, 1
	b.MemoryReservedBytes, b.Attempts = 3*gib, 1

	decide := func() []packing.Decision {
		return packing.Decide([]berth.Host{a, b}, nil, []packing.Request{large, ask("small", 2, 1)})
	}

	decisions := decide()
	require.Equal(t, packing.Place{HostID: "b"}, decisions[0].Kept, "the nearest to fitting")
	require.Equal(t, map[string]string{"small": "a"}, where(decisions))

	large.Kept = packing.Place{HostID: "b"}
	a.MemoryReservedBytes = 2*gib + 1
	require.Equal(t, packing.Place{HostID: "b"}, decide()[0].Kept, "it stays with the host that is being drained")

	b.MemoryFreeBytes = 5 * gib // a program outside Berth took the memory
	decisions = decide()
	require.Equal(t, packing.Place{HostID: "a"}, decisions[0].Kept)
	require.Equal(t, map[string]string{"small": "b"}, where(decisions))
}

func TestDecide_NeverBlocksAMachineForWhatProgramsOutsideHold(t *testing.T) {
	t.Parallel()

	h := host("a", 4, 8)
	h.MemoryFreeBytes = 6 * gib

	all := but(ask("all", 8, 1), func(d *berth.Demand) { d.Exclusive = true })
	all.Waited = time.Hour

	decisions := packing.Decide([]berth.Host{h}, nil, []packing.Request{all, ask("small", 1, 1)})
	require.Equal(t, map[string]string{"small": "a"}, where(decisions))
	require.Zero(t, decisions[0].Kept)
	require.False(t, decisions[0].Impossible, "those programs may end")
}

func TestDecide_KeepsAQuarterOfTheHostsAtMost(t *testing.T) {
	t.Parallel()

	var (
		hosts    []berth.Host
		requests []packing.Request
	)

	for i := range 8 {
		h := host(fmt.Sprint(i), 4, 8)
		h.MemoryReservedBytes, h.Attempts = 4*gib, 1
		hosts = append(hosts, h)

		large := ask(fmt.Sprint("large", i), 6, 1)
		large.Waited = time.Hour
		requests = append(requests, large, ask(fmt.Sprint("small", i), 4, 1))
	}

	require.Len(t, where(packing.Decide(hosts, nil, requests)), 6)
}

func TestDecide_Impossible(t *testing.T) {
	t.Parallel()

	lost := host("a", 4, 8)
	lost.State = berth.HostLost

	draining := host("a", 4, 8)
	draining.State = berth.HostDraining

	full := host("a", 4, 8)
	full.DiskHeadroomBytes, full.DiskFreeBytes = 2*gib, 2*gib-1

	gpu := but(ask("gpu", 1, 1), func(d *berth.Demand) { d.DeviceBytes = gib })
	noGPU := packing.Request{AttemptID: "gpu", Demands: berth.Demands{"a GPU of elsewhere": {DeviceBytes: gib}}}
	contexts := but(gpu, func(d *berth.Demand) { d.Contexts = 3 })
	few := withDevices(host("a", 4, 8), 1, 8)
	few.Devices[0].MaxContexts = 2

	const noGPUReason = "no host is known that has a GPU which the sweep can use (resources.device, gpu_sharing); the trial waits for one"

	for name, c := range map[string]struct {
		hosts      []berth.Host
		request    packing.Request
		impossible bool
		why        string
	}{
		"too much memory":   {[]berth.Host{lost}, ask("1", 9, 1), true, "host host-a: needs 9,216 MiB of memory, 8,192 MiB there at all"},
		"too many cores":    {[]berth.Host{lost}, ask("1", 1, 5), true, "host host-a: needs 5 cores, 4 there at all"},
		"no GPU":            {[]berth.Host{lost}, noGPU, false, noGPUReason},
		"no GPU by MPS":     {[]berth.Host{few}, packing.Request{AttemptID: "1"}, false, noGPUReason},
		"too many contexts": {[]berth.Host{few}, contexts, true, "host host-a, GPU GPU-a-0: needs 3 GPU context(s), 2 there at all"},
		"lost host":         {[]berth.Host{lost}, ask("1", 8, 4), false, "host host-a: its worker does not answer; the trial waits for it to come back"},
		"one would hold it": {[]berth.Host{host("0", 1, 1), lost}, ask("1", 8, 4), false, "host host-a: its worker does not answer; the trial waits for it to come back"},
		"draining host":     {[]berth.Host{draining}, ask("1", 8, 4), false, "host host-a: drained; `berth host ready host-a` lets it take attempts"},
		"full disk":         {[]berth.Host{full}, ask("1", 8, 4), false, "host host-a: 2,047 MiB of disk are free, and it keeps 2,048 MiB: free space there"},
		"nobody is there":   {nil, ask("1", 8, 4), false, "no machine is connected; start `berth worker` on one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := packing.Decide(c.hosts, nil, []packing.Request{c.request})[0]
			require.Equal(t, c.impossible, d.Impossible)
			require.Equal(t, c.why, packing.Explain(d.Rejections(1)[0]))
		})
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()

	for want, r := range map[string]berth.Rejection{
		"host a: needs 1,310 MiB of memory, 1,120 MiB free":   {Dimension: berth.DimensionMemory, Needed: 1310 << 20, Free: 1120 << 20},
		"host a: needs 1,311 MiB of memory, 1,310 MiB free":   {Dimension: berth.DimensionMemory, Needed: 1310<<20 + 2, Free: 1310<<20 + 1},
		"host a: needs 1,048,576 MiB of memory, 0 bytes free": {Dimension: berth.DimensionMemory, Needed: 1 << 40},
		"host a: needs 512 MiB of memory, 64 MiB free beside what programs outside Berth use": {
			Dimension: berth.DimensionFreeMemory, Needed: 512 << 20, Free: 64 << 20,
		},
		"host a: needs 1.5 cores, 0.05 free":                           {Dimension: berth.DimensionCPU, Needed: 1500, Free: 50},
		"host a: already runs as many attempts as it may":              {Dimension: berth.DimensionAttempts, Needed: 1},
		"host a, GPU g: needs 1,024 MiB of GPU memory, 1,000 MiB free": {DeviceID: "g", Dimension: berth.DimensionDeviceBytes, Needed: 1 << 30, Free: 1000 << 20},
		"host a, GPU g: needs 1 GPU context(s), 0 free":                {DeviceID: "g", Dimension: berth.DimensionContexts, Needed: 1},
		"host a: one of the attempts must be alone there":              {Dimension: berth.DimensionExclusive},
		"host a: has no GPU":                                           {Dimension: berth.DimensionDevice, Needed: 1},
		"as it says":                                                   {Dimension: berth.DimensionState, Reason: "as it says"},
		"host a: new":                                                  {Dimension: "new"},
	} {
		r.HostName = "a"
		require.Equal(t, want, packing.Explain(r))
	}
}

// A worker that came back with smaller totals still holds its leases; no new
// attempt joins them.
func TestDecide_PlacesNothingOnAHostThatHoldsMoreThanItHas(t *testing.T) {
	t.Parallel()

	h := host("a", 1, 2)
	h.MemoryReservedBytes, h.CPUMilliReserved, h.Attempts = 6*gib, 3000, 3

	d := packing.Decide([]berth.Host{h}, nil, []packing.Request{ask("1", 1, 1)})[0]
	require.False(t, d.Placed)
	require.False(t, d.Impossible, "it fits once they have ended")
	require.Equal(t, "host host-a: needs 1,024 MiB of memory, 0 bytes free", packing.Explain(d.Rejections(1)[0]))
}
