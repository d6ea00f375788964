package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The size of an attempt comes from the hosts that are there: one that is lost
// must not make every other trial wait for it.
func TestSizeFor(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	host := func(state berth.HostState, memory int64) berth.Host {
		return berth.Host{State: state, MemoryBytes: memory, MemoryFreeBytes: memory}
	}
	small, lost := host(berth.HostReady, 16*gib), host(berth.HostLost, 128*gib)
	both := []berth.Host{small, lost}
	former := host(berth.HostFormer, 64*gib)
	removed, gone := []berth.Host{small, former}, []berth.Host{host(berth.HostLost, 2*gib), former}
	lacking := host(berth.HostReady, 64*gib)
	lacking.MissingImages = []berth.MissingImage{{SweepID: "s", Cordoned: true}}
	elsewhere := host(berth.HostReady, 64*gib)
	elsewhere.MissingImages = []berth.MissingImage{{SweepID: "another", Cordoned: true}}
	elsewhere.CordonedAt, elsewhere.CordonSweep = new(time.Unix(0, 0)), "another"
	raised := &berth.Footprint{Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: 10 * gib, MemoryFloorBytes: 16 * gib}

	third := func(had int64) *LastOOM {
		return &LastOOM{Demand: berth.Demand{MemoryBytes: had, CPUMilli: 1000}, PeakBytes: had, Count: 2, Max: 3}
	}
	measured := func(peak int64) *berth.Footprint {
		return &berth.Footprint{Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: peak}
	}

	for name, tt := range map[string]struct {
		hosts       []berth.Host
		footprint   *berth.Footprint
		last        *LastOOM
		least, most int64
		infeasible  bool
	}{
		"the last attempt takes the whole of a host that is there": {both, nil, third(4 * gib), 8 * gib, 16 * gib, false},
		"so it does where the shape was measured":                  {both, measured(3 * gib), third(4 * gib), 8 * gib, 16 * gib, false},
		"a shape that only the lost host holds waits for it":       {both, measured(60 * gib), nil, 60 * gib, 128 * gib, false},
		"what used all of the small host waits for it as well":     {both, measured(15 * gib), third(16 * gib), 17 * gib, 128 * gib, false},
		"no host is there": {[]berth.Host{lost}, nil, third(4 * gib), 8 * gib, 128 * gib, false},
		"a shape that only a former host held waits for its replacement": {removed, measured(40 * gib), nil, 40 * gib, 64 * gib, false},
		"what used all of the small host waits for one as well":          {removed, measured(15 * gib), third(16 * gib), 17 * gib, 64 * gib, false},
		"what an out-of-memory added does not wait for it":               {removed, raised, nil, 10 * gib, 16 * gib, false},
		"nor for the lost host":                                          {both, raised, nil, 10 * gib, 16 * gib, false},
		"but the trial that ran out of memory does":                      {both, raised, third(16 * gib), 17 * gib, 128 * gib, false},
		"the larger host lacks the image":                                {[]berth.Host{small, lacking}, nil, third(4 * gib), 8 * gib, 16 * gib, false},
		"what was measured waits for its image there":                    {[]berth.Host{small, lacking}, measured(60 * gib), nil, 60 * gib, 64 * gib, false},
		"the larger host is cordoned for another sweep":                  {[]berth.Host{small, elsewhere}, nil, third(4 * gib), 60 * gib, 64 * gib, false},
		"nor does what no host ever held":                                {removed, measured(100 * gib), nil, 16 * gib, 16 * gib, false},
		"nor a shape that nothing is known of":                           {gone, nil, nil, 1, 2 * gib, false},
		"there is nothing larger at all":                                 {[]berth.Host{small}, nil, third(16 * gib), 0, 16 * gib, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d, ok := sizeFor("s", berth.Resources{}, tt.footprint, tt.last, tt.hosts)
			require.Equal(t, tt.infeasible, !ok)
			require.GreaterOrEqual(t, d.MemoryBytes, tt.least)
			require.LessOrEqual(t, d.MemoryBytes, tt.most)
		})
	}
}

// board is a ledger with one waiting trial and one host.
type board struct {
	Trials
	Placements

	host   berth.Host
	placed int // the look at which the request is placed; 0 = none
	looks  int
	err    error
}

func (b *board) PlannedTrial(context.Context, string, int) (berth.PlannedTrial, error) {
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
