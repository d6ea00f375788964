package postgres_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/placer"
)

// A host removed before its replacement has come, or one that comes back
// smaller, must not end the trials that only it holds: they wait for a while, and start
// on the replacement. A trial that no host ever held is refused at once.
func TestPlacer_WaitsForAHostThatWent(t *testing.T) {
	t.Parallel()

	const (
		removed = "host large: it was removed"
		smaller = "host large: its worker came back with less memory or fewer cores"
	)

	for name, tt := range map[string]struct {
		memory   []int64 // of the host when it registers again
		cores    int64
		why      string
		replaced bool
	}{
		"removed":        {why: removed},
		"replaced":       {why: removed, replaced: true},
		"less memory":    {[]int64{16 * gib}, 16_000, smaller, false},
		"fewer cores":    {[]int64{64 * gib}, 2000, smaller, false},
		"less each time": {[]int64{24 * gib, 16 * gib, 16 * gib}, 16_000, smaller, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := placer.New(b.store, slog.New(slog.DiscardHandler))
			large := b.host
			large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes, large.CPUMilli = uuid.NewString(), "large", 64*gib, 64*gib, 16_000
			register := func(h berth.Host) { require.NoError(t, b.store.RegisterHost(t.Context(), h, "test")) }
			register(large)

			waits := b.another(t, berth.Resources{Memory: 32 * gib, CPUs: 8000})
			r := waits.request(t, gib)
			typo := b.another(t, berth.Resources{Memory: 640 * gib, CPUs: 8000}).request(t, gib)

			for _, memory := range tt.memory {
				less := large
				less.MemoryBytes, less.CPUMilli = memory, tt.cores
				register(less)
			}

			if tt.memory == nil {
				require.NoError(t, b.store.RemoveHost(t.Context(), large.ID, true))
			}

			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, typo), "no host ever held it")
			require.Equal(t, berth.RequestWaiting, b.status(t, r))
			require.Contains(t, waits.reasons(t, 1)[0], tt.why)
			require.Regexp(t, `waits until \d{4}-\d\d-\d\d \d\d:\d\d UTC`, waits.reasons(t, 1)[0])

			if tt.replaced {
				large.ID = uuid.NewString()
				register(large)
				require.NoError(t, p.Round(t.Context()))
				require.Equal(t, berth.RequestPlaced, b.status(t, r))

				return
			}

			b.exec(t, "UPDATE hosts SET removed_at = removed_at - $1::interval, last_seen_at = last_seen_at - $1::interval, shrunk_at = shrunk_at - $1::interval WHERE id = $2", berth.HostGrace, large.ID)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, r))
		})
	}
}

// A host that comes back without its GPU, because its driver is gone, ends no trial,
// for any length of time: they wait, also where a smaller GPU is left, and start once
// the GPU is back.
func TestPlacer_WaitsForAGPUWithoutItsDriver(t *testing.T) {
	t.Parallel()

	small, large := gpu("GPU-small"), gpu("GPU-large")
	small.MemoryBytes, small.FreeBytes = 8*gib, 8*gib

	for name, others := range map[string][]berth.Device{"no other GPU": {}, "a smaller one": {small}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := placer.New(b.store, slog.New(slog.DiscardHandler))
			register := func(devices ...berth.Device) {
				b.host.Devices = devices
				b.register(t)
			}
			gpus := b.another(t, berth.Resources{Device: berth.DeviceGPU, GPUMemory: 40 * gib, Memory: gib, CPUs: 1000})
			register(append(others, large)...)
			register(others...)

			r := gpus.request(t, gib)
			b.exec(t, "UPDATE devices SET lost_at = lost_at - interval '20 minutes'")
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestWaiting, b.status(t, r))
			require.Contains(t, strings.Join(gpus.reasons(t, 1), "; "), berth.Forgotten)
			require.Len(t, b.first(t).Devices, len(others), "people see it no more")

			register(append(others, large)...)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestPlaced, b.status(t, r))
		})
	}
}
