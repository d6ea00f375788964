package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open connects a store, which is closed when the test ends.
func open(t testing.TB, url string) *postgres.Store {
	t.Helper()

	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(store.Close)

	return store
}

// openPool connects past the store, for a test's own statements.
func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()

	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	return pool
}
