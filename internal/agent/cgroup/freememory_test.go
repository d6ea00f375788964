package cgroup_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
)

const gib = 1 << 30

// place is a container of a fake machine, whose cgroup is at path.
type place struct {
	id, path, pid string
	number        int
}

// machineWith is a machine of 64 GiB, 20 of them available, with containers
// that use 8 GiB each.
func machineWith(t *testing.T, places ...place) cgroup.FS {
	t.Helper()

	files := map[string]string{"proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 20971520 kB\n"}
	for _, p := range places {
		files["proc/"+p.pid+"/cgroup"] = "0::" + p.path + "\n"

		for name, text := range map[string]string{
			"stat": "anon 8589934592\n", "events": "oom_kill 0\n", "max": "max\n", "current": "8589934592\n",
		} {
			files["cgroup/"+p.path+"/memory."+name] = text
		}

		files["cgroup/"+p.path+"/cpu.stat"] = "usage_usec 1\n"
	}

	return tree(t, files)
}

// Our own trials are no programs outside Berth.
func TestFreeMemory_CountsOurContainers(t *testing.T) {
	t.Parallel()

	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	places := []place{{a, "/training/" + a, "101", 101}, {b, "/training/" + b, "102", 102}}
	asked := 0
	f := &cgroup.FreeMemory{Kernel: machineWith(t, places...), Log: slog.New(slog.DiscardHandler), Inspect: func(_ context.Context, id string) (berth.Container, error) {
		asked++

		for _, p := range places {
			if p.id == id {
				return berth.Container{ID: id, State: berth.ContainerRunning, PID: p.number}, nil
			}
		}

		return berth.Container{}, berth.Errorf(berth.KindNotFound, "no container %s", id)
	}}

	host := berth.Host{MemoryBytes: 64 * gib}
	list := []berth.Container{ // as Docker lists them: without their processes
		{ID: a, State: berth.ContainerRunning},
		{ID: b, State: berth.ContainerRunning},
		{ID: strings.Repeat("c", 64), State: berth.ContainerExited},
	}

	require.EqualValues(t, 36*gib, f.Read(t.Context(), host, list), "20 GiB are available, and two trials use 8 each")
	require.EqualValues(t, 36*gib, f.Read(t.Context(), host, list))
	require.Equal(t, 2, asked, "once for each")

	require.EqualValues(t, 28*gib, f.Read(t.Context(), host, list[:1]), "one has ended")
	require.EqualValues(t, 20*gib, f.Read(t.Context(), host, nil))

	host.MemoryBytes = 24 * gib
	require.EqualValues(t, 24*gib, f.Read(t.Context(), host, list), "never more than there is")
}

func TestFreeMemory_OfWhatCannotBeMeasured(t *testing.T) {
	t.Parallel()

	gone := strings.Repeat("d", 64)
	answers := []error{berth.Errorf(berth.KindUnavailable, "Docker does not answer"), nil, nil}
	asked := 0
	said := &bytes.Buffer{}
	f := &cgroup.FreeMemory{Kernel: machineWith(t), Log: slog.New(slog.NewTextHandler(said, nil)), Inspect: func(context.Context, string) (berth.Container, error) {
		asked++

		return berth.Container{ID: gone, State: berth.ContainerRunning, PID: 7}, answers[asked-1]
	}}
	list := []berth.Container{{ID: gone, State: berth.ContainerRunning}}

	for range 3 {
		require.EqualValues(t, 20*gib, f.Read(t.Context(), berth.Host{MemoryBytes: 64 * gib}, list))
	}

	require.Equal(t, 3, asked, "it is tried again")
	require.Equal(t, 1, strings.Count(said.String(), "cannot measure"), "and said once")
}
