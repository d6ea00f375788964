package postgres_test

import (
	"context"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// Each machine that is added takes connections of one role, until its limit keeps the next
// one out.
func TestConnections_OfARoleRunOut(t *testing.T) {
	t.Parallel()

	const limit = 10

	g := setupRoles(t)
	_, err := g.grant(g.both())
	require.NoError(t, err)
	g.exec(g.superUser, "ALTER ROLE "+g.worker+" CONNECTION LIMIT 10")

	elsewhere := "elsewhere_" + g.worker // a role of another program, such as Temporal's
	g.exec(g.superUser, "CREATE ROLE "+elsewhere+" LOGIN CONNECTION LIMIT 1 PASSWORD 'x'")

	u, err := url.Parse(g.superUser)
	require.NoError(t, err)

	u.User = url.UserPassword(elsewhere, "x")
	pgtest.Connect(t, u.String())

	for range 8 {
		pgtest.Connect(t, g.workerURL)
	}

	h, err := open(t, g.serverURL).Health(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, h.Connections)
	require.Empty(t, h.Connections[0].Role, "the server's own limit comes first")
	require.Positive(t, h.Connections[0].Used)
	require.Positive(t, h.Connections[0].Limit)
	require.True(t, h.Connections[0].Fixed, "on the command line of the tests' server")
	require.Contains(t, h.Connections, health.ConnectionUse{Role: g.worker, Used: 8, Limit: limit})
	require.False(t, slices.ContainsFunc(h.Connections, func(u health.ConnectionUse) bool { return u.Role == elsewhere }))

	// A worker that gets one connection and no second.
	pgtest.Connect(t, g.workerURL)

	worker := open(t, g.workerURL)
	err = worker.Lead(t.Context(), "one", func(context.Context) error { // on its connection; the pool has none then
		_, err := worker.Installation(t.Context())

		return err
	})
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, "PostgreSQL takes no more connections")
	require.ErrorContains(t, err, "too many connections for role")
	require.ErrorContains(t, err, "CONNECTION LIMIT")
}
