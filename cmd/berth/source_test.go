package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/simgpu"
)

// A wrong flag is reported before anything starts: a Berth that reports ready keeps
// running.
func TestMachineCheck(t *testing.T) {
	t.Parallel()

	for _, m := range []machine{
		{},
		{gpus: "all", simulate: time.Second},
		{fakeGPUs: "2x24GiB,1x80GiB"},
		{machineID: "a", cpus: 2, memory: "1MiB"},
	} {
		require.NoError(t, m.check(), "%+v", m)
	}

	for want, m := range map[string]machine{
		`--fake-gpus "2x": "2x" has no size of memory; write how many cards of which memory, such as 2x24GiB,1x80GiB`: {fakeGPUs: "2x"},
		`--fake-gpus "24GiB" and --gpus "none": a worker has either simulated GPUs or real ones`:                      {fakeGPUs: "24GiB", gpus: "none"},
		`--fake-gpus "24GiB" and --simulate:`:                        {fakeGPUs: "24GiB", simulate: time.Second},
		`--machine-id "a" names a share of this machine: say by`:     {machineID: "a", cpus: 2},
		`--machine-id "b" names a share of this machine: say by`:     {machineID: "b", memory: "1MiB"},
		`--checkpoint-every 1s must be at least 5s, or 0`:            {checkpoints: time.Second},
		`--memory "some" must be a size of at most the machine's`:    {memory: "some"},
		`--memory "4000TiB" must be a size of at most the machine's`: {memory: "4000TiB"},
	} {
		err := m.check()
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
		require.ErrorContains(t, err, want)
	}
}

func TestDev_WrongFlagStartsNothing(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "data")
	cmd := root()
	cmd.SetArgs([]string{"dev", "--data-dir", dir, "--machine-id", "a"})
	cmd.SetErr(io.Discard)

	require.ErrorContains(t, cmd.ExecuteContext(t.Context()), "--machine-id")
	require.NoDirExists(t, dir)
}

// A worker with simulated GPUs hands all of them out, shared by MPS, for any user and
// on any machine.
func TestOpenGPUs_Simulated(t *testing.T) {
	t.Parallel()

	dir, err := os.MkdirTemp("", "berth-") //nolint:usetesting // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })

	d, err := docker.New(docker.Config{Instance: "test"}) // it gets no request
	require.NoError(t, err)

	g, err := openGPUs(t.Context(), &machine{fakeGPUs: "24GiB,2x80GiB", dataDir: dir}, "host", d, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, g.devices, 3)

	for i, device := range g.devices {
		require.Equal(t, simgpu.UUID("host", i), device.ID)
		require.True(t, device.Simulated())
		require.Equal(t, mpsContexts, device.MPSContexts)
		require.Empty(t, device.Problem)
		require.Positive(t, device.FreeBytes)

		pipe, err := g.pipe(device.ID)
		require.NoError(t, err)
		require.FileExists(t, pipe+"/../gpu/card.sock")
	}

	require.Equal(t, "Simulated GPU 80 GiB (MPS)", string(g.devices[1].ClassBy(berth.SharingMPS)))

	own, beside := g.sharer.clientsOf(t.Context(), berth.Container{ID: "container", DeviceID: g.devices[0].ID})
	require.Empty(t, own)
	require.Equal(t, alone, beside)
	g.close(t.Context(), false)
	require.Error(t, g.sharer.daemons.Check(t.Context(), g.devices[0].ID))

	one, err := openGPUs(t.Context(), &machine{fakeGPUs: "24GiB", dataDir: dir, gpuSharing: sharingExclusive, machineID: "share"}, "host", d, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, one.devices, 1, "a share of a machine has simulated GPUs of its own")
	require.Equal(t, 1, one.devices[0].MaxAttempts)
	one.close(t.Context(), false)

	_, err = openGPUs(t.Context(), &machine{fakeGPUs: "24GiB", dataDir: dir + "/" + strings.Repeat("x", 90)},
		"host", d, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "choose a data directory whose path is at least")
}
