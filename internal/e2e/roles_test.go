//go:build integration

package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/pgtest"
)

// renewGrants is a user's `berth migrate` before the first worker, and after a
// change of the schema.
func (s *stack) renewGrants() {
	s.t.Helper()

	owner, _ := s.backends()
	s.workerBackends()
	migrate(s.t, owner, "--grant-worker", workerRole)
}

const workerRole = "berth_worker"

// workerBackends is backends for a worker: its database role has the grants of a
// worker and no more, so that each test of this package fails where one is
// missing.
func (s *stack) workerBackends() (postgresURL, temporalAddress string) {
	s.t.Helper()

	owner, temporalAddress := s.backends()
	made := filepath.Join(s.dir, "worker-role") // the database outlives a restart, its port does not
	if _, err := os.Stat(made); err == nil {
		return ofRole(s.t, owner, workerRole), temporalAddress
	}

	worker := makeRole(s.t, owner, workerRole)
	require.NoError(s.t, os.WriteFile(made, nil, 0o600))

	return worker, temporalAddress
}

// ofRole is the URL with a role that has the same password.
func ofRole(t testing.TB, owner, name string) string {
	t.Helper()

	u, err := url.Parse(owner)
	require.NoError(t, err)

	password, _ := u.User.Password()
	u.User = url.UserPassword(name, password)

	return u.String()
}

// makeRole makes a role that may log in, with the password of the role in the
// URL, and returns its own URL.
func makeRole(t testing.TB, owner, name string) string {
	t.Helper()

	u, err := url.Parse(owner)
	require.NoError(t, err)

	password, _ := u.User.Password()
	pgtest.Exec(t, owner, "CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"'")

	return ofRole(t, owner, name)
}

// migrate runs `berth migrate` and returns its output.
func migrate(t testing.TB, url string, flags ...string) string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), binary, append([]string{"migrate", "--postgres-url", url}, flags...)...).CombinedOutput()
	require.NoError(t, err, string(out))

	return string(out)
}

// requireNoRefusal fails when PostgreSQL refused anything for want of a right.
func requireNoRefusal(t testing.TB, log string) {
	t.Helper()

	for line := range strings.Lines(log) {
		require.NotContains(t, line, "permission denied")
	}
}
