package main

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// The compose file gives the service `migrate` its settings by the environment.
func TestMigrate_ReadsTheEnvironment(t *testing.T) {
	url := pgtest.URL(t)
	t.Setenv("BERTH_POSTGRES_URL", url)

	migrator, err := postgres.NewMigrator(url)
	require.NoError(t, err)

	var out bytes.Buffer

	cmd := root()
	cmd.SetArgs([]string{"migrate"})
	cmd.SetErr(&out)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Contains(t, out.String(), "the schema is up to date, version "+strconv.Itoa(migrator.Newest()))
}
