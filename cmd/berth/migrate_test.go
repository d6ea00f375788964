package main

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

func TestMigrate_GoesBackOnlyWhenAsked(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	migrate := func(args ...string) (string, error) {
		var out bytes.Buffer

		cmd := root()
		cmd.SetArgs(append([]string{"migrate", "--postgres-url", url}, args...))
		cmd.SetErr(&out)
		err := cmd.ExecuteContext(t.Context())

		return out.String(), err
	}

	migrator, err := postgres.NewMigrator(url)
	require.NoError(t, err)

	newest := strconv.Itoa(migrator.Newest())
	before := strconv.Itoa(migrator.Steps[len(migrator.Steps)-2].Number)

	out, err := migrate()
	require.NoError(t, err)
	require.Contains(t, out, "the schema is up to date, version "+newest)

	_, err = migrate("--to", before)
	require.ErrorContains(t, err, "going back to version "+before+" loses:\n  "+migrator.Steps[len(migrator.Steps)-1].Name)
	require.ErrorContains(t, err, "add --yes if you mean it")

	_, err = migrate("--to", before, "--yes", "--grant-worker", "nobody")
	require.ErrorContains(t, err, "leave them out with --to "+before)

	_, err = migrate("--down")
	require.ErrorContains(t, err, "001_initial_schema: everything.")

	out, err = migrate("--to", before, "--yes")
	require.NoError(t, err)
	require.Contains(t, out, "now version "+before)

	_, err = migrate("--to", newest)
	require.NoError(t, err, "going forward needs no confirmation")

	_, err = migrate("--down", "--to", newest)
	require.ErrorContains(t, err, "not both")

	_, err = migrate("--down", "--yes")
	require.NoError(t, err)
}

// `docker compose run --rm migrate migrate --to N --yes` with database roles: the compose
// file gives the service BERTH_GRANT_SERVER and BERTH_GRANT_WORKER.
func TestMigrate_GoesBackWithRolesOfTheEnvironment(t *testing.T) {
	url := pgtest.URL(t)
	t.Setenv("BERTH_POSTGRES_URL", url)
	t.Setenv("BERTH_GRANT_SERVER", "berth_server")
	t.Setenv("BERTH_GRANT_WORKER", "berth_worker")

	migrator, err := postgres.NewMigrator(url)
	require.NoError(t, err)

	var out bytes.Buffer

	before := strconv.Itoa(migrator.Steps[len(migrator.Steps)-2].Number)
	migrate := func(args ...string) error {
		cmd := root()
		cmd.SetArgs(append([]string{"migrate", "--to", before, "--yes"}, args...))
		cmd.SetErr(&out)

		return cmd.ExecuteContext(t.Context())
	}

	require.ErrorContains(t, migrate("--grant-worker", "berth_worker"), "leave them out with --to "+before)
	require.NoError(t, migrate(), out.String())
	require.Contains(t, out.String(), "not used with --to "+before)
	require.Contains(t, out.String(), "now version "+before)
}
