package runtrial

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/testkit/fake"
)

// answersMemory has the ledger answer PutMemory with an error; nil = it stores.
func (b *books) answersMemory(answer func() error) {
	b.Hook(func(h *fake.LedgerHooks) {
		h.PutMemory = func(ctx context.Context, _ string, call func(context.Context) error) error {
			if err := answer(); err != nil {
				return err
			}

			return call(ctx)
		}
	})
}

func mostOf(points []berth.MemoryPoint) (host, device int64) {
	for _, p := range points {
		if p.HostBytes != nil {
			host = max(host, *p.HostBytes)
		}

		if p.DeviceBytes != nil {
			device = max(device, *p.DeviceBytes)
		}
	}

	return host, device
}

// What the database did not take is told again with what came meanwhile. A figure that grew
// while it was stored is told again, too.
func TestPutMemory_AfterAnOutage(t *testing.T) {
	t.Parallel()

	r := setup(t)
	run := r.newRun(t)
	start := time.Now()
	run.trace = sampling.NewTrace(start)

	var during func() error

	r.books.answersMemory(func() error { return during() })

	during = func() error { return berth.Errorf(berth.KindUnavailable, "the database restarts") }

	run.trace.AddHost(7, start)
	run.trace.AddHost(1, start.Add(time.Second))
	require.NoError(t, run.putMemory(t.Context()))
	require.Empty(t, r.books.memory(t))

	run.trace.AddHost(5, start)
	run.trace.AddHost(6, start.Add(time.Second))
	run.trace.AddHost(1, start.Add(2*time.Second))

	during = func() error {
		run.trace.AddHost(8, start.Add(time.Second))

		return nil
	}
	require.NoError(t, run.putMemory(t.Context()))

	stored := r.books.memory(t)
	require.Len(t, stored, 2, "the newest second goes on")
	require.Equal(t, int64(7), *stored[0].HostBytes)
	require.Equal(t, int64(6), *stored[1].HostBytes)

	rest := run.trace.Rest()
	require.Len(t, rest, 2, "the others are told once")
	require.Equal(t, int64(8), *rest[0].HostBytes)
	require.Equal(t, 2, rest[1].Second)
}

// What the database can never store is dropped, as metrics are.
func TestPutMemory_DropsWhatIsRefused(t *testing.T) {
	t.Parallel()

	r := setup(t)
	run := r.newRun(t)
	start := time.Now()
	run.trace = sampling.NewTrace(start)
	run.trace.AddHost(7, start)
	run.trace.AddHost(7, start.Add(time.Second))
	r.books.answersMemory(func() error { return berth.Errorf(berth.KindInvalid, "a figure that no column holds") })

	require.NoError(t, run.putMemory(t.Context()))
	require.Len(t, run.trace.Rest(), 1, "the newest second, which was not told")
}

// An attempt that is stopped while no worker watches: what was measured is stored.
func TestMemory_OfAnAttemptThatIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := metered(t)
		r.readFor(t, 8*time.Second, func(*fake.Process) {})

		order := r.order()
		order.Stop = true
		got := came(t, r.start(t.Context(), order))
		require.Equal(t, berth.FailureCanceled, got.Kind)
		require.GreaterOrEqual(t, len(r.books.memory(t)), 7)
	})
}

// An attempt that is not ours any more is left at the first refusal (rule R4).
func TestMemory_FencedDetaches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := metered(t)

		var (
			fenced atomic.Bool
			asked  atomic.Int32
		)

		r.books.answersMemory(func() error {
			if !fenced.Load() {
				return nil
			}

			asked.Add(1)

			return berth.Errorf(berth.KindFenced, "not ours")
		})

		box, ended := r.begin(t)
		time.Sleep(15 * time.Second)
		fenced.Store(true)
		require.Equal(t, berth.KindFenced, berth.KindOf(await(t, ended).err))
		require.Equal(t, berth.ContainerRunning, box.Container().State, "the reconciler decides")
		require.Equal(t, int32(1), asked.Load())
	})
}
