package packing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// onGPU is a request for a GiB, a tenth of a core, and gibibytes GiB of a GPU.
func onGPU(id string, gibibytes int64) packing.Request {
	return packing.Request{AttemptID: id, Demands: berth.Demands{
		model: {MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gibibytes * gib},
	}}
}

// explained is why a request was not placed.
func explained(d packing.Decision) (why []string) {
	for _, r := range d.Rejections(0) {
		why = append(why, packing.Explain(r))
	}

	return why
}

// The need of an attempt depends on its device: it gets the demand for that
// class.
func TestDecide_DemandIsThatOfTheClass(t *testing.T) {
	t.Parallel()

	small, large := withDevices(host("a", 8, 64), 1, 8), withDevices(host("b", 8, 64), 1, 80)
	large.Devices[0].Model = "large"
	large.Devices[0].Mode, large.Devices[0].MPSContexts = berth.SharingMPS, 44

	demands := berth.Demands{
		berth.ClassCPU: {MemoryBytes: 70 * gib, CPUMilli: 1000},
		model:          {MemoryBytes: 2 * gib, CPUMilli: 1000, DeviceBytes: 9 * gib},
		"large (MPS)":  {MemoryBytes: 3 * gib, CPUMilli: 500, DeviceBytes: 10 * gib, Contexts: 2},
		"large":        {MemoryBytes: 3 * gib, CPUMilli: 500, DeviceBytes: 90 * gib},
	}
	request := packing.Request{AttemptID: "1", Demands: demands}

	d := packing.Decide([]berth.Host{small, large}, nil, []packing.Request{request})[0]
	require.Equal(t, berth.Placement{HostID: "b", DeviceID: "GPU-b-0", Class: "large (MPS)", Demand: demands["large (MPS)"]}, d.Placement)

	large.Devices[0].MPSContexts = 0
	d = packing.Decide([]berth.Host{small, large}, nil, []packing.Request{request})[0]
	require.True(t, d.Impossible)
	require.Equal(t, []string{
		"host host-a: needs 71,680 MiB of memory, 65,536 MiB there at all",
		"host host-a, GPU GPU-a-0: needs 9,216 MiB of GPU memory, 8,192 MiB there at all",
		"host host-b: needs 71,680 MiB of memory, 65,536 MiB there at all",
		"host host-b, GPU GPU-b-0: needs 92,160 MiB of GPU memory, 81,920 MiB there at all",
	}, explained(d))

	delete(demands, model)
	require.Contains(t, explained(packing.Decide([]berth.Host{small, large}, nil, []packing.Request{request})[0]),
		"host host-a: needs 71,680 MiB of memory, 65,536 MiB there at all")
}

// One attempt at a time of an unmeasured shape has a place, with a part of its GPU's free memory:
// a quarter for each of three shapes. The others wait for its measurement, and say so.
func TestDecide_OneMeasuresItsShape(t *testing.T) {
	t.Parallel()

	h := withDevices(host("a", 8, 64), 1, 80)
	guess := func(id, shape string) packing.Request {
		r := onGPU(id, 2)
		r.ShapeKey, r.Measures = shape, true

		return r
	}

	decisions := packing.Decide([]berth.Host{h}, nil, []packing.Request{guess("1", "s"), guess("2", "s"), guess("3", "t"), onGPU("4", 2), guess("5", "u")})
	bytes := make(map[string]int64)

	for _, d := range decisions {
		if bytes[d.AttemptID] = d.Placement.Demand.DeviceBytes / gib; !d.Placed {
			require.Equal(t, []string{"what trials like it hold of a GPU was never measured; it waits for the first of them to train for a while"}, explained(d))
		}
	}

	require.Equal(t, map[string]int64{"1": 20, "2": 0, "3": 20, "4": 2, "5": 19}, bytes, "the fourth has come in between")

	require.Equal(t, int64(40), packing.Decide([]berth.Host{h}, nil, []packing.Request{guess("1", "s"), guess("2", "s")})[0].Placement.Demand.DeviceBytes/gib)

	// The last GiB of a full GPU are enough for a guess.
	h.Devices[0].ReservedBytes = 77 * gib
	require.Equal(t, int64(2), packing.Decide([]berth.Host{h}, nil, []packing.Request{guess("1", "s")})[0].Placement.Demand.DeviceBytes/gib)

	second := onGPU("2", 2) // one runs already that measures it
	second.Unmeasured = true
	require.False(t, packing.Decide([]berth.Host{h}, nil, []packing.Request{second})[0].Placed)
}

// Every GPU gives its own reason why it takes no attempt, or none of this size.
func TestDecide_EachGPUSaysWhyNot(t *testing.T) {
	t.Parallel()

	h := withDevices(host("a", 8, 64), 9, 8)

	for i, change := range []func(d *berth.Device){
		func(d *berth.Device) { d.Problem = "it fell off the bus; restart the machine" },
		func(d *berth.Device) { d.ReservedBytes, d.Attempts = 7*gib, 2 },
		func(d *berth.Device) { d.FreeBytes = gib },
		func(d *berth.Device) { d.Attempts, d.MaxAttempts = 3, 3 },
		func(d *berth.Device) { d.Attempts, d.Mode = 1, berth.SharingExclusive },
		func(d *berth.Device) { d.ContextsReserved = 48 },
		func(d *berth.Device) { d.Attempts, d.Exclusive = 1, true },
		func(d *berth.Device) { d.MemoryBytes = gib },
		func(d *berth.Device) { d.CordonedAt, d.CordonReason = new(time.Unix(0, 0)), "its fan is loud" },
	} {
		change(&h.Devices[i])
	}

	d := packing.Decide([]berth.Host{h}, nil, []packing.Request{onGPU("1", 2)})[0]
	require.False(t, d.Placed)
	require.False(t, d.Impossible)
	require.Equal(t, []string{
		"host host-a, GPU GPU-a-0: it fell off the bus; restart the machine",
		"host host-a, GPU GPU-a-1: needs 2,048 MiB of GPU memory, 1,024 MiB free",
		"host host-a, GPU GPU-a-2: needs 2,048 MiB of GPU memory, 1,024 MiB free beside what programs outside Berth use",
		"host host-a, GPU GPU-a-3: already runs as many attempts as it may",
		"host host-a, GPU GPU-a-4: already runs as many attempts as it may",
		"host host-a, GPU GPU-a-5: needs 1 GPU context(s), 0 free",
		"host host-a, GPU GPU-a-6: one of the attempts must be alone there",
		"host host-a, GPU GPU-a-7: needs 2,048 MiB of GPU memory, 1,024 MiB there at all",
		"host host-a, GPU GPU-a-8: cordoned by a person (its fan is loud); `berth device ready GPU-a-8` lets it take trials again",
	}, explained(d))
}

// An attempt that wants a GPU alone leaves the rest of the host to others, and
// an attempt that wants a host alone does not.
func TestDecide_AloneOnAGPUOrOnAHost(t *testing.T) {
	t.Parallel()

	h := withDevices(host("a", 8, 64), 2, 8)
	alone := but(onGPU("1", 1), func(d *berth.Demand) { d.ExclusiveDevice = true })
	two, three := onGPU("2", 1), onGPU("3", 1)
	two.Number, three.Number = 2, 3

	got := where(packing.Decide([]berth.Host{h}, nil, []packing.Request{alone, two, three, ask("4", 1, 1)}))
	require.Equal(t, map[string]string{"1": "aGPU-a-0", "2": "aGPU-a-1", "3": "aGPU-a-1", "4": "a"}, got)

	placed := packing.Decide([]berth.Host{h}, nil, []packing.Request{alone, two})
	require.Equal(t, int64(8*gib), placed[0].Placement.Demand.DeviceBytes, "it gets all of the GPU")
	require.Equal(t, int64(gib), placed[1].Placement.Demand.DeviceBytes)

	used := h
	used.Devices = slices.Clone(h.Devices)
	used.Devices[0].FreeBytes, used.Devices[1].Attempts = 7*gib, 1
	placed = packing.Decide([]berth.Host{used}, nil, []packing.Request{alone})
	require.Equal(t, int64(7*gib), placed[0].Placement.Demand.DeviceBytes, "less what programs outside Berth hold")

	whole := but(onGPU("1", 1), func(d *berth.Demand) { d.Exclusive = true })
	decisions := packing.Decide([]berth.Host{h}, nil, []packing.Request{whole, two, ask("4", 1, 1)})
	require.Equal(t, map[string]string{"1": "aGPU-a-0"}, where(decisions))
	require.Equal(t, int64(64*gib), decisions[0].Placement.Demand.MemoryBytes, "it gets all of the host")
}

// The placer keeps one GPU free for a request that waited long, with room for
// it on the host. The other GPUs, and the cores, go on.
func TestDecide_KeepsOneGPUFree(t *testing.T) {
	t.Parallel()

	large := onGPU("large", 6)
	large.Waited = packing.DrainAfter

	h := withDevices(host("a", 8, 4), 4, 8)
	for i := range h.Devices {
		h.Devices[i].ReservedBytes, h.Devices[i].Attempts = int64(4+i%2)*gib, 1
	}

	requests := []packing.Request{large}

	for i := range 8 {
		small := onGPU(fmt.Sprint("small", i), 2)
		small.Number = i
		requests = append(requests, small)
	}

	decisions := packing.Decide([]berth.Host{h}, nil, requests)
	kept := packing.Place{HostID: "a", DeviceID: "GPU-a-0"}
	require.Equal(t, kept, decisions[0].Kept, "the nearest to fitting")
	require.Equal(t, []string{
		"host host-a, GPU GPU-a-0: needs 6,144 MiB of GPU memory, 4,096 MiB free",
		"host host-a, GPU GPU-a-1: needs 6,144 MiB of GPU memory, 1,024 MiB free",
		"host host-a, GPU GPU-a-2: needs 6,144 MiB of GPU memory, 2,048 MiB free",
		"host host-a, GPU GPU-a-3: needs 6,144 MiB of GPU memory, 1,024 MiB free",
	}, explained(decisions[0]))
	require.Equal(t, map[string]string{"small0": "aGPU-a-2", "small1": "aGPU-a-1", "small2": "aGPU-a-3"}, where(decisions),
		"three of the 4 GiB of the host: the last is for the large one")
	require.Contains(t, explained(decisions[len(decisions)-1]), "host host-a: needs 1,024 MiB of memory, 0 bytes free")

	h.Devices[2].ReservedBytes = 3 * gib
	requests[0].Kept = kept
	require.Equal(t, kept, packing.Decide([]berth.Host{h}, nil, requests[:1])[0].Kept, "it stays with the GPU that is being drained")

	// The turn is over: that GPU is open, and the next turn is for another one.
	requests[0].Waited = packing.DrainAfter + time.Hour
	d := packing.Decide([]berth.Host{h}, nil, requests[:1])[0]
	require.Zero(t, d.Kept)

	requests[0].Kept, requests[0].Waited = packing.Place{}, packing.DrainAfter+2*time.Hour
	require.Equal(t, "GPU-a-1", packing.Decide([]berth.Host{h}, nil, requests[:1])[0].Kept.DeviceID)

	// Without room beside the GPU the whole host has to become free.
	h.MemoryReservedBytes, h.Attempts = 4*gib, 4
	require.Equal(t, packing.Place{HostID: "a"}, packing.Decide([]berth.Host{h}, nil, requests[:1])[0].Kept)
}

// The attempts on a GPU share it in one mode, by MPS where they can. It takes
// another mode once all of them have ended.
func TestDecide_OneModeAtATime(t *testing.T) {
	t.Parallel()

	const byMPS = model + " (MPS)"

	h := withDevices(host("a", 8, 64), 1, 8)
	h.Devices[0].MPSContexts = 3
	d := berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib}
	either, sliced, mps := onGPU("either", 1), onGPU("slices", 1), onGPU("mps", 1)
	either.Demands, mps.Demands = berth.Demands{model: d, byMPS: d}, berth.Demands{byMPS: d}
	either.Number, sliced.Number, mps.Number = 1, 2, 3

	placed := func(requests ...packing.Request) (classes []berth.DeviceClass) {
		for _, d := range packing.Decide([]berth.Host{h}, nil, requests) {
			classes = append(classes, d.Placement.Class)
		}

		return classes
	}

	require.Equal(t, []berth.DeviceClass{byMPS, "", byMPS}, placed(either, sliced, mps), "the first decides")

	either.Number, mps.Number = 3, 1
	require.Equal(t, []berth.DeviceClass{byMPS, "", byMPS}, placed(either, sliced, mps))

	mps.Number = 4
	sliced.Number = 0
	require.Equal(t, []berth.DeviceClass{model, model, ""}, placed(either, sliced, mps), "one that can do either joins")

	h.Devices[0].Mode, h.Devices[0].Attempts, h.Devices[0].ContextsReserved = berth.SharingMPS, 2, 2
	require.Equal(t, []berth.DeviceClass{"", byMPS, ""}, placed(either, sliced, mps), "there are three contexts")

	got := packing.Decide([]berth.Host{h}, nil, []packing.Request{sliced})[0]
	require.Equal(t, []string{"host host-a, GPU GPU-a-0: 2 attempt(s) share it by MPS now, and this one is to share it by time slices: it waits for their end"}, explained(got))

	sliced.Waited = packing.DrainAfter
	got = packing.Decide([]berth.Host{h}, nil, []packing.Request{sliced, mps})[0]
	require.Equal(t, packing.Place{HostID: "a", DeviceID: "GPU-a-0"}, got.Kept, "it does not wait for ever")

	h.Devices[0].Mode, h.Devices[0].MPSContexts, h.Devices[0].Attempts, h.Devices[0].ContextsReserved = berth.SharingMPS, 0, 0, 0
	require.Equal(t, []berth.DeviceClass{model}, placed(either), "without a daemon there is no MPS")

	h.Devices[0].MPSContexts, h.Devices[0].MPSProblem = 3, "its MPS daemon does not run: no permission"
	got = packing.Decide([]berth.Host{h}, nil, []packing.Request{mps})[0]
	require.False(t, got.Placed || got.Impossible)
	require.Equal(t, []string{"host host-a, GPU GPU-a-0: its MPS daemon does not run: no permission"}, explained(got), "it waits for it")
	require.Equal(t, []berth.DeviceClass{model, ""}, placed(either, mps))
}

// What keeps a GPU full alone gets no company there, and joins none: it would gain
// nothing. What others leave, one more may use.
func TestDecide_AFullGPUTakesNoCompany(t *testing.T) {
	t.Parallel()

	h := withDevices(host("a", 128, 64), 2, 80)
	asks := func(n int, milli int64) (all []packing.Request) {
		for i := range n {
			all = append(all, but(onGPU(fmt.Sprintf("%03d", i), 1), func(d *berth.Demand) { d.DeviceActivity = milli }))
		}

		return all
	}
	counts := func(hosts []berth.Host, requests []packing.Request) (placed []int, why string) {
		on := map[string]int{}

		for _, d := range packing.Decide(hosts, nil, requests) {
			if d.Placed {
				on[d.Placement.DeviceID]++
			} else {
				why = packing.Explain(d.Rejections(1)[0])
			}
		}

		return []int{on["GPU-a-0"], on["GPU-a-1"]}, why
	}

	placed, why := counts([]berth.Host{h}, asks(4, 960))
	require.Equal(t, []int{1, 1}, placed, "one each")
	require.Equal(t, "host host-a, GPU GPU-a-0: keeps a GPU 96 % busy by itself, and 8 % are left there: beside what runs, all would be slower and no more done", why)

	placed, _ = counts([]berth.Host{h}, asks(10, 600))
	require.Equal(t, []int{2, 2}, placed, "two that take 60 % each gain from each other")

	placed, _ = counts([]berth.Host{h}, asks(100, 100))
	require.Equal(t, []int{19, 19}, placed)

	placed, _ = counts([]berth.Host{h}, asks(40, 0))
	require.Equal(t, []int{20, 20}, placed, "nothing is known of them")

	h.Devices[0].Attempts, h.Devices[0].ContextsReserved, h.Devices[0].ActivityReserved = 12, 12, 800
	placed, _ = counts([]berth.Host{h}, asks(1, 960))
	require.Equal(t, []int{0, 1}, placed)

	h.Devices = h.Devices[:1]
	h.Devices[0].ActivityReserved = 100
	require.True(t, packing.Decide([]berth.Host{h}, nil, asks(1, 1000))[0].Placed, "it does not wait for the end of what takes little")
}
