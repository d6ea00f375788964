package placer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// away is the states in which the large GPU of a mixed fleet takes no new
// attempts.
var away = map[string]func(h *berth.Host){
	"cordoned":           func(h *berth.Host) { h.Devices[0].CordonedAt = new(time.Unix(0, 0)) },
	"sick":               func(h *berth.Host) { h.Devices[0].Problem = "XID 79" },
	"its daemon":         func(h *berth.Host) { h.Devices[0].Problem = berth.MPSStarts + ": it does not answer" },
	"its host drains":    func(h *berth.Host) { h.State = berth.HostDraining },
	"its host is lost":   func(h *berth.Host) { h.State = berth.HostLost },
	"its worker starts":  func(h *berth.Host) { h.State, h.Problem = berth.HostUnready, berth.WorkerStarts },
	"its host is in bad": func(h *berth.Host) { h.State, h.Problem = berth.HostUnready, "Docker does not answer" },
}

// mixedFleet has a host with a GPU of 16 GiB, and one with a GPU of 84 GiB, of
// which 80 are usable.
func mixedFleet(f *queue, edit func(large *berth.Host)) {
	gpu := func(id, model string, bytes int64) []berth.Device {
		return []berth.Device{{
			ID: id, Model: model, Mode: berth.SharingTimeSlicing, MemoryBytes: bytes, HeadroomBytes: bytes / 16, FreeBytes: bytes, MaxContexts: 48, MPSContexts: 44,
		}}
	}

	small := f.hosts[0]
	small.MemoryBytes, small.MemoryFreeBytes = 128*gib, 128*gib
	small.Devices = gpu("GPU-1", "small", 16*gib)

	large := small
	large.ID, large.Name, large.Devices = "l", "large", gpu("GPU-2", "large", 84*gib)
	edit(&large)

	f.hosts = []berth.Host{small, large}
}

// A trial that only the large GPU of a fleet can hold waits while that GPU is closed:
// it is not refused for good, does not spill on a small one, and does not start where
// it cannot fit.
func TestRound_WaitsForTheLargeGPU(t *testing.T) {
	t.Parallel()

	for name, edit := range away {
		for _, spill := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				w := request("large", gib)
				w.Resources.Device, w.Resources.GPUMemory, w.Resources.CPUs, w.Resources.GPUMemorySpill = berth.DeviceAuto, 40*gib, 500, spill

				p, f := setup(t, w)
				mixedFleet(f, edit)
				require.NoError(t, p.Round(t.Context()))
				require.Empty(t, f.refused)
				require.Empty(t, f.placed)

				mixedFleet(f, func(*berth.Host) {})
				require.NoError(t, p.Round(t.Context()))
				require.Len(t, f.placed, 1)
				require.Equal(t, "GPU-2", f.placed[0]["large"].DeviceID)
				require.Zero(t, f.placed[0]["large"].Demand.SpillBytes)
			})
		}
	}
}

// While the only GPU will be back in a moment, a trial that may run on cores waits for
// it; while the GPU may be away for long, it does not.
func TestRound_CoresWhileTheGPUIsAway(t *testing.T) {
	t.Parallel()

	for name, edit := range away {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := request("one", gib)
			w.Resources.Device = berth.DeviceAuto

			p, f := setup(t, w)
			mixedFleet(f, edit)
			f.hosts[0].Devices = nil
			require.NoError(t, p.Round(t.Context()))

			if name == "its daemon" || name == "its worker starts" {
				require.Empty(t, f.placed)
			} else {
				require.Len(t, f.placed, 1)
				require.Equal(t, berth.ClassCPU, f.placed[0]["one"].Class)
			}
		})
	}
}
