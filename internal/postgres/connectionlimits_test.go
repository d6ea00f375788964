package postgres_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

// An administrator runs health's command, and restarts PostgreSQL: it then takes more
// connections, also where its command line has the limit, as in docker-compose.yml.
func TestConnections_WhatHealthSaysRaisesTheLimit(t *testing.T) {
	t.Parallel()

	const few = "max_connections=12"

	compose, err := os.ReadFile("../../docker-compose.yml")
	require.NoError(t, err)
	require.Contains(t, string(compose), `"max_connections=${BERTH_POSTGRES_CONNECTIONS:-300}"`, "which is what health names")

	for name, test := range map[string]struct {
		flags []string
		says  *regexp.Regexp
		apply func(o *ownServer, said string)
	}{
		"on the command line": {
			[]string{"-c", few},
			regexp.MustCompile(`-c (max_connections=\d+) .*BERTH_POSTGRES_CONNECTIONS=\d+`),
			func(o *ownServer, said string) { o.flags = []string{"-c", said} },
		},
		"in a file": {
			nil,
			regexp.MustCompile(`(ALTER SYSTEM SET max_connections = \d+)`),
			func(o *ownServer, said string) { pgtest.Exec(t, o.url("postgres", "postgres"), said) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := newOwnServer(t, test.flags...)
			if test.flags == nil {
				require.NoError(t, appendTo(o.data+"/postgresql.conf", few))
			}

			o.start()
			pgtest.Exec(t, o.url("postgres", "postgres"), "CREATE ROLE owner LOGIN", "CREATE DATABASE berth OWNER owner")
			require.NoError(t, postgres.Migrate(t.Context(), o.url("owner", "berth")))

			store, err := postgres.Open(t.Context(), postgres.Config{URL: o.url("owner", "berth"), MaxConns: 2})
			require.NoError(t, err)
			t.Cleanup(store.Close)

			for range 7 {
				pgtest.Connect(t, o.url("owner", "berth"))
			}

			health, err := store.Health(t.Context())
			require.NoError(t, err)

			f := connectionsFinding(health)
			require.True(t, f.Warn, "%+v", f)

			said := test.says.FindStringSubmatch(f.Next)
			require.NotNil(t, said, f.Next)
			test.apply(o, said[1])

			o.stop()
			o.start()
			require.Equal(t, 24, pgtest.Count(t, o.url("postgres", "postgres"), "SELECT setting::int FROM pg_settings WHERE name = 'max_connections'"))
		})
	}
}

// docker-compose.yml runs this script again to change a password. It sets the limits of a
// new installation, raises lower ones, and never lowers one.
func TestPostgresInit_LeavesHigherLimits(t *testing.T) {
	t.Parallel()

	o := newOwnServer(t)
	o.start()

	script := func() {
		cmd := exec.CommandContext(t.Context(), "sh", "../../deploy/postgres-init.sh")
		cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+o.port, "PGDATABASE=postgres",
			"BERTH_DB_PASSWORD=a", "TEMPORAL_DB_PASSWORD=b", "BERTH_SERVER_DB_PASSWORD=c", "BERTH_WORKER_DB_PASSWORD=d")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	limit := func(role string) int {
		return pgtest.Count(t, o.url("postgres", "postgres"), "SELECT rolconnlimit FROM pg_roles WHERE rolname = '"+role+"'")
	}

	script()

	worker := limit("berth_worker")
	require.Equal(t, []int{180, 60, 60, 150}, []int{limit("berth"), limit("temporal"), limit("berth_server"), worker})
	require.Positive(t, limit("berth_server")/health.ServerConnections)

	pgtest.Exec(t, o.url("postgres", "postgres"), "ALTER ROLE berth_worker CONNECTION LIMIT 500", // docs/production.md
		"ALTER ROLE berth_server CONNECTION LIMIT 20", "ALTER ROLE berth CONNECTION LIMIT -1")
	script()
	require.Equal(t, []int{-1, 60, 60, 500}, []int{limit("berth"), limit("temporal"), limit("berth_server"), limit("berth_worker")})
}

// appendTo keeps the file's owner, PostgreSQL's.
func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}

	_, err = f.WriteString("\n" + line + "\n")

	return errors.Join(err, f.Close())
}
