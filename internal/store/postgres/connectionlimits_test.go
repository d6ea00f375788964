package postgres_test

import (
	"net/url"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// docker-compose.yml runs this script again to change a password. It sets the limits of a
// new installation, raises lower ones, and never lowers one.
func TestPostgresInit_LeavesHigherLimits(t *testing.T) {
	t.Parallel()

	compose, err := os.ReadFile("../../../docker-compose.yml")
	require.NoError(t, err)
	require.Contains(t, string(compose), `"max_connections=${BERTH_POSTGRES_CONNECTIONS:-300}"`, "which is what health names")

	own := durable(t) // roles are the server's
	pgtest.Exec(t, own, "CREATE ROLE postgres SUPERUSER LOGIN PASSWORD 'p'", "CREATE DATABASE postgres_init")

	u, err := url.Parse(own)
	require.NoError(t, err)

	u.User, u.Path = url.UserPassword("postgres", "p"), "/postgres_init"
	pgtest.Exec(t, u.String(), "ALTER DATABASE berth RENAME TO other", "ALTER ROLE berth RENAME TO other")

	script := func() {
		cmd := exec.CommandContext(t.Context(), "sh", "../../../deploy/postgres-init.sh")
		cmd.Env = append(os.Environ(), "PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGPASSWORD=p", "PGDATABASE=postgres_init",
			"BERTH_DB_PASSWORD=a", "TEMPORAL_DB_PASSWORD=b", "BERTH_SERVER_DB_PASSWORD=c", "BERTH_WORKER_DB_PASSWORD=d")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	limits := func() (limits []int) {
		for _, role := range []string{"berth", "temporal", "berth_server", "berth_worker"} {
			limits = append(limits, pgtest.Count(t, u.String(), "SELECT rolconnlimit FROM pg_roles WHERE rolname = '"+role+"'"))
		}

		return limits
	}

	script()
	require.Equal(t, []int{180, 60, 60, 150}, limits())
	require.Positive(t, limits()[2]/health.ServerConnections)

	pgtest.Exec(t, u.String(), "ALTER ROLE berth_worker CONNECTION LIMIT 500", // docs/production.md
		"ALTER ROLE berth_server CONNECTION LIMIT 20", "ALTER ROLE berth CONNECTION LIMIT -1")
	script()
	require.Equal(t, []int{-1, 60, 60, 500}, limits())
}
