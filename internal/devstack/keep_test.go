package devstack

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A server that cannot start goes on being started, until it is to end.
func TestKeep_EndsWhileItWaits(t *testing.T) {
	t.Parallel()

	ended, _ := shell(t, "exit 1")
	ctx, cancel := context.WithCancel(t.Context())

	var tries atomic.Int32

	kept := make(chan struct{})

	go func() {
		defer close(kept)

		keep(ctx, slog.New(slog.DiscardHandler), &ended, func() (*process, error) {
			tries.Add(1)

			return nil, berth.Errorf(berth.KindUnavailable, "no room")
		})
	}()

	require.Eventually(t, func() bool { return tries.Load() == 2 }, time.Minute, 10*time.Millisecond)
	cancel()
	<-kept
	require.EqualValues(t, 2, tries.Load())
}
