// Package pgtest gives tests a real PostgreSQL: one server for each test
// binary, one database for each test, copied from a migrated template.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/store/postgres"
)

var (
	server *devstack.Postgres
	made   atomic.Int64
)

// Main is a TestMain with a database: it starts the server, runs the tests,
// stops the server and looks for goroutines that were left.
func Main(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: "+err.Error())

		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	dir, err := os.MkdirTemp("", "berth-pgtest-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // best effort

	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // G302: PostgreSQL's user must pass through
		return 1, err
	}

	server, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: filepath.Join(dir, "postgres"), Volatile: true})
	if err != nil {
		return 1, err
	}

	if err := postgres.Migrate(ctx, server.URL); err != nil {
		return 1, err
	}

	code = m.Run()

	if err := server.Stop(); err != nil {
		return 1, err
	}

	if err := goleak.Find(); err != nil && code == 0 {
		return 1, err
	}

	return code, nil
}

// URL returns a migrated database of the test's own.
func URL(t testing.TB) string {
	t.Helper()

	require.NotNil(t, server, "TestMain must call pgtest.Main")

	name := fmt.Sprintf("test_%d", made.Add(1))
	admin := database(t, "postgres")

	conn, err := pgx.Connect(t.Context(), admin)
	require.NoError(t, err)

	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // read only once more

	// Copying a template takes an exclusive lock; tests are parallel.
	require.Eventually(t, func() bool {
		_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE berth")

		return err == nil || !strings.Contains(err.Error(), "being accessed by other users")
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, err)

	return database(t, name)
}

// Store returns a store on a database of the test's own.
func Store(t testing.TB) *postgres.Store {
	t.Helper()

	store, err := postgres.Open(t.Context(), postgres.Config{URL: URL(t)})
	require.NoError(t, err)
	t.Cleanup(store.Close)

	return store
}

func database(t testing.TB, name string) string {
	t.Helper()

	u, err := url.Parse(server.URL)
	require.NoError(t, err)

	u.Path = "/" + name

	return u.String()
}
