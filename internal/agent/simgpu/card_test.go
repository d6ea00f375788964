package simgpu

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

const mib = int64(1) << 20

// silent is a GPU of 24 GiB that reports no events.
func silent() *card { return newCard("GPU-1", 24<<30, func(gpu.Event) {}) }

func joined(t *testing.T, c *card, pid int, mps bool, limit int64) *client {
	t.Helper()

	cl, a := c.join(pid, mps, limit, 0)
	require.Empty(t, a.Error)

	return cl
}

func TestCard_Memory(t *testing.T) {
	t.Parallel()

	c := silent()
	all := 24*1024*mib - 105*mib // the driver's reserve

	require.Equal(t, all, c.read().FreeBytes)

	one, two := joined(t, c, 70, false, 0), joined(t, c, 7, false, 0)
	require.Equal(t, wire.Answer{Model: "Simulated GPU 24 GiB", HeldBytes: 1524 * mib, FreeBytes: all - 2048*mib, TotalBytes: 24 << 30}, c.take(one, 1000*mib))

	r := c.read()
	require.Equal(t, []gpu.Process{{PID: 7, Bytes: 524 * mib}, {PID: 70, Bytes: 1524 * mib}}, r.Processes)
	require.Equal(t, 2048*mib, r.UsedBytes)
	require.Equal(t, r.TotalBytes, r.ReservedBytes+r.UsedBytes+r.FreeBytes)

	refused := c.take(two, all-2048*mib+1)
	require.Equal(t, wire.OutOfMemory, refused.Error)
	require.Equal(t, "out of memory", refused.Text)
	require.Empty(t, c.take(two, all-2048*mib).Error, "to the last byte")

	_, full := c.join(8, false, 0, 0)
	require.Equal(t, wire.OutOfMemory, full.Error, "there is no place for a context")

	require.Empty(t, c.take(one, -1000*mib).Error)
	require.Equal(t, wire.InvalidValue, c.take(one, -1).Error, "a context is not given back")

	c.leave(two)
	c.leave(one)
	require.Equal(t, all, c.read().FreeBytes)
	require.Empty(t, c.read().Processes)
}

func TestCard_LimitOfMPS(t *testing.T) {
	t.Parallel()

	c := silent()

	_, small := c.join(1, true, 300*mib, 0)
	require.Equal(t, wire.OutOfMemory, small.Error, "the context counts within the limit")

	cl := joined(t, c, 1, true, 1024*mib)
	require.Equal(t, 500*mib, c.take(cl, 0).FreeBytes)
	require.Equal(t, wire.OutOfMemory, c.take(cl, 501*mib).Error)
	require.Empty(t, c.take(cl, 500*mib).Error)
	require.Equal(t, []gpu.Process{{PID: 1, Bytes: 1024 * mib, MPS: true}}, c.read().Processes)
	require.Equal(t, 1090*mib, c.read().UsedBytes, "the server takes some, too")

	for pid := 2; pid <= 48; pid++ {
		c.total += contextBytes // only the number counts here
		joined(t, c, pid, true, 0)
	}

	_, many := c.join(49, true, 0, 0)
	require.Equal(t, wire.MaxClients, many.Error)
}

// run lets clients run steps for a while, each after a pause for its cores. It
// returns how many they ran a second, all together.
func run(t *testing.T, n int, mps bool, pause time.Duration, step wire.Step, during time.Duration) (steps float64) {
	t.Helper()

	c := silent()

	var (
		all sync.WaitGroup
		mu  sync.Mutex
	)

	until := time.Now().Add(during)

	for pid := range n {
		cl := joined(t, c, pid+1, mps, 0)

		all.Go(func() {
			done := 0.0

			for ; time.Now().Before(until); done++ {
				time.Sleep(pause)
				c.step(cl, step, nil)
			}

			mu.Lock()
			steps += done
			mu.Unlock()
		})
	}

	all.Wait()

	return steps / during.Seconds()
}

// Programs that want more than the card has share it evenly.
func TestCard_Steps(t *testing.T) {
	t.Parallel()

	small := wire.Step{GPU: time.Millisecond, SM: 0.25, Bus: 0.1} // 4 ms after the one before
	full := wire.Step{GPU: 30 * time.Millisecond, SM: 1, Bus: 0.5}

	for name, row := range map[string]struct {
		n     int
		mps   bool
		pause time.Duration
		step  wire.Step
		want  float64 // steps a second, all together
	}{
		"alone":                {1, false, 4 * time.Millisecond, small, 200},
		"small, by turns":      {8, false, 4 * time.Millisecond, small, 1000}, // 1.6 times what the card has
		"small, at once":       {8, true, 4 * time.Millisecond, small, 1600},
		"saturating, by turns": {3, false, 0, full, 33.3},
		"saturating, at once":  {3, true, 0, full, 33.3},
	} {
		synctest.Test(t, func(t *testing.T) {
			require.InEpsilon(t, row.want, run(t, row.n, row.mps, row.pause, row.step, 20*time.Second), 0.05, name)
		})
	}
}

func TestCard_Activity(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c := silent()
		cl := joined(t, c, 1, false, 0)

		for range 50 { // a second, half of it on the GPU
			time.Sleep(10 * time.Millisecond)
			c.step(cl, wire.Step{GPU: 10 * time.Millisecond, SM: 0.4, Bus: 0.2}, nil)
		}

		a := c.measure()
		require.InDelta(t, 0.20, a.SMActivity, 0.01)
		require.InDelta(t, 0.10, a.DRAMBandwidth, 0.01)
		require.Equal(t, a, c.measure(), "within a tenth of a second it is the same one")

		time.Sleep(time.Second)

		idle := c.measure()
		require.Zero(t, idle.SMActivity)
		require.Equal(t, a.To, idle.From)
	})
}

func TestCard_RefusesNonsense(t *testing.T) {
	t.Parallel()

	c := silent()
	cl := joined(t, c, 1, false, 0)

	for _, r := range []wire.Request{{}, {Op: wire.Alloc, Bytes: 1}, {Op: wire.Hello, Bytes: -1}, {Op: wire.Hello, LimitBytes: -1}} {
		_, a := c.serve(nil, r, 1, false, nil)
		require.Equal(t, wire.InvalidValue, a.Error, "%+v", r)
	}

	for _, r := range []wire.Request{
		{},
		{Op: wire.Hello},
		{Op: wire.Alloc, Bytes: -1},
		{Op: wire.Free, Bytes: -1},
		{Op: wire.Run},
		{Op: wire.Run, Step: &wire.Step{GPU: -1}},
		{Op: wire.Run, Step: &wire.Step{GPU: 2 * time.Hour}},
		{Op: wire.Run, Step: &wire.Step{SM: 1.1}},
		{Op: wire.Run, Step: &wire.Step{Bus: -0.1}},
	} {
		_, a := c.serve(cl, r, 1, false, nil)
		require.Equal(t, wire.InvalidValue, a.Error, "%+v", r)
	}
}

// An illegal access of one program ends that one by time slices, and all by MPS.
func TestCard_Crash(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		for _, mps := range []bool{false, true} {
			var events []gpu.Event

			c := newCard("GPU-1", 24<<30, func(e gpu.Event) { events = append(events, e) })
			culprit, peer := joined(t, c, 1, mps, 0), joined(t, c, 2, mps, 0)

			answers := make(chan wire.Answer, 1)
			go func() { answers <- c.step(peer, wire.Step{GPU: time.Hour}, nil) }()

			synctest.Wait()

			require.Equal(t, wire.IllegalAddress, c.crash(culprit).Error)
			require.Len(t, events, 1)
			require.Equal(t, 31, events[0].XID, "a program's fault")
			require.False(t, events[0].Diagnose().Sick)

			if !mps {
				require.Empty(t, (<-answers).Error)
				require.Equal(t, wire.IllegalAddress, c.take(culprit, 1).Error)

				continue
			}

			require.Equal(t, wire.IllegalAddress, (<-answers).Error, "in the middle of its step")

			_, a := c.join(3, true, 0, 0)
			require.Equal(t, wire.ServerNotReady, a.Error)
			c.leave(culprit)

			_, a = c.join(3, true, 0, 0)
			require.Equal(t, wire.ServerNotReady, a.Error, "one of its clients is there still")
			c.leave(peer)
			joined(t, c, 3, true, 0)
		}
	})
}

// An MPS client that disappears in the middle of a step takes its neighbours with it;
// one that ends between steps, or by time slices, takes none.
func TestCard_Vanish(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		for _, one := range []struct{ mps, midStep, dead bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
			c := silent()
			victim, neighbour := joined(t, c, 1, one.mps, 0), joined(t, c, 2, one.mps, 0)
			gone := make(chan struct{})

			go func() {
				if one.midStep {
					time.Sleep(time.Second)
				}

				close(gone)
			}()

			if one.midStep {
				c.step(victim, wire.Step{GPU: time.Hour}, gone)
			} else {
				c.step(victim, wire.Step{GPU: time.Second}, nil)
			}

			c.leave(victim)
			require.Equal(t, one.dead, c.take(neighbour, 1).Error == wire.IllegalAddress, one)
		}
	})
}
