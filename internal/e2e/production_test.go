//go:build integration

package e2e

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/testkit/certtest"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// production is a server and a worker as a team runs them: PostgreSQL and
// Temporal by TLS, a certificate of the server's own, a role for each process.
type production struct {
	*stack

	authority            *certtest.Authority
	admin                string // URL of the database, as a superuser
	owner, server, hosts string // its URLs for each role
	temporal             []string
}

// startProduction starts database and Temporal, and makes certificates and roles.
func startProduction(t *testing.T) *production {
	t.Helper()

	dir, err := os.MkdirTemp("", "berth-e2e-") //nolint:usetesting // a test's own directory is closed to PostgreSQL's user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: PostgreSQL's user must pass through
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	p := &production{stack: &stack{t: t, dir: dir, instance: "e2e-" + uuid.NewString()[:8]}, authority: certtest.NewAuthority(t, dir)}

	database, err := devstack.StartPostgres(t.Context(), devstack.PostgresConfig{Dir: filepath.Join(dir, "postgres"), Volatile: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Stop()) })

	p.encrypt(database)

	temporal, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: filepath.Join(dir, "temporal"), InMemory: true, Headless: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, temporal.Stop()) })

	ours := p.authority.Sign("berth", time.Hour, "berth")
	address := certtest.Terminate(t, p.authority.Sign("temporal", time.Hour, "temporal.example").Config(t, p.authority), temporal.Address)
	p.temporal = []string{
		"--temporal-address", address, "--temporal-tls-ca", p.authority.File, "--temporal-tls-cert", ours.Cert, "--temporal-tls-key", ours.Key,
		"--temporal-tls-server-name", "temporal.example",
	}

	return p
}

// encrypt turns TLS on in the database, and makes three roles that use it.
func (p *production) encrypt(database *devstack.Postgres) {
	p.t.Helper()

	data := filepath.Join(p.dir, "postgres", "data")
	info, err := os.Stat(data)
	require.NoError(p.t, err)

	owner, ok := info.Sys().(*syscall.Stat_t)
	require.True(p.t, ok)

	pair := p.authority.Sign("postgres", time.Hour, "127.0.0.1")
	for from, to := range map[string]string{pair.Cert: "server.crt", pair.Key: "server.key"} {
		path := filepath.Join(data, to)
		require.NoError(p.t, os.WriteFile(path, []byte(readFile(p.t, from)), 0o600))
		require.NoError(p.t, os.Chown(path, int(owner.Uid), int(owner.Gid)))
	}

	p.admin = database.URL
	pgtest.Exec(p.t, database.URL, "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")

	verified := func(plain string) string {
		u, err := url.Parse(plain)
		require.NoError(p.t, err)

		u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {p.authority.File}}.Encode()

		return u.String()
	}

	p.owner, p.server, p.hosts = makeRole(p.t, database.URL, "berth_owner"), makeRole(p.t, database.URL, "berth_server"), makeRole(p.t, database.URL, workerRole)
	pgtest.Exec(p.t, database.URL, "ALTER DATABASE berth OWNER TO berth_owner")
	p.owner, p.server, p.hosts = verified(p.owner), verified(p.server), verified(p.hosts)

	require.Eventually(p.t, func() bool {
		return pgtest.Try(p.t.Context(), p.owner, "SELECT 1") == nil
	}, startTimeout, tick, "PostgreSQL does not speak TLS")
}

// serve starts the server, and makes the client with its first token.
func (p *production) serve() {
	p.t.Helper()

	port, err := devstack.FreePort(0)
	require.NoError(p.t, err)

	pair := p.authority.Sign("server", time.Hour, "127.0.0.1")
	p.url = "https://127.0.0.1:" + strconv.Itoa(port)

	cmd := exec.Command(binary, append([]string{ //nolint:noctx // stopped below
		"server", "--postgres-url", p.server, "--listen", "127.0.0.1:" + strconv.Itoa(port), "--tls-cert", pair.Cert, "--tls-key", pair.Key,
		"--first-token", "--artifacts", filepath.Join(p.dir, "store"), "--keep-outputs", "1h", "--keep-sweeps", "1h",
	}, p.temporal...)...)
	p.dev = launch(p.t, cmd, filepath.Join(p.dir, "server.log"), os.O_TRUNC)

	var token string

	require.Eventually(p.t, func() bool {
		_, after, _ := strings.Cut(p.output("server"), "shown once: ")
		token, _, _ = strings.Cut(after, "\n")

		return token != ""
	}, startTimeout, tick, "berth server did not start: %s", p.output("server"))

	p.env = []string{"BERTH_SERVER=" + p.url, "BERTH_CA_FILE=" + p.authority.File, "BERTH_TOKEN=" + token}

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.authority.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	p.t.Cleanup(transport.CloseIdleConnections)

	p.api, err = client.NewClientWithResponses(p.url+"/api/v1", client.WithHTTPClient(&http.Client{Transport: transport, Timeout: answerTimeout}),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)

			return nil
		}))
	require.NoError(p.t, err)
}

// cli runs a client command against the server.
func (p *production) cli(args ...string) string {
	p.t.Helper()

	cmd := exec.CommandContext(p.t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, string(out))

	return string(out)
}

// A whole sweep, its deletion, and the use of tokens and health, with only the
// privileges of each role.
func TestProduction_TLSAndRoles(t *testing.T) {
	t.Parallel()

	p := startProduction(t)

	said := migrate(t, p.owner, "--grant-server", "berth_server", "--grant-worker", workerRole)
	require.Contains(t, said, `the role "berth_server" may do what a server does, and nothing else`)
	require.Contains(t, said, `the role "berth_worker" may do what a worker does, and nothing else`)

	p.serve()

	worker := exec.Command(binary, append([]string{ //nolint:noctx // stopped below
		"worker", "--postgres-url", p.hosts, "--instance", p.instance, "--data-dir", p.dir, "--grace", "3s", "--artifacts", filepath.Join(p.dir, "store"), "--keep-outputs-size", "1GiB",
	}, p.temporal...)...)
	p.worker = launch(t, worker, filepath.Join(p.dir, "worker.log"), os.O_TRUNC)

	t.Cleanup(func() {
		stop(p.worker, syscall.SIGTERM)
		stop(p.dev, syscall.SIGTERM)

		for _, c := range p.containers() {
			_ = p.docker("rm", "--force", c.id).Run() // our own container
		}

		if t.Failed() {
			t.Logf("server:\n%s\nworker:\n%s\npostgres:\n%s", p.output("server"), p.output("worker"), p.output("postgres/postgres"))
		}
	})

	require.Eventually(t, func() bool { return strings.Contains(p.output("worker"), "worker serves") }, startTimeout, tick,
		"berth worker did not start: %s", p.output("worker"))

	id := p.submit(busy(4, 200, "resources: {memory: 64MiB}"))
	sweep := p.until(id, patience, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, 4, sweep.Counts.Succeeded)

	p.requireQuiet(id)

	require.Contains(t, p.cli("sweep", "list"), "busy")
	require.Contains(t, p.cli("token", "create", "me", "--role", "operator"), "berth_")
	require.Contains(t, p.cli("host", "list"), "ready")
	require.NotEmpty(t, p.cli("sweep", "export", id, "--format", "csv"))
	require.NotEmpty(t, p.cli("sweep", "report", id))
	require.NotEmpty(t, p.cli("probe", "list"))

	require.Zero(t, pgtest.Count(t, p.admin, "SELECT count(*) FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE a.usename LIKE 'berth\\_%' AND NOT s.ssl"))

	p.cli("sweep", "delete", id, "--yes")
	require.Eventually(t, func() bool { return pgtest.Count(t, p.admin, "SELECT count(*) FROM sweeps") == 0 }, patience, tick, "the sweep's rows stay: %s", p.output("server"))
	require.Positive(t, pgtest.Count(t, p.admin, "SELECT count(*) FROM audit_log"))

	doctor := exec.CommandContext(t.Context(), binary, append([]string{"doctor", "--postgres-url", p.server}, p.temporal...)...)
	out, _ := doctor.CombinedOutput() // the machine of the test may have things to fix
	require.Contains(t, string(out), "ok   Temporal: answers")

	for _, log := range []string{p.output("server"), p.output("worker"), string(out), p.output("postgres/postgres")} {
		requireNoRefusal(t, log)
	}

	stranger := certtest.NewAuthority(t, p.dir)
	wrong := strings.Replace(p.hosts, url.QueryEscape(p.authority.File), url.QueryEscape(stranger.File), 1)

	out, err := exec.CommandContext(t.Context(), binary, "doctor", "--postgres-url", wrong).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "certificate signed by unknown authority")
}
