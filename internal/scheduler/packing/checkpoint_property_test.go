package packing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
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
		h.DiskFreeBytes = gib * rapid.SampledFrom([]int64{1, 2, 4, 8}).Draw(t, "disk free")
		h.DiskBytes = gib * rapid.SampledFrom([]int64{0, 8, 50}).Draw(t, "disk")
		h.Drained = h.State == berth.HostDraining || h.State == berth.HostLost && rapid.Bool().Draw(t, "drained")

		if rapid.IntRange(0, 4).Draw(t, "unready") == 0 && h.State == berth.HostReady {
			h.State, h.Problem = berth.HostUnready, "Docker does not answer"
		}

		if h.State == berth.HostLost || h.State == berth.HostUnready {
			h.AbsentFor = rapid.SampledFrom([]time.Duration{0, berth.HostGrace}).Draw(t, "absent for")
		}
	}

	for i := range w.requests {
		r := &w.requests[i]
		r.Stored = rapid.Bool().Draw(t, "stored")
		r.Holders = some("holders")
		r.Asked = rapid.SampledFrom([]time.Duration{0, berth.HostGrace}).Draw(t, "asked")
	}

	return w
}

func anew(h berth.Host, r packing.Request) bool {
	return r.Stored && !h.StoresCheckpoints && !slices.Contains(r.Holders, h.ID)
}

// surelyGoesOn reports whether there is no doubt that the request goes on from its checkpoint on the
// host one day: it takes attempts, and would take this one if nothing else were there.
func surelyGoesOn(h berth.Host, r packing.Request) bool {
	if h.State != berth.HostReady || anew(h, r) || h.CordonedAt != nil || len(h.MissingImages) > 0 || slices.Contains(r.FailedHosts, h.ID) {
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

// TestDecide_WithCheckpoints: no trial starts again that could continue; none waits for a host
// that is gone; and none ends that a host could hold.
func TestDecide_WithCheckpoints(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawCheckpoints(t)
		decisions := w.decide()

		for _, d := range decisions {
			r := w.request(d.AttemptID)
			host := func(id string) berth.Host {
				return w.hosts[slices.IndexFunc(w.hosts, func(h berth.Host) bool { return h.ID == id && h.State != berth.HostFormer })]
			}

			if d.Placed {
				h := host(d.Placement.HostID)
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
					require.False(t, holds(h, r), "%s could hold it", h.ID)
				}
			}
		}

		shuffled := w.copy()
		shuffled.hosts = rapid.Permutation(shuffled.hosts).Draw(t, "hosts shuffled")
		shuffled.requests = rapid.Permutation(shuffled.requests).Draw(t, "requests shuffled")
		require.Equal(t, facts(decisions), facts(shuffled.decide()))
	})
}
