//go:build integration

package main

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/pgtest"
)

// The database was moved by a dump, the old server was kept for a way back, and the worker of one
// machine was forgotten there. Its queue is the new one's: it ends, and Docker keeps what it ran.
func TestWorker_LeftOnTheReplacedDatabase(t *testing.T) {
	t.Parallel()

	server, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: t.TempDir(), InMemory: true, Headless: true, Search: searchAttributes()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	old := backends{postgresURL: pgtest.URL(t), temporalAddress: server.Address}
	require.NoError(t, old.connected(t.Context(), log, func(connections) error { return nil }), "which binds the namespace")

	address, err := url.Parse(old.postgresURL)
	require.NoError(t, err)

	name := address.Path[1:]
	address.Path = "/postgres"
	pgtest.Exec(t, address.String(), "CREATE DATABASE "+name+"_moved TEMPLATE "+name)
	address.Path = "/" + name + "_moved"
	moved := backends{postgresURL: address.String(), temporalAddress: server.Address}

	var m machine

	m.bind(pflag.NewFlagSet("worker", pflag.ContinueOnError))
	m.dataDir, m.simulate = t.TempDir(), time.Hour

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { // joined below
		ended <- old.connected(ctx, log, func(c connections) error { return runWorker(ctx, m, c, log) })
	}()

	require.NoError(t, moved.open(t.Context(), log, func(c connections) error {
		require.Eventually(t, func() bool {
			_, err := c.identity.Adopt(t.Context(), c.store, false)

			return berth.KindOf(err) == berth.KindConflict && strings.Contains(err.Error(), "whose workers asked for work")
		}, time.Minute, 100*time.Millisecond, "the worker polls")

		done, err := c.identity.Adopt(t.Context(), c.store, true)
		require.WithinDuration(t, time.Now(), done.PolledAt, servedWithin)

		return err
	}))

	select {
	case err := <-ended:
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "is used by another copy of this database")
	case <-time.After(time.Minute):
		stop()
		require.Fail(t, "the worker goes on", "%v", <-ended)
	}

	stop()
}
