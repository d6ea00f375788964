package packing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// byEither is a request that can share a GPU in both modes.
func byEither(id string) packing.Request {
	d := berth.Demand{MemoryBytes: gib, CPUMilli: 1000, DeviceBytes: gib, DeviceActivity: 600}

	return packing.Request{AttemptID: id, Demands: berth.Demands{model: d, model + " (MPS)": d}}
}

// advised is a host of 4 cores whose GPU is advised to be shared like that.
func advised(c berth.Company) berth.Host {
	h := withDevices(host("a", 4, 64), 1, 80)
	h.Devices[0].MPSContexts = 44
	h.Devices[0].Advice = berth.Advice{Company: c, Capped: c.AtOnce > 0, Why: "as measured"}

	return h
}

func placedOf(decisions []packing.Decision) (placed []berth.Placement) {
	for _, d := range decisions {
		if d.Placed {
			placed = append(placed, d.Placement)
		}
	}

	return placed
}

// An advice replaces the rules that guess: how busy the GPU may be, and how many
// cores each attempt books. It does not change running attempts.
func TestDecide_Advice(t *testing.T) {
	t.Parallel()

	var requests []packing.Request
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		requests = append(requests, byEither(id))
	}

	require.Len(t, placedOf(packing.Decide([]berth.Host{advised(berth.Company{})}, nil, requests)), 2, "by activity")

	placed := placedOf(packing.Decide([]berth.Host{advised(berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 6})}, nil, requests))
	require.Len(t, placed, 6)
	require.Equal(t, berth.DeviceClass(model), placed[0].Class, "the advised mode")
	require.EqualValues(t, 666, placed[0].Demand.CPUMilli, "an even part of the cores")

	few := advised(berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 1})
	few.Devices[0].Advice.Capped = false
	require.Len(t, placedOf(packing.Decide([]berth.Host{few}, nil, requests)), 2, "the rule, where nothing says that more would not do more")

	for i := range requests {
		requests[i].CPUsGiven = true
	}

	placed = placedOf(packing.Decide([]berth.Host{advised(berth.Company{Mode: berth.SharingMPS, AtOnce: 6})}, nil, requests))
	require.Len(t, placed, 4, "the user's cores stand")
	require.Equal(t, berth.DeviceClass(model+" (MPS)"), placed[0].Class)

	small := advised(berth.Company{Mode: berth.SharingMPS, AtOnce: 6})
	small.Devices[0].MemoryBytes, small.Devices[0].FreeBytes = 3*gib, 3*gib
	require.Len(t, placedOf(packing.Decide([]berth.Host{small}, nil, requests)), 3, "memory binds")
}

// A GPU advised to use the other mode drains first; a request that cannot use that mode
// does not wait for it.
func TestDecide_AnAdvisedModeWaitsForAnEmptyGPU(t *testing.T) {
	t.Parallel()

	h := advised(berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 6})
	h.Devices[0].Mode, h.Devices[0].Attempts = berth.SharingMPS, 2

	d := packing.Decide([]berth.Host{h}, nil, []packing.Request{byEither("1")})[0]
	require.False(t, d.Placed)
	require.Equal(t, []string{
		"host host-a, GPU GPU-a-0: 2 attempt(s) share it by MPS, and it is to be shared by time slices once they have ended: as measured",
	}, explained(d))

	insists := byEither("1")
	delete(insists.Demands, model)
	require.True(t, packing.Decide([]berth.Host{h}, nil, []packing.Request{insists})[0].Placed)

	h.Devices[0].Attempts = 0
	require.Equal(t, berth.DeviceClass(model), packing.Decide([]berth.Host{h}, nil, []packing.Request{byEither("1")})[0].Placement.Class)
}
