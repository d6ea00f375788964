package simgpu_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
	"github.com/berthml/berth/internal/testkit/gputest"
)

// shortDir is a directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()

	dir, err := os.MkdirTemp("", "simgpu-") //nolint:usetesting // that one's path is long
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })

	return dir
}

func open(t *testing.T, dir string) *simgpu.Simulator {
	t.Helper()

	s, err := simgpu.Open(simgpu.Config{Dir: dir, Machine: "m", Cards: []int64{24 << 30, 80 << 30}, Patience: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	return s
}

func dial(t *testing.T, path string) *wire.Conn {
	t.Helper()

	conn, err := wire.Dial(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })

	return conn
}

func ask(t *testing.T, c *wire.Conn, r wire.Request) wire.Answer {
	t.Helper()

	a, err := c.Ask(r)
	require.NoError(t, err)

	return a
}

func uuid(number int) string { return simgpu.UUID("m", number) }

// One card is idle, and a program uses the other.
func TestSimulator_Conformance(t *testing.T) {
	t.Parallel()

	gputest.Run(t, func(t *testing.T) gpu.Driver {
		t.Helper()

		s := open(t, shortDir(t))
		conn := dial(t, filepath.Join(s.Mount(uuid(1)), wire.Socket))
		require.Empty(t, ask(t, conn, wire.Request{Op: wire.Hello}).Error)

		ended := make(chan struct{})
		t.Cleanup(func() { <-ended })

		go func() {
			defer close(ended)

			for {
				if _, err := conn.Ask(wire.Request{Op: wire.Run, Step: &wire.Step{GPU: time.Millisecond, SM: 0.5, Bus: 0.1}}); err != nil {
					return
				}
			}
		}()

		t.Cleanup(func() { _ = s.Close() })

		return s
	})
}

func TestSimulator_Inventory(t *testing.T) {
	t.Parallel()

	s := open(t, shortDir(t))
	inventory, err := s.Inventory(t.Context())
	require.NoError(t, err)
	require.Equal(t, []gpu.Card{
		{UUID: uuid(0), Index: "0", Model: "Simulated GPU 24 GiB", MemoryBytes: 24 << 30, Major: 9},
		{UUID: uuid(1), Index: "1", Model: "Simulated GPU 80 GiB", MemoryBytes: 80 << 30, Major: 9},
	}, inventory.Cards)
}

// A program is identified by the PID that the kernel reports for its
// connection.
func TestSimulator_Program(t *testing.T) {
	t.Parallel()

	s := open(t, shortDir(t))
	conn := dial(t, filepath.Join(s.Mount(uuid(0)), wire.Socket))
	require.Equal(t, int64(524<<20), ask(t, conn, wire.Request{Op: wire.Hello}).HeldBytes)
	require.Equal(t, wire.OutOfMemory, ask(t, conn, wire.Request{Op: wire.Alloc, Bytes: 24 << 30}).Error)
	require.Empty(t, ask(t, conn, wire.Request{Op: wire.Alloc, Bytes: 100 << 20}).Error)

	r, err := s.Read(t.Context(), uuid(0))
	require.NoError(t, err)
	require.Equal(t, []gpu.Process{{PID: os.Getpid(), Bytes: 624 << 20}}, r.Processes)

	other, err := s.Read(t.Context(), uuid(1))
	require.NoError(t, err)
	require.Empty(t, other.Processes)

	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool {
		r, err := s.Read(t.Context(), uuid(0))
		require.NoError(t, err)

		return r.UsedBytes == 0
	}, 10*time.Second, time.Millisecond, "closing the connection gives all back")
}

// A program that is gone leaves the card also from the middle of a step.
func TestSimulator_GoneInAStep(t *testing.T) {
	t.Parallel()

	s := open(t, shortDir(t))
	conn := dial(t, filepath.Join(s.Mount(uuid(0)), wire.Socket))
	ask(t, conn, wire.Request{Op: wire.Hello})

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		_, _ = conn.Ask(wire.Request{Op: wire.Run, Step: &wire.Step{GPU: time.Hour}})
	}()

	require.NoError(t, conn.Close())
	<-ended
	require.Eventually(t, func() bool {
		r, err := s.Read(t.Context(), uuid(0))

		return err == nil && len(r.Processes) == 0
	}, 10*time.Second, time.Millisecond)
}

// Containers, and their GPU memory, outlive a worker.
func TestSimulator_NextWorker(t *testing.T) {
	t.Parallel()

	dir := shortDir(t)
	first := open(t, dir)
	path := filepath.Join(first.Mount(uuid(0)), wire.Socket)
	conn := dial(t, path)
	ask(t, conn, wire.Request{Op: wire.Hello})
	require.NoError(t, first.Close())

	_, err := conn.Ask(wire.Request{Op: wire.Alloc, Bytes: 1})
	require.Error(t, err, "the card is gone, which is no refusal")

	next := open(t, dir)
	require.Equal(t, path, filepath.Join(next.Mount(uuid(0)), wire.Socket))
	require.Equal(t, int64(5<<30), ask(t, dial(t, path), wire.Request{Op: wire.Hello, Bytes: 5 << 30}).HeldBytes)
}

func TestSimulator_MPS(t *testing.T) {
	t.Parallel()

	s := open(t, shortDir(t))
	path := filepath.Join(s.Pipe(uuid(0)), wire.MPSSocket)

	require.NoError(t, s.Start(t.Context(), uuid(0)))
	require.NoError(t, s.Check(t.Context(), uuid(0)))

	conn := dial(t, path)
	require.Equal(t, int64(500<<20), ask(t, conn, wire.Request{Op: wire.Hello, LimitBytes: 1 << 30}).FreeBytes)

	clients, err := s.Clients(t.Context(), uuid(0))
	require.NoError(t, err)
	require.Equal(t, []int{os.Getpid()}, clients)

	used := func() int64 {
		require.NoError(t, s.Stop(t.Context(), uuid(0)))

		r, err := s.Read(t.Context(), uuid(0))
		require.NoError(t, err)

		return r.UsedBytes
	}
	require.Equal(t, int64(590<<20), used(), "it has a client, and the server its own")

	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return used() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, berth.KindNotFound, berth.KindOf(s.Start(t.Context(), "GPU-2")))
}

// heard returns the next event; it injects the fault until WaitEvent is called.
func heard(t *testing.T, s *simgpu.Simulator, dir string, number int, f simgpu.Fault) gpu.Event {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, err := s.WaitEvent(ctx) // events from before the first call are not told
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, simgpu.Inject(dir, number, f))

	event, err := s.WaitEvent(t.Context())
	require.NoError(t, err)
	require.Equal(t, uuid(number), event.UUID)
	require.WithinDuration(t, time.Now(), event.At, time.Minute)

	return event
}

func TestSimulator_Faults(t *testing.T) {
	t.Parallel()

	dir := shortDir(t)
	s := open(t, dir)
	conn := dial(t, filepath.Join(s.Mount(uuid(1)), wire.Socket))
	ask(t, conn, wire.Request{Op: wire.Hello})

	require.Equal(t, 119, heard(t, s, dir, 1, simgpu.Fault{XID: 119}).XID)
	require.Empty(t, ask(t, conn, wire.Request{Op: wire.Alloc}).Error, "the driver only reported it")

	event := heard(t, s, dir, 1, simgpu.Fault{ECC: true})
	require.True(t, event.UncorrectedECC)
	require.True(t, event.Diagnose().Sick)
	require.Equal(t, wire.Uncorrectable, ask(t, conn, wire.Request{Op: wire.Alloc}).Error)

	require.Equal(t, 79, heard(t, s, dir, 1, simgpu.Fault{Lose: true}).XID)

	for _, err := range []error{
		func() error { _, err := s.Read(t.Context(), uuid(1)); return err }(),
		func() error { _, err := s.Activity(t.Context(), uuid(1)); return err }(),
		s.Start(t.Context(), uuid(1)),
	} {
		require.ErrorIs(t, err, gpu.ErrLost)
	}

	require.Equal(t, wire.DeviceLost, ask(t, dial(t, filepath.Join(s.Mount(uuid(1)), wire.Socket)), wire.Request{Op: wire.Hello}).Error)

	inventory, err := s.Inventory(t.Context())
	require.NoError(t, err)
	require.Contains(t, inventory.Cards[1].Problem, "is lost")
	require.Empty(t, inventory.Cards[0].Problem)

	_, err = s.Read(t.Context(), uuid(0))
	require.NoError(t, err, "the other card goes on")
}

func TestSimulator_Hangs(t *testing.T) {
	t.Parallel()

	dir := shortDir(t)
	s := open(t, dir)
	require.NoError(t, simgpu.Inject(dir, 0, simgpu.Fault{Hang: true}))

	_, err := s.Read(t.Context(), uuid(0))
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, "does not answer since")
	require.NotErrorIs(t, err, gpu.ErrLost)

	_, err = s.Read(t.Context(), uuid(1))
	require.NoError(t, err)

	require.NoError(t, simgpu.Inject(dir, 0, simgpu.Fault{Wake: true}))
	_, err = s.Read(t.Context(), uuid(0))
	require.NoError(t, err)
}

func TestOpen_LongPath(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(shortDir(t), strings.Repeat("x", 80))
	_, err := simgpu.Open(simgpu.Config{Dir: dir, Cards: []int64{24 << 30}})
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "choose a data directory whose path is at least")
}
