package packing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// full is a host of 4 cores and 4 GiB with this much memory in use.
func full(id string, gibibytes int64, attempts int) berth.Host {
	h := host(id, 4, 4)
	h.MemoryReservedBytes, h.CPUMilliReserved, h.Attempts = gibibytes*gib, int64(attempts)*100, attempts

	return h
}

// wide is a request that wants a host for itself, and has waited.
func wide(id string, waited time.Duration) packing.Request {
	return packing.Request{AttemptID: id, Demands: needs(berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true}), Waited: waited}
}

// decisionOf is the decision about one attempt.
func decisionOf(t *testing.T, decisions []packing.Decision, attempt string) packing.Decision {
	t.Helper()

	for _, d := range decisions {
		if d.AttemptID == attempt {
			return d
		}
	}

	require.Fail(t, "no decision", attempt)

	return packing.Decision{}
}

// A small sibling that takes the sweep's free place would open the host kept
// free for a wide one, again and again until the sweep has no small ones.
func TestDecide_AKeptHostTakesAPlaceOfItsSweep(t *testing.T) {
	t.Parallel()

	hosts := []berth.Host{full("a", 1, 1), full("b", 2, 2)}
	sweeps := map[string]packing.SweepLimit{"s": {MaxParallel: 3, Running: 2}}
	requests := []packing.Request{
		of("s", wide("wide", packing.DrainAfterExclusive+time.Minute)), of("s", ask("sibling", 1, 1)), of("t", ask("other", 1, 1)),
	}

	decisions := packing.Decide(hosts, sweeps, requests)
	require.Equal(t, packing.Place{HostID: "a"}, decisionOf(t, decisions, "wide").Kept)
	require.Equal(t, map[string]string{"other": "b"}, where(decisions))
	require.Equal(t, berth.DimensionSweep, decisionOf(t, decisions, "sibling").Rejections(1)[0].Dimension)

	requests[0].Kept, requests[2] = packing.Place{HostID: "a"}, of("t", ask("another", 1, 1))
	hosts[1] = full("b", 3, 3)
	decisions = packing.Decide(hosts, sweeps, requests)
	require.Equal(t, packing.Place{HostID: "a"}, decisionOf(t, decisions, "wide").Kept)
	require.Equal(t, map[string]string{"another": "b"}, where(decisions))
}

// While the host of the oldest is open to all, another may be kept for the next.
func TestDecide_AnOpenTurnKeepsNoOtherHostOpen(t *testing.T) {
	t.Parallel()

	hosts := []berth.Host{full("a", 3, 2), full("b", 4, 2)}
	large := ask("large", 3, 1)
	large.Waited = packing.DrainAfter + time.Minute

	for waited, kept := range map[time.Duration]string{20 * time.Minute: "", 90 * time.Minute: "b"} {
		old := wide("old", packing.DrainAfterExclusive+waited)
		decisions := packing.Decide(hosts, nil, []packing.Request{old, large})
		require.Equal(t, kept, decisionOf(t, decisions, "large").Kept.HostID, waited)
	}
}

// The places of attempts that a lost host holds are for their retries: a sibling
// in such a place runs beside them once the host is back.
func TestDecide_PlacesOfLostAttemptsAreForTheirRetries(t *testing.T) {
	t.Parallel()

	again := of("s", ask("again", 1, 1))
	again.Number, again.Away = 9, true
	sibling, other := of("s", ask("sibling", 1, 1)), of("t", ask("other", 1, 1))
	sibling.Waited = time.Minute

	for name, tt := range map[string]struct {
		limit packing.SweepLimit
		want  map[string]string
	}{
		"all are away":  {packing.SweepLimit{MaxParallel: 1, Away: 1}, map[string]string{"again": "a", "other": "a"}},
		"one runs":      {packing.SweepLimit{MaxParallel: 2, Running: 1, Away: 1}, map[string]string{"again": "a", "other": "a"}},
		"one is free":   {packing.SweepLimit{MaxParallel: 2, Away: 1}, map[string]string{"again": "a", "other": "a", "sibling": "a"}},
		"limit lowered": {packing.SweepLimit{MaxParallel: 1, Running: 1, Away: 1}, map[string]string{"other": "a"}},
		"without limit": {packing.SweepLimit{Away: 3}, map[string]string{"again": "a", "other": "a", "sibling": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sweeps := map[string]packing.SweepLimit{"s": tt.limit}
			require.Equal(t, tt.want, where(packing.Decide([]berth.Host{host("a", 4, 8)}, sweeps, []packing.Request{sibling, again, other})))
		})
	}
}

// Where nothing of the sweep runs, "max_parallel is reached" would be wrong: places are for
// the retries of what a lost host holds, and for a sibling that waits for the host kept for it.
func TestDecide_SaysThatPlacesAreForWhatIsAway(t *testing.T) {
	t.Parallel()

	const reached = "the sweep's max_parallel is reached"

	again, wide := of("s", ask("other", 16, 1)), of("s", ask("other", 8, 1))
	again.Away, wide.Waited = true, packing.DrainAfter // only the lost host could hold again
	lost, large := host("l", 4, 64), host("large", 4, 8)
	lost.State, large.MemoryReservedBytes, large.Attempts = berth.HostLost, gib, 1

	for name, tt := range map[string]struct {
		limit packing.SweepLimit
		kept  bool // for a sibling
		want  string
	}{
		"all are away":           {packing.SweepLimit{MaxParallel: 1, Away: 1}, false, "the sweep's max_parallel is 1: 0 running, 1 kept for attempts of a lost or unready host"},
		"one runs":               {packing.SweepLimit{MaxParallel: 3, Running: 1, Away: 2}, false, "the sweep's max_parallel is 3: 1 running, 2 kept for attempts of a lost or unready host"},
		"lowered":                {packing.SweepLimit{MaxParallel: 2, Running: 1, Away: 2}, false, "the sweep's max_parallel is 2: 1 running, 2 kept for attempts of a lost or unready host"},
		"all run":                {packing.SweepLimit{MaxParallel: 1, Running: 1, Away: 1}, false, reached},
		"one waits":              {packing.SweepLimit{MaxParallel: 1}, true, "the sweep's max_parallel is 1: 0 running, 1 waiting for a host that is kept free"},
		"one waits, one runs":    {packing.SweepLimit{MaxParallel: 2, Running: 1}, true, "the sweep's max_parallel is 2: 1 running, 1 waiting for a host that is kept free"},
		"one waits, one is away": {packing.SweepLimit{MaxParallel: 2, Away: 1}, true, "0 running, 1 waiting for a host that is kept free, 1 kept for attempts of a lost or unready host"},
		"one waits, all run":     {packing.SweepLimit{MaxParallel: 1, Running: 1}, true, reached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			hosts, other := []berth.Host{host("a", 4, 8), lost}, again
			if tt.kept {
				hosts, other = []berth.Host{large, host("small", 4, 2)}, wide
			}

			decisions := packing.Decide(hosts, map[string]packing.SweepLimit{"s": tt.limit}, []packing.Request{other, of("s", ask("sibling", 1, 1))})
			require.Equal(t, tt.kept && tt.want != reached, decisionOf(t, decisions, "other").Kept.HostID == "large")

			rejections := decisionOf(t, decisions, "sibling").Rejections(0)
			require.Len(t, rejections, 1)

			r := rejections[0]
			require.Equal(t, berth.DimensionSweep, r.Dimension)
			require.Contains(t, r.Reason, tt.want)
			require.Equal(t, strings.Contains(tt.want, "kept for attempts"), strings.Contains(r.Reason, "`berth host remove`"), r.Reason)
			require.Greater(t, r.Needed, r.Free)
		})
	}
}

// An attempt that must have a host alone asked for all of the largest host at
// that time. It gets all of its host now.
func TestDecide_TheLastAttemptGetsWhatItsHostHas(t *testing.T) {
	t.Parallel()

	small, large := host("small", 4, 16), host("large", 4, 64)
	small.Attempts, small.MemoryReservedBytes = 1, gib

	for name, tt := range map[string]struct {
		free, asked int64 // GiB
		shared      bool
		want        int64 // MiB
	}{
		"a host came that has more":             {64, 16, false, 64 << 10},
		"programs outside Berth use some of it": {40, 16, false, 38 << 10}, // except for a twentieth
		"they leave just enough":                {40, 39, false, 39 << 10},
		"it shares the host":                    {64, 16, true, 16 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := large
			h.MemoryFreeBytes = tt.free * gib
			last := but(ask("last", tt.asked, 1), func(d *berth.Demand) { d.Exclusive = !tt.shared })

			d := packing.Decide([]berth.Host{small, h}, nil, []packing.Request{last})[0]
			require.Equal(t, "large", d.Placement.HostID)
			require.Equal(t, tt.want<<20, d.Placement.Demand.MemoryBytes)
		})
	}
}
