package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

const gib = 1 << 30

// machine is a host of four cores with this many GiB; programs outside Berth
// leave free of them.
func machine(state berth.HostState, gibibytes, free int64) berth.Host {
	return berth.Host{State: state, CPUMilli: 4000, MemoryBytes: gibibytes * gib, MemoryFreeBytes: free * gib}
}

func ranOut(had int64, count int) *berth.LastOOM {
	return &berth.LastOOM{Demand: berth.Demand{MemoryBytes: had * gib, CPUMilli: 1000}, PeakBytes: had * gib, Count: count, Max: 3}
}

func measuredAt(peak, floor int64) *berth.Footprint {
	return &berth.Footprint{Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: peak * gib, MemoryFloorBytes: floor * gib}
}

// The size of an attempt comes from the live hosts: a lost one must not make
// every other trial wait for it.
func TestSize(t *testing.T) {
	t.Parallel()

	small, lost, former := machine(berth.HostReady, 16, 16), machine(berth.HostLost, 128, 128), machine(berth.HostFormer, 64, 64)
	both := []berth.Host{small, lost}
	removed, gone := []berth.Host{small, former}, []berth.Host{machine(berth.HostLost, 2, 2), former}
	lacking := machine(berth.HostReady, 64, 64)
	lacking.MissingImages = []berth.MissingImage{{SweepID: "s", Cordoned: true}}
	elsewhere := machine(berth.HostReady, 64, 64)
	elsewhere.MissingImages = []berth.MissingImage{{SweepID: "another", Cordoned: true}}
	elsewhere.CordonedAt, elsewhere.CordonSweep = new(time.Unix(0, 0)), "another"
	narrow := machine(berth.HostReady, 64, 64)
	narrow.CPUMilli = 500
	raised, third := measuredAt(10, 16), ranOut(4, 2)
	partial := &berth.Footprint{Source: berth.FootprintPartial, MemoryPeakBytes: 10 * gib, MemoryFloorBytes: 16 * gib}
	used := []berth.Host{machine(berth.HostReady, 32, 16)} // programs outside Berth use half of it

	const left = 15*gib + 3*gib/16 // of 16 GiB a twentieth less, in steps of 64 MiB

	for name, tt := range map[string]struct {
		hosts      []berth.Host
		footprint  *berth.Footprint
		last       *berth.LastOOM
		want       int64
		infeasible bool
	}{
		"nothing is known":                      {hosts: []berth.Host{small}, want: 4 * gib},
		"nothing is known, nor of any host":     {want: 4 * gib},
		"a shape that only the lost host holds": {hosts: both, footprint: measuredAt(60, 0), want: 63 * gib},
		"one that only a former host held":      {hosts: removed, footprint: measuredAt(40, 0), want: 42 * gib},
		"one that no host ever held":            {hosts: removed, footprint: measuredAt(100, 0), want: 16 * gib},
		"a former host does not size a guess":   {hosts: gone, want: gib / 2},
		"one that waits for its image":          {hosts: []berth.Host{small, lacking}, footprint: measuredAt(60, 0), want: 63 * gib},

		"what another trial added does not wait for a lost host": {hosts: both, footprint: raised, want: 16 * gib},
		"nor for a former one":            {hosts: removed, footprint: raised, want: 16 * gib},
		"nor for one without the cores":   {hosts: []berth.Host{small, narrow}, footprint: raised, want: 16 * gib},
		"nor for programs outside Berth":  {hosts: used, footprint: raised, want: left},
		"what was measured does":          {hosts: used, footprint: measuredAt(18, 0), want: 18*gib + 928*mib},
		"what was measured in part, too":  {hosts: used, footprint: partial, want: 24 * gib},
		"and a guess":                     {hosts: []berth.Host{machine(berth.HostReady, 32, 1)}, want: 4 * gib},
		"programs outside Berth hold all": {hosts: []berth.Host{machine(berth.HostReady, 32, 0)}, footprint: raised, want: 24 * gib},

		"a step more": {hosts: []berth.Host{small}, last: ranOut(4, 1), want: 6 * gib},
		"the last attempt takes the whole of a host that is there": {hosts: both, last: third, want: 16 * gib},
		"so it does where the shape was measured":                  {hosts: both, footprint: measuredAt(3, 0), last: third, want: 16 * gib},
		"the larger host lacks the image":                          {hosts: []berth.Host{small, lacking}, last: third, want: 16 * gib},
		"the larger host is cordoned for another sweep":            {hosts: []berth.Host{small, elsewhere}, last: third, want: 64 * gib},
		"no host is there":                                         {hosts: []berth.Host{lost}, last: third, want: 128 * gib},
		"none is even known":                                       {last: ranOut(4, 1), want: 6 * gib},
		"another run has measured more":                            {hosts: []berth.Host{small}, footprint: measuredAt(10, 0), last: ranOut(4, 1), want: 10*gib + gib/2},

		"the lost host has a whole step":              {hosts: both, last: ranOut(15, 1), want: 22*gib + gib/2},
		"a former host has it":                        {hosts: removed, last: ranOut(15, 1), want: 22*gib + gib/2},
		"what another trial added is no step":         {hosts: both, footprint: raised, last: ranOut(15, 1), want: 22*gib + gib/2},
		"none has a whole step":                       {hosts: []berth.Host{small}, last: ranOut(15, 1), want: 16 * gib},
		"none has more":                               {hosts: []berth.Host{small}, last: ranOut(16, 1), want: 24 * gib, infeasible: true},
		"the lost host is the only one that has more": {hosts: both, footprint: raised, last: ranOut(16, 1), want: 24 * gib},
		"there are no more attempts":                  {hosts: both, last: ranOut(4, 3), want: 4 * gib, infeasible: true},

		"programs outside leave a whole step":          {hosts: used, footprint: raised, last: ranOut(8, 1), want: left},
		"they leave less":                              {hosts: used, footprint: raised, last: ranOut(15, 1), want: 24 * gib},
		"the last attempt takes what they leave":       {hosts: used, last: ranOut(10, 2), want: left},
		"but not if that is hardly more":               {hosts: used, last: ranOut(12, 2), want: 18 * gib},
		"nor less than a sibling was measured to need": {hosts: used, footprint: measuredAt(18, 16), last: ranOut(10, 2), want: 24 * gib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d, ok := memory.Size(memory.Ask{SweepID: "s", Last: tt.last}, tt.footprint, tt.hosts)
			require.Equal(t, tt.infeasible, !ok)
			require.InDelta(t, float64(tt.want)/gib, float64(d.MemoryBytes)/gib, 0.0001)
			require.Positive(t, d.CPUMilli)
		})
	}
}

// The user's value stands, whatever happened to other trials of the shape and
// whatever the hosts have. A trial that ran out of it grows.
func TestSize_TheUsersSizeStands(t *testing.T) {
	t.Parallel()

	written := berth.Resources{Memory: 2 * gib, CPUs: 1500}
	hosts := []berth.Host{machine(berth.HostReady, 32, 1)}

	for _, f := range []*berth.Footprint{nil, measuredAt(10, 16), measuredAt(1, 0)} {
		d, ok := memory.Size(memory.Ask{Resources: written}, f, hosts)
		require.True(t, ok)
		require.Equal(t, berth.Demand{MemoryBytes: 2 * gib, CPUMilli: 1500}, d)
	}

	d, ok := memory.Size(memory.Ask{Resources: written, Last: ranOut(2, 1)}, nil, hosts)
	require.True(t, ok)
	require.Equal(t, berth.Demand{MemoryBytes: 3 * gib, CPUMilli: 1500}, d)
}
