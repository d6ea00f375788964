package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/gpushare"
	"github.com/berthml/berth/internal/control/backends"
)

// A wrong flag is reported before anything starts: a Berth that reports ready keeps
// running.
func TestMachineCheck(t *testing.T) {
	t.Parallel()

	for _, m := range []machine{
		{},
		{gpus: gpushare.Config{GPUs: "all"}, simulate: time.Second},
		{gpus: gpushare.Config{Fake: "2x24GiB,1x80GiB"}},
		{gpus: gpushare.Config{MachineID: "a"}, cpus: 2, memory: "1MiB"},
	} {
		require.NoError(t, m.check(), "%+v", m)
	}

	for want, m := range map[string]machine{
		`--fake-gpus "2x": "2x" has no size of memory; write how many cards of which memory, such as 2x24GiB,1x80GiB`: {gpus: gpushare.Config{Fake: "2x"}},
		`--fake-gpus "24GiB" and --gpus "none": a worker has either simulated GPUs or real ones`:                      {gpus: gpushare.Config{Fake: "24GiB", GPUs: "none"}},
		`--fake-gpus "24GiB" and --simulate:`:                        {gpus: gpushare.Config{Fake: "24GiB"}, simulate: time.Second},
		`--machine-id "a" names a share of this machine: say by`:     {gpus: gpushare.Config{MachineID: "a"}, cpus: 2},
		`--machine-id "b" names a share of this machine: say by`:     {gpus: gpushare.Config{MachineID: "b"}, memory: "1MiB"},
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

// `--secrets-dir ""` means the default, as its help says, and never the working directory.
// There the worker would remove files of others.
func TestSecretsDir_EmptyIsNotTheWorkingDirectory(t *testing.T) {
	t.Parallel()

	var m machine

	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	m.bind(flags)
	require.Empty(t, m.secretsDir)
	require.NoError(t, flags.Parse([]string{"--secrets-dir", ""}))
	require.Empty(t, m.secretsDir, "runtrial takes empty for the data directory's own")
}

// A worker that can measure nothing would probe one trial after another for ever.
func TestWorker_DoesNotStartWhereItCanMeasureNothing(t *testing.T) {
	t.Parallel()

	proc := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(proc, "1"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "1", "cgroup"), []byte("0::/../../init.scope\n"), 0o600))

	_, err := (&machine{instance: "main"}).runtime(t.Context(), cgroup.FS{Proc: proc, Cgroup: t.TempDir()}, berth.Host{}, berth.Owner{}, backends.Connections{}, nil, nil)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "cgroup: host")
}
