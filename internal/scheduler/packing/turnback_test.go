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

// slicedGPU is one GPU of 80 GiB over time, with its running and waiting
// attempts.
type slicedGPU struct {
	host    berth.Host
	now     time.Duration
	ends    []time.Duration
	waiting []packing.Request
	took    time.Duration // that each of them runs
	n       int
	longest time.Duration // that a request waited
	closed  time.Duration // in which a request that found room was not placed
	why     string        // the last reason of those
}

const step = 10 * time.Second

// newSlicedGPU has one attempt that had to share by time slices and runs for first;
// the others run for others.
func newSlicedGPU(first, others time.Duration) *slicedGPU {
	g := &slicedGPU{host: withDevices(host("a", 64, 256), 1, 80), took: others, ends: []time.Duration{first}}
	g.host.Devices[0].MPSContexts = 44
	g.host.Devices[0].Attempts, g.host.Devices[0].ReservedBytes, g.host.Devices[0].ContextsReserved = 1, gib, 1

	return g
}

// auto is a request that can share in either mode.
func auto(id string) packing.Request {
	d := berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib, Contexts: 1}

	return packing.Request{AttemptID: id, Demands: berth.Demands{model: d, model + " (MPS)": d}}
}

// step runs a round with this many waiting requests, with room for twelve.
func (g *slicedGPU) step(t *testing.T, waiting int) {
	t.Helper()

	dev := &g.host.Devices[0]
	g.now += step
	g.ends = slices.DeleteFunc(g.ends, func(end time.Duration) bool { return end <= g.now })
	dev.MaxAttempts, dev.Attempts = 12, len(g.ends)
	dev.ReservedBytes, dev.ContextsReserved = int64(len(g.ends))*gib, len(g.ends)
	g.host.MemoryReservedBytes, g.host.CPUMilliReserved, g.host.Attempts = dev.ReservedBytes, int64(dev.Attempts)*100, dev.Attempts

	if packing.Sliced(*dev) {
		dev.SlicedFor += step
	} else {
		dev.SlicedFor = 0
	}

	for len(g.waiting) < waiting {
		g.n++
		g.waiting = append(g.waiting, auto(fmt.Sprint(g.n)))
	}

	before, placed := dev.Attempts, 0

	for _, d := range packing.Decide([]berth.Host{g.host}, nil, g.waiting) {
		if d.Placed {
			placed++
			dev.Mode = d.Placement.Class.Mode()
			g.ends = append(g.ends, g.now+g.took)
			g.waiting = slices.DeleteFunc(g.waiting, func(r packing.Request) bool { return r.AttemptID == d.AttemptID })
		} else if rejections := d.Rejections(0); before < 12 && placed == 0 && len(rejections) > 0 {
			g.why = packing.Explain(rejections[0])
		}
	}

	if before < 12 && placed == 0 && len(g.waiting) > 0 {
		g.closed += step
	}

	for i := range g.waiting {
		g.waiting[i].Waited += step
		g.longest = max(g.longest, g.waiting[i].Waited)
	}
}

// While trials keep coming, a GPU that once had to be shared by time slices comes back to
// MPS: with trials of a few minutes within the first turn, with longer ones in a later turn.
func TestDecide_AGPUComesBackToMPS(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ first, others, within time.Duration }{
		{5 * time.Minute, 2 * time.Minute, 10 * time.Minute}, {3 * time.Hour, 25 * time.Minute, 10 * time.Hour},
	} {
		g := newSlicedGPU(tt.first, tt.others)
		for g.host.Devices[0].Mode != berth.SharingMPS {
			g.step(t, 20)
			require.Less(t, g.now, tt.within)
		}

		require.Contains(t, g.why, "min at most it takes none that can share it by MPS, so that it comes back to MPS at their end")

		closed := g.closed
		for range 500 {
			g.step(t, 20)
			require.Equal(t, berth.SharingMPS, g.host.Devices[0].Mode)
		}

		require.Equal(t, closed, g.closed)
	}
}

// An attempt of days costs its GPU at most a sixth of the time, and no request waits
// longer than a turn and the running attempts.
func TestDecide_AGPUThatNeverDrainsStaysOpen(t *testing.T) {
	t.Parallel()

	g := newSlicedGPU(1000*time.Hour, 2*time.Minute)
	for g.now < 100*time.Hour {
		g.step(t, 20)
		require.Equal(t, berth.SharingTimeSlicing, g.host.Devices[0].Mode)
	}

	require.LessOrEqual(t, g.closed, g.now/6+10*time.Minute)
	require.Greater(t, g.closed, g.now/10, "it tries")
	require.Less(t, g.longest, time.Hour+10*time.Minute)
}

// Where MPS gains little no request waits for it: three attempts are too few, and
// requests beyond the limit of their sweep do not count.
func TestDecide_FewAttemptsDoNotWaitForMPS(t *testing.T) {
	t.Parallel()

	h := newSlicedGPU(time.Hour, time.Minute).host
	h.Devices[0].SlicedFor = time.Minute

	for waiting, placed := range map[int]bool{1: true, 2: true, 3: false, 9: false} {
		var requests []packing.Request
		for i := range waiting {
			requests = append(requests, auto(fmt.Sprint(i)))
			requests[i].SweepID = "s"
		}

		for _, d := range packing.Decide([]berth.Host{h}, nil, requests) {
			require.Equal(t, placed, d.Placed, "%d wait", waiting)
		}

		decisions := packing.Decide([]berth.Host{h}, map[string]packing.SweepLimit{"s": {MaxParallel: 3, Running: 1}}, requests)
		require.True(t, decisions[0].Placed, "of %d two may run", waiting)
	}
}

// Requests that must share by time slices are still placed, another GPU takes the
// requests that this one refuses, and of several GPUs a quarter drains at once.
func TestDecide_AClosedGPUAndOthers(t *testing.T) {
	t.Parallel()

	h := newSlicedGPU(time.Hour, time.Minute).host
	h.Devices[0].SlicedFor = time.Minute

	requests := []packing.Request{auto("1"), auto("2"), auto("3"), auto("4"), onGPU("slices", 1)}
	for i := range requests {
		requests[i].Waited = time.Hour // they are overdue
	}

	for _, d := range packing.Decide([]berth.Host{h}, nil, requests) {
		require.Equal(t, d.AttemptID == "slices", d.Placed, d.AttemptID)
		require.Zero(t, d.Kept, "they keep nothing else free")
	}

	for i := range requests {
		requests[i].Waited = 0
	}

	h.Devices[0].MPSProblem = "its daemon does not run"
	for _, d := range packing.Decide([]berth.Host{h}, nil, requests) {
		require.True(t, d.Placed, "time slices are what it has")
	}

	h.Devices[0].MPSProblem = ""
	for i := range 8 {
		dev := h.Devices[0]
		dev.ID = fmt.Sprintf("GPU-%d", i)
		h.Devices = append(h.Devices, dev)
	}

	h.Devices = h.Devices[1:]
	on := map[string]int{}

	for range 40 {
		requests = append(requests, auto(fmt.Sprint(len(requests))))
	}

	for _, d := range packing.Decide([]berth.Host{h}, nil, requests) {
		require.True(t, d.Placed)
		on[d.Placement.DeviceID]++
	}

	require.Len(t, on, 6+1, "two of eight drain, but for what shares by time slices anyway")
}
