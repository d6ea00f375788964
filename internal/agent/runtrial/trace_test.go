package runtrial

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
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
