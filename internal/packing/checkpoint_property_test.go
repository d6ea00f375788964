package packing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// drawCheckpoints is a world whose trials have checkpoints, and whose hosts have stores or not.
func drawCheckpoints(t *rapid.T) world {
	w := drawWorld(t)
	some := func(of string) []string {
		return rapid.SampledFrom([][]string{nil, nil, nil, {"h0"}, {"h1", "h1", "h1"}, {"h0", "h1"}}).Draw(t, of)
	}

	for i := range w.hosts {
		h := &w.hosts[i]
		h.StoresCheckpoints = rapid.Bool().Draw(t, "stores")
		h.FetchBytes = gib * rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "fetches")
		h.DiskFreeBytes = gib * rapid.SampledFrom([]int64{1, 2, 4, 8}).Draw(t, "disk free")
		h.DiskBytes = gib * rapid.SampledFrom([]int64{0, 8, 50}).Draw(t, "disk")
		h.Drained = h.State == berth.HostDraining || h.State == berth.HostLost && rapid.Bool().Draw(t, "drained")

		if rapid.Bool().Draw(t, "two disks") {
			h.FilesDiskBytes = gib * rapid.SampledFrom([]int64{5, 50}).Draw(t, "disk for files")
			h.FilesFreeBytes = min(gib*rapid.SampledFrom([]int64{2, 4, 40}).Draw(t, "free for files"), h.FilesDiskBytes)
		}

		if rapid.IntRange(0, 4).Draw(t, "unready") == 0 && h.State == berth.HostReady {
			h.State, h.Problem = berth.HostUnready, "Docker does not answer"
		}

		if h.State == berth.HostLost || h.State == berth.HostUnready {
			h.AbsentFor = rapid.SampledFrom([]time.Duration{0, berth.HostGrace}).Draw(t, "absent for")
		}
	}

	for i := range w.requests {
		r := &w.requests[i]
		r.Fetch = gib * rapid.SampledFrom([]int64{0, 1, 4}).Draw(t, "fetch")
		r.Coming = rapid.IntRange(0, 3).Draw(t, "coming") == 0
		r.Fetched, r.Refused = some("fetched"), some("refused")
		r.Asked = rapid.SampledFrom([]time.Duration{0, berth.HostGrace}).Draw(t, "asked")

		if rapid.Bool().Draw(t, "shunned") {
			r.Shunned = slices.Compact(slices.Clone(r.Refused))
		}
	}

	return w
}

func anew(h berth.Host, r packing.Request) bool {
	return (r.Fetch > 0 || r.Coming) && !h.StoresCheckpoints && !slices.Contains(r.Fetched, h.ID)
}

// fetchOf is the size that a request would fetch on a host, and freeFor the free disk
// for it.
func fetchOf(h berth.Host, r packing.Request) int64 {
	if !h.StoresCheckpoints || slices.Contains(r.Fetched, h.ID) {
		return 0
	}

	return r.Fetch
}

func freeFor(h berth.Host) (free, total int64) {
	if h.FilesDiskBytes > 0 {
		return h.FilesFreeBytes, h.FilesDiskBytes
	}

	return h.DiskFreeBytes, h.DiskBytes
}

// surelyGoesOn reports whether there is no doubt that the request goes on from its checkpoint on the
// host one day: it takes attempts, and would take this one if nothing else were there.
func surelyGoesOn(h berth.Host, r packing.Request) bool {
	_, total := freeFor(h)

	if h.State != berth.HostReady || anew(h, r) || h.CordonedAt != nil || len(h.MissingImages) > 0 || slices.Contains(r.FailedHosts, h.ID) || slices.Contains(r.Refused, h.ID) ||
		total > 0 && total-h.DiskHeadroomBytes < fetchOf(h, r) {
		return false
	}

	h.Exclusive, h.Attempts, h.MemoryReservedBytes, h.CPUMilliReserved, h.DiskFreeBytes = false, 0, 0, 0, h.DiskHeadroomBytes
	h.Devices = slices.Clone(h.Devices)

	for i := range h.Devices {
		dev := &h.Devices[i]
		dev.ReservedBytes, dev.ContextsReserved, dev.Attempts, dev.Exclusive, dev.ActivityReserved = 0, 0, 0, false, 0
	}

	alone := world{hosts: []berth.Host{h}, requests: []packing.Request{{AttemptID: "a", Demands: r.Demands}}}

	return alone.decide()[0].Placed
}

// TestDecide_WithCheckpoints: no disk is promised twice; no trial starts again that could continue;
// none waits for a host that is gone; and none ends that a host could hold.
func TestDecide_WithCheckpoints(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawCheckpoints(t)
		decisions := w.decide()
		fetched := map[string]int64{}

		for _, d := range decisions {
			r := w.request(d.AttemptID)
			host := func(id string) berth.Host {
				return w.hosts[slices.IndexFunc(w.hosts, func(h berth.Host) bool { return h.ID == id && h.State != berth.HostFormer })]
			}

			if d.Placed {
				h := host(d.Placement.HostID)
				fetched[h.ID] += fetchOf(h, r)
				require.True(t, !anew(h, r) || !slices.ContainsFunc(w.hosts, func(h berth.Host) bool { return surelyGoesOn(h, r) }), "%s begins anew", r.AttemptID)
			}

			for _, no := range d.Rejections(0) {
				require.NotEmpty(t, packing.Explain(no))

				if strings.Contains(no.Reason, "has no store to fetch") {
					require.True(t, anew(host(no.HostID), r))
					require.True(t, slices.ContainsFunc(w.hosts, func(h berth.Host) bool {
						back := (h.State == berth.HostLost || h.State == berth.HostUnready) && h.AbsentFor < berth.HostGrace && !h.Drained

						return !anew(h, r) && (h.State == berth.HostReady || back)
					}), "it waits for no host")
				}
			}

			if d.Impossible {
				for _, h := range w.hosts {
					_, total := freeFor(h)
					require.True(t, !holds(h, r) || r.Asked >= berth.HostGrace && total > 0 && total-h.DiskHeadroomBytes < fetchOf(h, r), "%s could hold it", h.ID)
				}
			}
		}

		for _, h := range w.hosts {
			if free, _ := freeFor(h); fetched[h.ID] > 0 && h.State != berth.HostFormer {
				require.GreaterOrEqual(t, free-h.FetchBytes-fetched[h.ID], h.DiskHeadroomBytes, h.ID)
			}
		}

		shuffled := w.copy()
		shuffled.hosts = rapid.Permutation(shuffled.hosts).Draw(t, "hosts shuffled")
		shuffled.requests = rapid.Permutation(shuffled.requests).Draw(t, "requests shuffled")
		require.Equal(t, facts(decisions), facts(shuffled.decide()))
	})
}

// TestDecide_NeverExcludesTheOnlyHost: a host takes the same requests after its disk has refused
// them once.
func TestDecide_NeverExcludesTheOnlyHost(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawCheckpoints(t)
		if len(w.hosts) == 0 || len(w.requests) == 0 {
			return
		}

		one := world{hosts: w.hosts[:1], requests: w.requests[:1]}
		one.requests[0].Refused, one.requests[0].Shunned = nil, nil
		before := one.decide()[0]

		one.requests[0].Refused = []string{"h0", "h0", "h0", "h0"}
		one.requests[0].Shunned = []string{"h0"}
		require.Equal(t, before.Placement, one.decide()[0].Placement)
	})
}
