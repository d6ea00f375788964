package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// board is a ledger with one waiting trial and one host.
type board struct {
	Trials
	Placements

	host   berth.Host
	placed int // the look at which the request is placed; 0 = none
	looks  int
	err    error
}

func (b *board) PlannedTrial(context.Context, string, int, string) (berth.PlannedTrial, error) {
	return berth.PlannedTrial{Spec: berth.Spec{Resources: berth.Resources{Memory: 1 << 30, CPUs: berth.DefaultCPUMilli}}}, nil
}

func (b *board) RecentHosts(context.Context) ([]berth.Host, error) { return []berth.Host{b.host}, nil }

func (b *board) RequestPlacement(context.Context, berth.PlacementRequest) (berth.PlacementStatus, error) {
	return berth.PlacementStatus{State: berth.RequestWaiting}, nil
}

func (b *board) PlacementStatus(context.Context, string) (berth.PlacementStatus, error) {
	b.looks++
	if b.looks == b.placed {
		return berth.PlacementStatus{State: berth.RequestPlaced, HostID: b.host.ID}, b.err
	}

	return berth.PlacementStatus{State: berth.RequestWaiting}, b.err
}

// A request for which there is room is answered by the decision when that comes
// within a moment. All others wait for a signal, and cost the ledger nothing.
func TestRequestPlacement_WaitsAMomentForTheDecision(t *testing.T) {
	t.Parallel()

	empty := berth.Host{ID: "h", State: berth.HostReady, MemoryBytes: 2 << 30, MemoryFreeBytes: 2 << 30, CPUMilli: 2000}
	with := func(change func(h *berth.Host)) berth.Host {
		h := empty
		change(&h)

		return h
	}

	for name, test := range map[string]struct {
		board board
		state berth.RequestState
		looks int
	}{
		"placed at once":  {board{host: empty, placed: 2}, berth.RequestPlaced, 2},
		"not placed":      {board{host: empty}, berth.RequestWaiting, 7},
		"ledger away":     {board{host: empty, err: berth.Errorf(berth.KindUnavailable, "gone")}, berth.RequestWaiting, 1},
		"memory is taken": {board{host: with(func(h *berth.Host) { h.MemoryReservedBytes = 3 << 29 })}, berth.RequestWaiting, 0},
		"cores are taken": {board{host: with(func(h *berth.Host) { h.CPUMilliReserved = 1500 })}, berth.RequestWaiting, 0},
		"alone there":     {board{host: with(func(h *berth.Host) { h.Exclusive = true })}, berth.RequestWaiting, 0},
		"memory is used":  {board{host: with(func(h *berth.Host) { h.MemoryFreeBytes = 1 << 29 })}, berth.RequestWaiting, 0},
		"disk is full":    {board{host: with(func(h *berth.Host) { h.DiskHeadroomBytes = 1 })}, berth.RequestWaiting, 0},
		"no more at once": {board{host: with(func(h *berth.Host) { h.Attempts, h.MaxAttempts = 1, 1 })}, berth.RequestWaiting, 0},
		"cordoned":        {board{host: with(func(h *berth.Host) { h.CordonedAt, h.CordonSweep = new(time.Unix(0, 0)), "s" })}, berth.RequestWaiting, 0},
		"lacks the image": {board{host: with(func(h *berth.Host) {
			h.MissingImages = []berth.MissingImage{{SweepID: "s", Cordoned: true}}
		})}, berth.RequestWaiting, 0},
		"host is lost": {board{host: with(func(h *berth.Host) { h.State = berth.HostLost })}, berth.RequestWaiting, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				b := test.board
				a := &Activities{Trials: &b, Placements: &b}

				result, err := a.RequestPlacement(t.Context(), PlaceInput{SweepID: "s", AttemptID: "a"})
				require.NoError(t, err)
				require.Equal(t, test.state, result.Status.State)
				require.Equal(t, test.looks, b.looks)
			})
		})
	}
}
