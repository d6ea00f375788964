package packing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// cordoned is a host that takes no attempt of the sweep, or of any when it is empty.
func cordoned(id, sweep string, testDue bool) berth.Host {
	h := host(id, 4, 8)
	h.FailedStarts, h.CordonedAt, h.CordonReason, h.CordonSweep, h.TestDue = 3, new(time.Unix(0, 0)), "runc: no", sweep, testDue

	return h
}

// of gives a request to a sweep.
func of(sweep string, r packing.Request) packing.Request {
	r.SweepID = sweep

	return r
}

// lacks is a host that lacks the image of a sweep.
func lacks(id, sweep string, cordoned, testDue bool) berth.Host {
	h := host(id, 4, 8)
	h.MissingImages = []berth.MissingImage{
		{SweepID: "z", Reason: "image z", Cordoned: true},
		{SweepID: sweep, Reason: "image " + sweep, Cordoned: cordoned, TestDue: testDue},
	}

	return h
}

func TestDecide_ACordonedHostTakesOneTestAttempt(t *testing.T) {
	t.Parallel()

	busy := host("b", 4, 8)
	busy.MemoryReservedBytes, busy.CPUMilliReserved, busy.Attempts = 4*gib, 2000, 2

	for name, tt := range map[string]struct {
		sick     berth.Host
		requests []packing.Request
		want     map[string]string
	}{
		"none is due":                    {cordoned("a", "", false), []packing.Request{ask("1", 1, 1), ask("2", 1, 1), ask("3", 1, 1)}, map[string]string{"1": "b", "2": "b"}},
		"one is due":                     {cordoned("a", "", true), []packing.Request{ask("1", 1, 1), ask("2", 1, 1), ask("3", 1, 1)}, map[string]string{"1": "a", "2": "b", "3": "b"}},
		"it is another sweep's":          {cordoned("a", "x", false), []packing.Request{of("x", ask("1", 2, 1)), of("x", ask("2", 2, 1)), of("x", ask("3", 2, 1)), of("y", ask("4", 2, 1))}, map[string]string{"1": "b", "2": "b", "4": "a"}},
		"an image of another sweep":      {lacks("a", "x", true, false), []packing.Request{of("x", ask("1", 2, 1)), of("x", ask("2", 2, 1)), of("x", ask("3", 2, 1)), of("y", ask("4", 2, 1))}, map[string]string{"1": "b", "2": "b", "4": "a"}},
		"a test for an image is due":     {lacks("a", "x", true, true), []packing.Request{of("x", ask("1", 2, 1)), of("x", ask("2", 2, 1)), of("x", ask("3", 2, 1)), of("x", ask("4", 2, 1))}, map[string]string{"1": "a", "2": "b", "3": "b"}},
		"an image was missing once":      {lacks("a", "x", false, false), []packing.Request{of("x", ask("1", 2, 1)), of("x", ask("2", 2, 1)), of("x", ask("3", 2, 1))}, map[string]string{"1": "b", "2": "b", "3": "a"}},
		"another sweep is not kept away": {cordoned("a", "x", true), []packing.Request{of("x", ask("1", 1, 1)), of("y", ask("0", 8, 2))}, map[string]string{"1": "b", "0": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, where(packing.Decide([]berth.Host{tt.sick, busy}, nil, tt.requests)))
		})
	}
}

// One finding is enough for the trial that found its image missing, as long as
// another host may hold it: a host that lacks the image is the emptiest of all.
func TestDecide_ATrialDoesNotGoBackToWhereItsImageIsMissing(t *testing.T) {
	t.Parallel()

	again, sibling := of("x", ask("1", 4, 1)), of("x", ask("2", 4, 1))
	again.FailedHosts = []string{"a"}

	busy, small, drained := host("b", 4, 8), host("b", 4, 2), host("b", 4, 8)
	busy.MemoryReservedBytes, busy.Attempts = 8*gib, 1
	drained.State = berth.HostDraining
	missing := lacks("a", "x", false, false)

	for name, tt := range map[string]struct {
		hosts    []berth.Host
		requests []packing.Request
		want     map[string]string
	}{
		"it waits for the other host":       {[]berth.Host{missing, busy}, []packing.Request{again}, map[string]string{}},
		"its sibling looks there":           {[]berth.Host{missing, busy}, []packing.Request{again, sibling}, map[string]string{"2": "a"}},
		"it takes the other host":           {[]berth.Host{missing, host("b", 4, 8)}, []packing.Request{again}, map[string]string{"1": "b"}},
		"the other host is too small":       {[]berth.Host{missing, small}, []packing.Request{again}, map[string]string{"1": "a"}},
		"the other host takes none":         {[]berth.Host{missing, drained}, []packing.Request{again}, map[string]string{"1": "a"}},
		"the other host lacks it, too":      {[]berth.Host{missing, lacks("b", "x", false, false)}, []packing.Request{again}, map[string]string{"1": "b"}},
		"it failed there for another cause": {[]berth.Host{lacks("a", "y", false, false), busy}, []packing.Request{again}, map[string]string{"1": "a"}},
		"there is no other host":            {[]berth.Host{missing}, []packing.Request{again}, map[string]string{"1": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, where(packing.Decide(tt.hosts, nil, tt.requests)))
		})
	}

	again.Waited = time.Hour

	for host, says := range map[*berth.Host]string{
		new(cordoned("a", "", false)):     "host host-a: cordoned, as it failed to start several trials in a row; Berth tests it now and then. The last failure: runc: no",
		new(lacks("a", "x", true, false)): "host host-a: cordoned for this sweep, as its image was missing there several times in a row; Berth tests it now and then. The last failure: image x",
	} {
		d := packing.Decide([]berth.Host{*host}, nil, []packing.Request{again})[0]
		require.False(t, d.Impossible)
		require.Zero(t, d.Kept)
		require.Equal(t, says, packing.Explain(d.Rejections(1)[0]))
	}

	d := packing.Decide([]berth.Host{missing, busy}, nil, []packing.Request{again})[0]
	require.Equal(t, packing.Place{HostID: "b"}, d.Kept)
	require.Equal(t, "host host-a: the image was missing there; another host may have it, and Berth tries this one again later. "+
		"The last failure: image x", packing.Explain(d.Rejections(1)[0]))
}

// A removed host, or one that came back smaller, prevents that a request only
// it could hold counts as impossible, and takes nothing.
func TestDecide_WaitsForAFormerHost(t *testing.T) {
	t.Parallel()

	former := host("b", 8, 64)
	former.State, former.Problem, former.FormerUntil = berth.HostFormer, "it was removed", time.Unix(0, 0)
	longer := former
	longer.FormerUntil = time.Unix(60, 0)

	small, large, huge := ask("1", 4, 1), ask("2", 32, 1), ask("3", 65, 1)
	large.Waited = time.Hour

	decisions := packing.Decide([]berth.Host{former, longer, host("a", 4, 8)}, nil, []packing.Request{small, large, huge})
	require.Equal(t, map[string]string{"1": "a"}, where(decisions))

	for _, d := range decisions {
		require.Equal(t, d.AttemptID == "3", d.Impossible)
		require.Zero(t, d.Kept)

		if d.AttemptID == "2" {
			require.Len(t, d.Rejections(0), 2)
			require.Equal(t, "host host-b: it was removed, and no other host could hold the attempt; "+
				"the trial waits until 1970-01-01 00:01 UTC for one that does, and ends then", packing.Explain(d.Rejections(1)[0]))
		}
	}
}

// A host that fails each start at once is the emptiest of all, and a trial that
// failed there would come back to it for ever.
func TestDecide_PrefersHostsThatStartContainers(t *testing.T) {
	t.Parallel()

	failing := host("a", 4, 8)
	failing.FailedStarts = 1

	busy := host("b", 4, 8)
	busy.MemoryReservedBytes, busy.CPUMilliReserved, busy.Attempts = 4*gib, 3000, 3

	got := where(packing.Decide([]berth.Host{failing, busy}, nil, []packing.Request{ask("1", 1, 1), ask("2", 1, 1)}))
	require.Equal(t, map[string]string{"1": "b", "2": "a"}, got, "a is better than no host")

	silent := host("c", 4, 8)
	silent.Late = true

	got = where(packing.Decide([]berth.Host{silent, failing}, nil, []packing.Request{ask("1", 1, 1)}))
	require.Equal(t, map[string]string{"1": "a"}, got, "a host that may be gone comes last")
	got = where(packing.Decide([]berth.Host{silent}, nil, []packing.Request{ask("1", 1, 1)}))
	require.Equal(t, map[string]string{"1": "c"}, got, "and is better than no host")

	again := ask("1", 1, 1)
	again.FailedHosts = []string{"a"}

	healthy := host("a", 4, 8)
	require.Equal(t, map[string]string{"1": "b"}, where(packing.Decide([]berth.Host{healthy, busy}, nil, []packing.Request{again})))
	require.Equal(t, map[string]string{"1": "a"}, where(packing.Decide([]berth.Host{healthy}, nil, []packing.Request{again})))
}
