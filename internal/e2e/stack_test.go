//go:build integration

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// binary is the berth that all tests run.
var binary string

// TestMain builds berth, or takes the binary that BERTH_TEST_BINARY names, on a
// machine without Go. In the end it stops the stacks that tests shared.
func TestMain(m *testing.M) {
	if binary = os.Getenv("BERTH_TEST_BINARY"); binary != "" {
		os.Exit(whole.run(m))
	}

	dir, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		panic(err)
	}

	binary = filepath.Join(dir, "berth")

	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "github.com/berthml/berth/cmd/berth").CombinedOutput()
	if err != nil {
		fmt.Fprintln(os.Stderr, string(out))
		os.Exit(1)
	}

	code := whole.run(m)
	_ = os.RemoveAll(dir)

	os.Exit(code)
}

const (
	// startTimeout covers the start of PostgreSQL and Temporal on a busy machine.
	startTimeout = 90 * time.Second
	tick         = 100 * time.Millisecond
	// patience is for what takes seconds: a machine that does much else passes, too.
	patience = 4 * time.Minute
	// answerTimeout tells a server that does not answer from a sweep that does not end.
	answerTimeout = 30 * time.Second
)

// stack is a Berth, of one test or shared: `berth dev --no-worker` and a worker
// beside it, with containers of its own instance.
type stack struct {
	t        testing.TB
	dir      string
	instance string
	dev      *exec.Cmd
	worker   *exec.Cmd
	url      string
	api      *client.ClientWithResponses
	flags    []string // of the worker
	env      []string // of the worker and of the docker command, beside our own
}

// start runs a stack whose worker hands out the given memory and two cores.
func start(t testing.TB, workerFlags ...string) *stack {
	t.Helper()

	return startOn(t, nil, workerFlags...)
}

// startOn runs a stack with further environment variables, such as DOCKER_HOST.
func startOn(t testing.TB, env []string, workerFlags ...string) *stack {
	t.Helper()

	s := newStack(t)
	s.env, s.flags = env, workerFlags

	return s.begin()
}

// newStack gives a stack its own directory and instance.
func newStack(t testing.TB) *stack {
	t.Helper()

	dir, err := os.MkdirTemp("", "berth-e2e-") //nolint:usetesting // a test's own directory is closed to PostgreSQL's user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: PostgreSQL's user must pass through

	return &stack{t: t, dir: dir, instance: "e2e-" + uuid.NewString()[:8]}
}

// begin starts a stack.
func (s *stack) begin() *stack {
	s.t.Helper()

	s.t.Cleanup(s.clean)
	s.startDev()
	s.startWorker()

	return s
}

// startDev runs database, Temporal and server, and waits until it answers.
func (s *stack) startDev() {
	s.t.Helper()

	_ = os.Remove(filepath.Join(s.dir, "url")) // of an earlier run

	s.dev = s.run("dev", "--no-worker", "--listen", "127.0.0.1:0", "--temporal-port", "0",
		"--rate", "10000") // a test asks every 50 ms, and many of them share a stack

	require.Eventually(s.t, func() bool {
		url, err := os.ReadFile(filepath.Join(s.dir, "url"))
		s.url = strings.TrimSpace(string(url))

		return err == nil && s.url != ""
	}, startTimeout, tick, "berth dev did not start: %s", s.output("dev"))

	s.connect()
}

// connect makes the client of the API.
func (s *stack) connect() {
	s.t.Helper()

	var err error
	s.api, err = client.NewClientWithResponses(s.url+"/api/v1", client.WithHTTPClient(&http.Client{Timeout: answerTimeout}))
	require.NoError(s.t, err)
}

// startWorker runs the worker and waits until its host is ready.
func (s *stack) startWorker() {
	s.t.Helper()

	s.renewGrants()

	postgresURL, temporalAddress := s.workerBackends()
	s.worker = s.run(append([]string{
		"worker", "--instance", s.instance, "--postgres-url", postgresURL, "--temporal-address", temporalAddress, "--grace", "3s",
	}, s.flags...)...)

	require.Eventually(s.t, func() bool {
		hosts, err := s.api.ListHostsWithResponse(s.t.Context())

		return err == nil && hosts.JSON200 != nil && len(hosts.JSON200.Data) == 1 && strings.Contains(s.output("worker"), "worker serves")
	}, startTimeout, tick, "berth worker did not start: %s", s.output("worker"))
}

// run starts berth with its output in a file named after the command.
func (s *stack) run(args ...string) *exec.Cmd {
	s.t.Helper()

	cmd := exec.Command(binary, append(args, "--data-dir", s.dir)...) //nolint:noctx // stopped by clean
	cmd.Env = append(os.Environ(), s.env...)

	return launch(s.t, cmd, filepath.Join(s.dir, args[0]+".log"), os.O_TRUNC)
}

func (s *stack) output(name string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return err.Error()
	}

	return string(data)
}

// clean checks that ended sweeps left nothing, prints a failed test's history,
// and stops everything. It silently removes containers of sweeps that a test
// leaves open.
func (s *stack) clean() {
	if s.t.Failed() {
		s.tell()
	} else {
		s.checkNothingIsLeft()
	}

	stop(s.worker, syscall.SIGTERM)
	stop(s.dev, syscall.SIGTERM)

	for _, c := range s.containers() {
		_ = s.docker("rm", "--force", c.id).Run() // our own container
	}

	_ = os.RemoveAll(s.dir)
}

// tell prints what is open, and the logs of all processes.
func (s *stack) tell() {
	if s.url != "" {
		s.diagnose(s.backends())
	}

	s.t.Logf("dev:\n%s", s.output("dev"))
	s.t.Logf("worker:\n%s", s.output("worker"))
	s.t.Logf("temporal:\n%s", s.output("temporal/temporal"))
}

// removalTimeout covers the reconciler's grace after the worker's start (a
// minute) and two of its rounds: it removes leftovers of an attempt's end.
const removalTimeout = 90 * time.Second

// checkNothingIsLeft fails a test that has ended all its sweeps and has a
// container still, or a broken ledger, while the worker and the server that end them live.
func (s *stack) checkNothingIsLeft() {
	s.t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), removalTimeout) // the test's own context has ended
	defer cancel()

	if !lives(s.dev) || !lives(s.worker) || !s.allEnded(ctx) {
		return
	}

	postgresURL, _ := s.backends()

	inspector, err := pgtest.Inspect(ctx, postgresURL)
	if err != nil {
		s.t.Errorf("inspecting the ledger: %v", err)

		return
	}
	defer inspector.Close(context.WithoutCancel(ctx))

	for {
		broken, err := inspector.Broken(ctx, true)

		left := s.containers()
		if err == nil && len(broken) == 0 && len(left) == 0 {
			return
		}

		select {
		case <-time.After(tick):
		case <-ctx.Done():
			s.t.Errorf("all sweeps have ended; containers: %v, broken: %v, %v", left, broken, err)

			return
		}
	}
}

// allEnded reports whether the server says that no sweep is open.
func (s *stack) allEnded(ctx context.Context) bool {
	open := []client.SweepState{
		client.SweepStatePending, client.SweepStateRunning, client.SweepStatePaused, client.SweepStateStopping, client.SweepStateCanceling,
	}
	answer, err := s.api.ListSweepsWithResponse(ctx, &client.ListSweepsParams{State: &open})

	return err == nil && answer.JSON200 != nil && len(answer.JSON200.Data) == 0
}

// docker is the docker command, for the daemon that the worker uses.
func (s *stack) docker(args ...string) *exec.Cmd {
	cmd := exec.Command("docker", args...) //nolint:noctx // answers at once
	cmd.Env = append(os.Environ(), s.env...)

	return cmd
}

// container is Docker's state of one of our containers.
type container struct {
	id, name, state string
}

// containers lists this stack's containers, running or not, or those of one sweep.
func (s *stack) containers(sweep ...string) []container {
	args := []string{"ps", "--all", "--no-trunc", "--filter", "label=berth.instance=" + s.instance, "--format", "{{.ID}} {{.Names}} {{.State}}"}
	for _, id := range sweep {
		args = append(args, "--filter", "label=berth.sweep="+id)
	}

	out, err := s.docker(args...).Output()
	if err != nil {
		s.t.Errorf("listing containers: %v", err)
	}

	var all []container

	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			all = append(all, container{f[0], f[1], f[2]})
		}
	}

	return all
}

// running lists the running containers, or those of one sweep.
func (s *stack) running(sweep ...string) []container {
	var all []container

	for _, one := range s.containers(sweep...) {
		if one.state == "running" {
			all = append(all, one)
		}
	}

	return all
}

func readFile(t testing.TB, path string) string {
	t.Helper()

	data, err := os.ReadFile(path)
	require.NoError(t, err)

	return string(data)
}

// one is a sweep of a single trial of the test program.
func one(command string) string {
	return `
name: alone
image: berth-test/busy:1
command: ` + command + `
parameters: [{name: n, values: [1]}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
` + small + "\n"
}

// health is the server's findings about all parts.
func (s *stack) health() string {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/healthz", nil)
	require.NoError(s.t, err)

	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)

	defer answer.Body.Close() //nolint:errcheck // only read

	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)

	return string(body)
}

// requireRefused checks that an answer says that Berth cannot now, and when to
// ask again.
func requireRefused(t testing.TB, response *http.Response, body []byte) {
	t.Helper()

	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, string(body))
	require.NotEmpty(t, response.Header.Get("Retry-After"))
}
