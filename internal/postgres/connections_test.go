package postgres_test

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

// connectionsFinding is what health says of connections.
func connectionsFinding(h health.State) health.Finding {
	all := h.Findings()

	return all[slices.IndexFunc(all, func(f health.Finding) bool { return f.Part == "connections" })]
}

// Each machine that is added takes connections of one role, until its limit keeps the next
// one out.
func TestConnections_OfARoleRunOut(t *testing.T) {
	t.Parallel()

	const limit = 10

	g := setupRoles(t)

	migrator, err := postgres.NewMigrator(g.ownerURL)
	require.NoError(t, err)

	_, err = migrator.Grant(t.Context(), postgres.Roles{Server: []string{g.server}, Worker: []string{g.worker}})
	require.NoError(t, err)
	g.exec(g.superUser, "ALTER ROLE "+g.worker+" CONNECTION LIMIT 10")

	store := open(t, g.serverURL)
	used := func() (of health.ConnectionUse, f health.Finding) {
		h, err := store.Health(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, h.Connections)
		require.Empty(t, h.Connections[0].Role, "the server's own limit comes first")
		require.Positive(t, h.Connections[0].Used)
		require.Positive(t, h.Connections[0].Limit)

		for _, use := range h.Connections {
			if use.Role == g.worker {
				of = use
			}
		}

		return of, connectionsFinding(health.State{Connections: []health.ConnectionUse{of}}) // others' tests use the server
	}

	for range 7 {
		pgtest.Connect(t, g.workerURL)
	}

	use, f := used()
	require.Equal(t, health.ConnectionUse{Role: g.worker, Used: 7, Limit: limit}, use)
	require.True(t, f.OK && !f.Warn)

	pgtest.Connect(t, g.workerURL)

	elsewhere := "elsewhere_" + g.worker // a role of another program, such as Temporal's
	g.exec(g.superUser, "CREATE ROLE "+elsewhere+" LOGIN CONNECTION LIMIT 1 PASSWORD 'x'")

	u, err := url.Parse(g.superUser)
	require.NoError(t, err)

	u.User = url.UserPassword(elsewhere, "x")
	pgtest.Connect(t, u.String())

	h, err := store.Health(t.Context())
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(h.Connections, func(u health.ConnectionUse) bool { return u.Role == elsewhere }))

	_, f = used()
	require.True(t, f.OK && f.Warn)
	require.Equal(t, `8 of the 10 connections of the role "`+g.worker+`" are in use`, f.What)
	require.Contains(t, f.Next, `ALTER ROLE "`+g.worker+`" CONNECTION LIMIT 20`)

	// A worker that gets one connection and no second.
	pgtest.Connect(t, g.workerURL)

	var said safeLog

	worker, err := postgres.Open(t.Context(), postgres.Config{URL: g.workerURL, Log: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	t.Cleanup(worker.Close)

	for range 3 {
		err := worker.Lead(t.Context(), "one", func(context.Context) error { // on its connection; the pool has none then
			_, err := worker.Installation(t.Context())

			return err
		})
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
		require.ErrorContains(t, err, "PostgreSQL takes no more connections")
		require.ErrorContains(t, err, "too many connections for role")
		require.ErrorContains(t, err, "CONNECTION LIMIT")
	}

	require.Equal(t, 1, said.count("level=ERROR"), "%s", &said)
}
