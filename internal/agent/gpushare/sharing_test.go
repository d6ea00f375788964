package gpushare

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// fakeDaemons is one GPU's daemon, which a test kills.
type fakeDaemons struct {
	mu       sync.Mutex
	clients  []int
	dead     bool
	broken   error // of Start
	starts   int
	starting func() // called by Start
	stops    int
	told     int   // how often its worker was to tell the ledger
	unlisted error // of Clients
}

func (f *fakeDaemons) Start(context.Context, string) error {
	if f.starting != nil {
		f.starting()
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.starts++
	f.dead = f.broken != nil

	return f.broken
}

func (f *fakeDaemons) Check(context.Context, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.dead {
		return berth.Errorf(berth.KindUnavailable, "no daemon answers")
	}

	return nil
}

func (f *fakeDaemons) Pipe(uuid string) string { return "/mps/" + uuid }

func (f *fakeDaemons) Clients(context.Context, string) ([]int, error) {
	return f.clients, f.unlisted
}

func (f *fakeDaemons) Stop(context.Context, string) error { f.stops++; return nil }

// sharedBy is a sharer of GPU-a; each PID belongs to the container with its hundreds.
func sharedBy(f *fakeDaemons) *sharer {
	return &sharer{
		daemons: f, ids: []string{"GPU-a"}, log: slog.New(slog.DiscardHandler), states: make(map[string]daemonState), tell: func() { f.told++ },
		proc: func(pid int) (string, bool) { return map[int]string{1: "one", 2: "two"}[pid/100], pid/100 > 0 },
	}
}

// A daemon that ended is started again. For that moment its GPU takes nothing, and says why;
// when it does not start, it takes all but clients of MPS.
func TestSharer_StartsDaemonsAgain(t *testing.T) {
	t.Parallel()

	f := &fakeDaemons{}
	s := sharedBy(f)
	g := handsOut(&card{free: 700}, "GPU-a", "GPU-b")
	g.sharer = s

	free := func() berth.DeviceFree { return g.FreeMemory(t.Context(), nil)[0] }
	look := func() { s.checkDaemon(t.Context(), "GPU-a") }

	pipe, err := g.Pipe("GPU-a")
	require.NoError(t, err)
	require.Equal(t, "/mps/GPU-a", pipe)

	_, err = g.Pipe("GPU-b")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	look()
	require.Zero(t, f.starts, "it answers")
	require.Zero(t, f.told)

	f.dead, f.broken = true, errors.New("no permission")
	f.starting = func() {
		require.Equal(t, "its MPS daemon is started again: it does not answer", free().Problem)
		require.True(t, berth.Device{Problem: free().Problem}.Passing())
		require.Empty(t, g.FreeMemory(t.Context(), nil)[1].Problem)

		_, err := g.Pipe("GPU-a")
		require.ErrorContains(t, err, "does not answer", "nothing joins a daemon that is not there yet")
	}
	look()
	require.Equal(t, berth.DeviceFree{ID: "GPU-a", FreeBytes: 700, MPSProblem: "its MPS daemon does not run: no permission"}, free())
	require.Equal(t, 2, f.told, "it does not answer; by time slices then")

	_, err = g.Pipe("GPU-a")
	require.ErrorContains(t, err, "no permission")

	f.starting = func() { require.Empty(t, free().Problem, "trials go on by time slices") }
	look()
	require.Equal(t, 2, f.starts, "it is tried again")
	require.Equal(t, 2, f.told, "with nothing new")

	f.broken = nil
	look()
	require.Equal(t, berth.DeviceFree{ID: "GPU-a", FreeBytes: 700}, free())
	require.Equal(t, 3, f.told)

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	f.dead, f.starting = true, nil
	s.checkDaemon(ended, "GPU-a")
	require.Empty(t, s.problem("GPU-a"), "the worker ends: that says nothing of the daemon")
}

// A daemon that cannot start with its worker keeps no GPU from trials.
func TestSharer_Open(t *testing.T) {
	t.Parallel()

	f := &fakeDaemons{broken: errors.New("no permission")}
	s := sharedBy(f)
	s.open(t.Context(), "GPU-a")
	require.Empty(t, s.problem("GPU-a"))
	require.Contains(t, s.mpsProblem("GPU-a"), "no permission")

	f.broken = nil
	s.checkDaemon(t.Context(), "GPU-a")
	require.Empty(t, s.mpsProblem("GPU-a"))
}

// Daemons outlive a worker whose containers go on.
func TestSharer_Close(t *testing.T) {
	t.Parallel()

	f := &fakeDaemons{}
	sharedBy(f).close(t.Context(), true)
	require.Zero(t, f.stops)

	sharedBy(f).close(t.Context(), false)
	require.Equal(t, 1, f.stops)
}

func TestNoMPS(t *testing.T) {
	t.Parallel()

	h200 := gpu.Card{UUID: "GPU-a", Major: 9}
	require.Empty(t, WhyNoMPS(h200, 0))
	require.Contains(t, WhyNoMPS(h200, 1000), "not root")
	require.Contains(t, WhyNoMPS(gpu.Card{Major: 6}, 0), "older than")
	require.Contains(t, WhyNoMPS(gpu.Card{Major: 9, Parent: "GPU-a"}, 0), "MIG")

	for cuda, want := range map[string]int{"12.8": 44, "13.0": 44, "13.1": 56, "14.0": 56, "": 44, "13": 44} {
		require.Equal(t, want, contextsOf(cuda), cuda)
	}
}

func TestSharingOf(t *testing.T) {
	t.Parallel()

	got := []any{}

	for _, wanted := range []string{"auto", "time_slicing", "exclusive"} {
		mode, byMPS, err := sharingOf(wanted)
		require.NoError(t, err)

		got = append(got, mode, byMPS)
	}

	require.True(t, slices.Equal([]any{berth.SharingTimeSlicing, true, berth.SharingTimeSlicing, false, berth.SharingExclusive, false}, got), "%v", got)

	_, _, err := sharingOf("mps")
	require.ErrorContains(t, err, `--gpu-sharing "mps" must be auto, time_slicing or exclusive`)
}
