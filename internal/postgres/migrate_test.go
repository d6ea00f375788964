package postgres_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/migrations"
)

func TestMigrate_UpDownUp(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store := open(t, url)
	require.NoError(t, store.CheckSchema(t.Context()))

	require.NoError(t, postgres.MigrateDown(t.Context(), url))
	require.ErrorContains(t, store.CheckSchema(t.Context()), "the database is empty: run `berth migrate`")

	require.NoError(t, postgres.Migrate(t.Context(), url))
	require.NoError(t, postgres.Migrate(t.Context(), url))
	require.NoError(t, store.CheckSchema(t.Context()))
}

func TestMigrate_SaysWhatToDoWithAnotherVersion(t *testing.T) {
	t.Parallel()

	newest, err := migrations.Newest()
	require.NoError(t, err)
	require.GreaterOrEqual(t, newest, 4)

	for _, test := range []struct {
		version int
		dirty   bool
		check   string // of what CheckSchema says; empty = nothing
		migrate string // the same of Migrate
	}{
		{newest - 1, false, "older than", ""},
		{newest + 1, false, "", "use the newer berth"},
		{newest, true, "was cut off", "was cut off"},
	} {
		url := pgtest.URL(t)
		store, pool := open(t, url), openPool(t, url)

		if test.version < newest {
			_, err := pool.Exec(t.Context(), down(t, newest))
			require.NoError(t, err)
		}

		_, err := pool.Exec(t.Context(), "UPDATE schema_migrations SET version = $1, dirty = $2", test.version, test.dirty)
		require.NoError(t, err)

		requireSays(t, store.CheckSchema(t.Context()), test.check)
		requireSays(t, postgres.Migrate(t.Context(), url), test.migrate)
	}
}

// down is what takes a migration back.
func down(t *testing.T, number int) string {
	t.Helper()

	names, err := fs.Glob(migrations.FS, fmt.Sprintf("%03d_*.down.sql", number))
	require.NoError(t, err)
	require.Len(t, names, 1)

	sql, err := fs.ReadFile(migrations.FS, names[0])
	require.NoError(t, err)

	return string(sql)
}

// requireSays wants an error with these words, or none when there are none.
func requireSays(t *testing.T, err error, words string) {
	t.Helper()

	if words == "" {
		require.NoError(t, err)

		return
	}

	require.ErrorContains(t, err, words)
	require.NotEqual(t, berth.KindInternal, berth.KindOf(err))
}
