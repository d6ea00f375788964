package activities

import (
	"testing"
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
