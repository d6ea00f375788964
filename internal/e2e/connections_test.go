//go:build integration && nightly

package e2e

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// docs/production.md, health and the limits in deploy/postgres-init.sh state how many
// connections a server takes: its pool, and the connections that it holds for good. Open pages
// must not raise that number.
func TestServer_TakesAsManyConnectionsAsItSays(t *testing.T) {
	t.Parallel()

	dir, err := os.MkdirTemp("", "berth-e2e-") //nolint:usetesting // PostgreSQL must reach it as another user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	s := &stack{t: t, dir: dir, instance: "e2e-" + uuid.NewString()[:8]}
	t.Cleanup(func() {
		stop(s.dev, syscall.SIGTERM)
		_ = os.RemoveAll(dir)
	})

	s.startDev()

	address, _ := s.backends()
	asking, done := context.WithCancel(t.Context())

	var people sync.WaitGroup
	for range 30 {
		people.Go(func() {
			for asking.Err() == nil {
				_, _ = s.api.ListSweepsWithResponse(asking, nil)
			}
		})
	}

	t.Cleanup(people.Wait)
	t.Cleanup(done)

	connections := func() int {
		return pgtest.Count(t, address, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'berth'")
	}

	require.Eventually(t, func() bool { return connections() >= health.ServerConnections }, patience, tick)

	for range 200 { // each asks on a connection of its own, some seconds in all
		require.LessOrEqual(t, connections(), health.ServerConnections)
	}
}
