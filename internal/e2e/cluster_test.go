//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/store/postgres"
)

// Patience of a cluster's workers, short so that a test need not wait minutes.
const (
	fastHeartbeat = 5 * time.Second
	fastHost      = 8 * time.Second // how long an attempt waits for its host
	fastReconcile = time.Second
	fastGrace     = 4 * time.Second
)

// cluster is a production-like Berth for one test; each part is a process that
// can be killed alone: PostgreSQL, Temporal, a server, and workers of several
// hosts that share this machine's Docker. Each worker talks to PostgreSQL and
// Temporal through proxies that can be cut.
type cluster struct {
	stack // its worker and dev are not used

	postgres *devstack.Postgres
	temporal *devstack.Temporal
	proxies  *toxiproxy.ApiServer
	server   *exec.Cmd
	listen   string
	hosts    []*host
	dynamic  []string // configuration of Temporal
	undo     []func() // last steps of clean, once nothing runs
}

// host is one machine, as far as Berth can tell.
type host struct {
	name     string
	dir      string
	flags    []string
	env      []string // of its worker, beside our own
	postgres *toxiproxy.Proxy
	temporal *toxiproxy.Proxy
	worker   *exec.Cmd
	away     bool // dead or frozen, on purpose
	cut      bool // from PostgreSQL, Temporal or both
}

// startCluster runs a cluster of this many hosts of 2 cores and the given
// memory. It calls prepare while only an empty PostgreSQL runs.
func startCluster(t testing.TB, hosts int, memory string, prepare ...func(*cluster)) *cluster {
	t.Helper()

	c := startParts(t, prepare...)

	for range hosts {
		c.startHost(c.addHost("--memory", memory))
	}

	c.awaitHosts()

	return c
}

// startParts runs all of a cluster but its hosts.
func startParts(t testing.TB, prepare ...func(*cluster)) *cluster {
	t.Helper()

	dir, err := os.MkdirTemp("", "berth-e2e-") //nolint:usetesting // a test's own directory is closed to PostgreSQL's user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: PostgreSQL's user must pass through

	c := &cluster{
		stack:   stack{t: t, dir: dir, instance: "e2e-" + uuid.NewString()[:8]},
		proxies: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop()),
		listen:  "127.0.0.1:" + strconv.Itoa(freePort(t)),
	}

	t.Cleanup(c.clean)
	c.startPostgres()

	for _, do := range prepare {
		do(c)
	}

	require.NoError(t, postgres.Migrate(t.Context(), c.postgres.URL))
	c.startTemporal()
	c.startServer()

	return c
}

// addHost adds a machine, whose worker does not run yet.
func (c *cluster) addHost(flags ...string) *host {
	h := &host{name: fmt.Sprintf("host-%d", len(c.hosts)+1), flags: flags}
	h.dir = filepath.Join(c.dir, h.name)
	h.postgres = c.proxy(h.name+"-postgres", fmt.Sprintf("127.0.0.1:%d", c.postgres.Port))
	h.temporal = c.proxy(h.name+"-temporal", c.temporal.Address)
	c.hosts = append(c.hosts, h)

	return h
}

func freePort(t testing.TB) int {
	t.Helper()

	port, err := devstack.FreePort(0)
	require.NoError(t, err)

	return port
}

func (c *cluster) proxy(name, upstream string) *toxiproxy.Proxy {
	p := toxiproxy.NewProxy(c.proxies, name, "127.0.0.1:0", upstream)
	require.NoError(c.t, p.Start())

	return p
}

// startPostgres starts the database, the second time on the same port.
func (c *cluster) startPostgres() {
	port := 0
	if c.postgres != nil {
		port = c.postgres.Port
	}

	p, err := devstack.StartPostgres(c.t.Context(), devstack.PostgresConfig{Dir: filepath.Join(c.dir, "postgres"), Port: port})
	require.NoError(c.t, err)
	require.True(c.t, port == 0 || p.Port == port, "the port was taken meanwhile")

	c.postgres = p
}

// crashPostgres is `pg_ctl stop -m immediate`, as in a power cut, and a start.
func (c *cluster) crashPostgres() {
	_ = syscall.Kill(c.postgres.PID(), syscall.SIGQUIT)
	_ = c.postgres.Stop() // waits
	c.startPostgres()
}

// startTemporal starts Temporal, the second time on the same port.
func (c *cluster) startTemporal() {
	address, port := "", 0
	if c.temporal != nil {
		address = c.temporal.Address
		port, _ = strconv.Atoi(address[strings.LastIndex(address, ":")+1:])
	}

	started, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: filepath.Join(c.dir, "temporal"), Port: port, Headless: true, Dynamic: c.dynamic})
	require.NoError(c.t, err)
	require.True(c.t, address == "" || started.Address == address, "the port was taken meanwhile")

	c.temporal = started
}

func (c *cluster) killTemporal() {
	_ = syscall.Kill(c.temporal.PID(), syscall.SIGKILL)
	_ = c.temporal.Stop() // waits
}

// startServer starts the server, the second time on the same port.
func (c *cluster) startServer() {
	c.server = c.spawn("server", "server", "--listen", c.listen, "--postgres-url", c.postgres.URL, "--temporal-address", c.temporal.Address)

	c.url = "http://" + c.listen
	c.connect()

	require.Eventually(c.t, func() bool {
		answer, err := c.api.ListHostsWithResponse(c.t.Context())

		return err == nil && answer.JSON200 != nil
	}, startTimeout, tick, "berth server did not start: %s", c.output("server"))
}

// startHost starts the worker of a host, and does not wait for it.
func (c *cluster) startHost(h *host) {
	cmd := exec.Command(binary, c.workerArgs(h)...) //nolint:noctx // stopped by clean
	cmd.Env, cmd.Dir = append(os.Environ(), h.env...), c.dir

	h.worker = launch(c.t, cmd, filepath.Join(c.dir, h.name+".log"), os.O_APPEND)
}

// workerArgs is the command line of a host's worker.
func (c *cluster) workerArgs(h *host) []string {
	return append([]string{
		"worker", "--instance", c.instance, "--data-dir", h.dir, "--host-name", h.name, "--machine-id", h.name, "--cpus", "2", "--grace", "2s",
		"--postgres-url", c.through(h.postgres), "--temporal-address", h.temporal.Listen,
		"--waits", fmt.Sprintf("heartbeat=%s,host=%s,reconcile=%s,grace=%s", fastHeartbeat, fastHost, fastReconcile, fastGrace),
	}, h.flags...)
}

// through is the database's URL by way of a proxy.
func (c *cluster) through(p *toxiproxy.Proxy) string {
	u, err := url.Parse(c.postgres.URL)
	require.NoError(c.t, err)

	u.Host = p.Listen

	return u.String()
}

// awaitHosts waits until every host's worker serves.
func (c *cluster) awaitHosts() {
	require.Eventually(c.t, func() bool {
		for _, h := range c.hosts {
			if !strings.Contains(c.output(h.name), "worker serves") {
				return false
			}
		}

		return true
	}, startTimeout, tick, "workers did not start: %s", c.output("host-1"))
}

// spawn runs berth with its output appended to the file of that name.
func (c *cluster) spawn(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...) //nolint:noctx // stopped by clean

	return launch(c.t, cmd, filepath.Join(c.dir, name+".log"), os.O_APPEND)
}

// cut makes a connection a black hole: it drops all bytes, answers nothing, and
// closes nothing.
func (c *cluster) cut(p *toxiproxy.Proxy) {
	for _, stream := range []string{"upstream", "downstream"} {
		toxic, err := json.Marshal(map[string]any{
			"name": stream, "type": "timeout", "stream": stream, "attributes": map[string]any{"timeout": 0},
		})
		require.NoError(c.t, err)

		_, err = p.Toxics.AddToxicJson(strings.NewReader(string(toxic)))
		require.NoError(c.t, err)
	}
}

// heal ends a cut. Earlier connections stay dead, as after a real partition.
func (c *cluster) heal(p *toxiproxy.Proxy) {
	p.Toxics.ResetToxics(c.t.Context())
}

// clean stops everything, prints a failed test's history, and leaves no
// container.
func (c *cluster) clean() {
	if c.t.Failed() && c.postgres != nil && c.temporal != nil {
		c.diagnose(c.postgres.URL, c.temporal.Address)
	}

	for _, h := range c.hosts {
		if lives(h.worker) {
			_ = h.worker.Process.Signal(syscall.SIGCONT)
		}

		c.heal(h.postgres)
		c.heal(h.temporal)
		stop(h.worker, syscall.SIGTERM)
		h.postgres.Stop()
		h.temporal.Stop()
	}

	stop(c.server, syscall.SIGTERM)

	if c.temporal != nil {
		_ = c.temporal.Stop()
	}

	if c.postgres != nil {
		_ = c.postgres.Stop()
	}

	for _, one := range c.containers() {
		_ = exec.Command("docker", "rm", "--force", one.id).Run() //nolint:noctx // our own container
	}

	if c.t.Failed() {
		c.t.Logf("temporal:\n%s", c.output("temporal/temporal"))
		c.t.Logf("server:\n%s", c.output("server"))

		for _, h := range c.hosts {
			c.t.Logf("%s:\n%s", h.name, c.output(h.name))
		}
	}

	for _, do := range c.undo {
		do()
	}

	_ = os.RemoveAll(c.dir)
}
