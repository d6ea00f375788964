package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/gpu"
	"github.com/berthml/berth/internal/mps"
)

// fakeDaemons is one GPU's daemon, which a test kills.
type fakeDaemons struct {
	mu         sync.Mutex
	clients    []mps.Client
	terminated []int
	dead       bool
	broken     error // of Start
	starts     int
	starting   func() // called by Start
	stops      int
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

func (f *fakeDaemons) Clients(context.Context, string) ([]mps.Client, error) { return f.clients, nil }

func (f *fakeDaemons) Terminate(_ context.Context, _ string, pids []int) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.terminated = append(f.terminated, pids...)

	return nil
}

func (f *fakeDaemons) Stop(context.Context, string) (bool, error) {
	f.stops++

	return true, nil
}

// sharedBy is a sharer of GPU-a in whose machine each PID is of the container of its hundreds.
func sharedBy(f *fakeDaemons) *sharer {
	return &sharer{
		daemons: f, ids: []string{"GPU-a"}, log: slog.New(slog.DiscardHandler), dead: make(map[string]string),
		proc: func(pid int) (string, bool) { return map[int]string{1: "one", 2: "two"}[pid/100], pid/100 > 0 },
	}
}

// ends is a Docker whose container ends as soon as its clients were let go, or
// at once.
type ends struct {
	container berth.Container
	by        *fakeDaemons // nil = it ends at SIGTERM
	grace     time.Duration
}

func (e *ends) Inspect(context.Context, string) (berth.Container, error) { return e.container, nil }

func (e *ends) Stop(ctx context.Context, _ string, grace time.Duration) error {
	e.grace = grace
	if e.by == nil {
		return nil
	}

	for ctx.Err() == nil {
		e.by.mu.Lock()
		gone := len(e.by.terminated) > 0
		e.by.mu.Unlock()

		if gone {
			return nil
		}
	}

	return ctx.Err()
}

// A container that does not end by itself has its own clients let go before it is
// killed, and no other's.
func TestSharer_StopLetsClientsGo(t *testing.T) {
	t.Parallel()

	f := &fakeDaemons{clients: []mps.Client{{PID: 100}, {PID: 200}, {PID: 107}, {PID: 7}}}
	s := sharedBy(f)
	c := berth.Container{ID: "one", State: berth.ContainerRunning, DeviceID: "GPU-a"}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	docker := &ends{container: c, by: f}
	require.NoError(t, s.stop(ctx, docker, "one", 2*time.Millisecond))
	require.ElementsMatch(t, []int{100, 107}, f.terminated)
	require.Equal(t, 2*time.Millisecond, docker.grace, "no longer than the caller waits")

	f.terminated = nil
	require.NoError(t, s.stop(ctx, &ends{container: c}, "one", time.Hour))
	require.Empty(t, f.terminated, "it ended at SIGTERM")

	for _, change := range []func(c *berth.Container){
		func(c *berth.Container) { c.State = berth.ContainerExited },
		func(c *berth.Container) { c.DeviceID = "" },
		func(c *berth.Container) { c.DeviceID = "GPU-b" },
	} {
		other := c
		change(&other)

		docker := &ends{container: other}
		require.NoError(t, s.stop(ctx, docker, "one", time.Hour))
		require.Equal(t, time.Hour, docker.grace)
	}
}

// A daemon that ended is started again. While that fails its GPU takes nothing, and
// says why.
func TestSharer_StartsDaemonsAgain(t *testing.T) {
	t.Parallel()

	f := &fakeDaemons{}
	s := sharedBy(f)
	g := handsOut(&card{free: 700}, "GPU-a", "GPU-b")
	g.sharer = s

	pipe, err := g.pipe("GPU-a")
	require.NoError(t, err)
	require.Equal(t, "/mps/GPU-a", pipe)

	_, err = g.pipe("GPU-b")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	s.check(t.Context(), "GPU-a")
	require.Zero(t, f.starts, "it answers")

	f.dead, f.broken = true, errors.New("no permission")
	s.check(t.Context(), "GPU-a")
	require.Equal(t, "its MPS daemon does not run: no permission", g.free(t.Context(), nil)[0].Problem)
	require.Empty(t, g.free(t.Context(), nil)[1].Problem)

	_, err = g.pipe("GPU-a")
	require.ErrorContains(t, err, "no permission")

	f.broken = nil
	f.starting = func() {
		_, err := g.pipe("GPU-a")
		require.ErrorContains(t, err, "starts it again", "nothing joins a daemon that is not there yet")
	}
	s.check(t.Context(), "GPU-a")
	require.Empty(t, g.free(t.Context(), nil)[0].Problem)
	require.Equal(t, 2, f.starts)

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	f.dead, f.broken, f.starting = true, errors.New("no permission"), nil
	s.check(ended, "GPU-a")
	require.Empty(t, s.problem("GPU-a"), "the worker ends: that says nothing of the daemon")
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
	require.Empty(t, noMPS(h200, 0))
	require.Contains(t, noMPS(h200, 1000), "not root")
	require.Contains(t, noMPS(gpu.Card{Major: 6}, 0), "older than")
	require.Contains(t, noMPS(gpu.Card{Major: 9, Parent: "GPU-a"}, 0), "MIG")

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
