package gpushare

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/simgpu"
)

// A worker with simulated GPUs hands all of them out, shared by MPS, for any user and
// on any machine.
func TestOpenGPUs_Simulated(t *testing.T) {
	t.Parallel()

	dir, err := os.MkdirTemp("", "berth-") //nolint:usetesting // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })

	d, err := docker.New(docker.Config{Instance: "test"}) // it gets no request
	require.NoError(t, err)

	g, err := Open(t.Context(), Config{Fake: "24GiB,2x80GiB", DataDir: dir}, "host", d, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, g.devices, 3)

	for i, device := range g.devices {
		require.Equal(t, simgpu.UUID("host", i), device.ID)
		require.True(t, device.Simulated())
		require.Equal(t, mpsContexts, device.MPSContexts)
		require.Empty(t, device.Problem)
		require.Positive(t, device.FreeBytes)

		pipe, err := g.Pipe(device.ID)
		require.NoError(t, err)
		require.FileExists(t, pipe+"/../gpu/card.sock")
	}

	require.Equal(t, "Simulated GPU 80 GiB (MPS)", string(g.devices[1].ClassBy(berth.SharingMPS)))

	own, others, err := g.sharer.clientsOf(t.Context(), berth.Container{ID: "container", DeviceID: g.devices[0].ID})
	require.NoError(t, err)
	require.Empty(t, own)
	require.False(t, others)
	g.Close(t.Context(), false)
	require.Equal(t, berth.KindConflict, berth.KindOf(g.sharer.daemons.Check(t.Context(), g.devices[0].ID)))

	one, err := Open(t.Context(), Config{Fake: "24GiB", DataDir: dir, Sharing: sharingExclusive, MachineID: "share"}, "host", d, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, one.devices, 1, "a share of a machine has simulated GPUs of its own")
	require.Equal(t, 1, one.devices[0].MaxAttempts)
	one.Close(t.Context(), false)

	_, err = Open(t.Context(), Config{Fake: "24GiB", DataDir: dir + "/" + strings.Repeat("x", 90)},
		"host", d, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "choose a data directory whose path is at least")
}
