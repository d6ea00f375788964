//go:build integration

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

func TestDeath_KilledWorkerAdoptsItsContainers(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(4, 20_000, small))
	s.until(id, time.Minute, running(2))

	before := s.twoRunning()

	stop(s.worker, syscall.SIGKILL)
	require.Len(t, s.containers(), 2, "containers go on without their worker")
	s.startWorker()

	sweep := s.until(id, 3*time.Minute, ended)
	require.Equal(t, 4, sweep.Counts.Succeeded)

	// The same containers, each started once, each with one result.
	attempts := s.attempts(id)
	require.Len(t, attempts, 4)

	ids := map[string]bool{}
	for _, a := range attempts {
		ids[a.ContainerID] = true
		require.Equal(t, "ok", a.FailureKind)
	}

	for _, c := range before {
		require.True(t, ids[c.id], "container %s was not adopted", c.name)
	}

	s.requireQuiet()
}

// twoRunning waits until two containers run.
func (s *stack) twoRunning() []container {
	s.t.Helper()

	var all []container

	require.Eventually(s.t, func() bool {
		all = s.containers()

		return len(all) == 2 && all[0].state == "running" && all[1].state == "running"
	}, 30*time.Second, tick)

	return all
}

func TestDeath_StoppedWorkerDetachesAndSuccessorAdoptsAtOnce(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(2, 20_000, small))
	s.until(id, time.Minute, running(2))

	before := s.twoRunning()

	stop(s.worker, syscall.SIGTERM)

	for _, c := range s.containers() {
		require.Equal(t, "running", c.state, "an orderly stop leaves containers running")
	}

	s.startWorker()
	require.Equal(t, 2, s.until(id, time.Minute, ended).Counts.Succeeded)

	ids := map[string]bool{}
	for _, a := range s.attempts(id) {
		ids[a.ContainerID] = true
	}

	for _, c := range before {
		require.True(t, ids[c.id])
	}
}

func TestDeath_KilledServerDatabaseAndTemporalResume(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(6, 3_000, small))
	s.until(id, time.Minute, running(2))

	// Everything but the containers: the database and Temporal die with their parent.
	stop(s.worker, syscall.SIGKILL)
	stop(s.dev, syscall.SIGKILL)

	s.startDev()
	s.startWorker()

	sweep := s.until(id, 3*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State)
	require.Equal(t, 6, sweep.Counts.Succeeded)
	require.Len(t, s.attempts(id), 6, "no attempt was repeated")
}

// A worker whose data directory lost the machine's id is the same host: it finds
// its containers, and the machine's cores are not handed out twice.
func TestDeath_LostHostID(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(4, 20_000, small))
	s.until(id, time.Minute, running(2))

	before := s.twoRunning()

	stop(s.worker, syscall.SIGKILL)
	require.NoError(t, os.Remove(filepath.Join(s.dir, "host-id")))
	s.startWorker() // expects one host
	require.Contains(t, s.output("worker"), "taking over the host")

	sweep := s.until(id, 3*time.Minute, ended)
	require.Equal(t, 4, sweep.Counts.Succeeded)
	require.Len(t, s.attempts(id), 4, "no attempt was repeated")

	after := map[string]bool{}
	for _, a := range s.attempts(id) {
		after[a.ContainerID] = true
	}

	for _, one := range before {
		require.True(t, after[one.id], "container %s was replaced", one.name)
	}
}

// Two Berths on one data directory, one machine or one namespace of Temporal
// refuse each other with a sentence.
func TestDeath_SecondOfOneIsRefused(t *testing.T) {
	t.Parallel()

	s := start(t)
	postgresURL, temporalAddress := s.backends()

	other := func() string {
		dir, err := os.MkdirTemp("", "berth-e2e-") //nolint:usetesting // a test's own directory is closed to PostgreSQL's user
		require.NoError(t, err)
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: PostgreSQL's user must pass through
		t.Cleanup(func() { _ = os.RemoveAll(dir) })

		return dir
	}
	worker := []string{"worker", "--instance", s.instance, "--postgres-url", postgresURL, "--temporal-address", temporalAddress}

	for name, test := range map[string]struct {
		args []string
		says []string
	}{
		"data directory": {append(worker, "--data-dir", s.dir), []string{"another `berth worker` uses " + s.dir, "give another --data-dir"}},
		"machine":        {append(worker, "--data-dir", other()), []string{"this machine has a worker already", s.dir, "stop that worker first"}},
		"namespace": {
			[]string{"dev", "--no-worker", "--listen", "127.0.0.1:0", "--data-dir", other(), "--temporal-address", temporalAddress},
			[]string{"belongs to installation", "give another --temporal-namespace"},
		},
	} {
		cmd := exec.Command(binary, test.args...) //nolint:noctx // ends by itself

		out, err := cmd.CombinedOutput()
		require.Error(t, err, name)

		for _, text := range test.says {
			require.Contains(t, string(out), text, name)
		}
	}

	s.requireOneTrial()
}

// requireOneTrial checks that a sweep of one trial succeeds.
func (s *stack) requireOneTrial() {
	s.t.Helper()

	sweep := s.until(s.submit(busy(1, 100, half)), time.Minute, ended)
	require.Equal(s.t, client.SweepStateSucceeded, sweep.State, "%+v", sweep)
}

// `berth dev` restarts its PostgreSQL and its Temporal, and names their log
// files. Running trials go on, and later sweeps end.
func TestDeath_DevStartsItsServersAgain(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(2, 8000, small))
	s.until(id, time.Minute, running(2))

	for name, files := range map[string][2]string{
		"PostgreSQL": {"postgres/data/postmaster.pid", "postgres/postgres.log"},
		"Temporal":   {"temporal/temporal.pid", "temporal/temporal.log"},
	} {
		first, _, _ := strings.Cut(readFile(t, filepath.Join(s.dir, files[0])), "\n")
		pid, err := strconv.Atoi(first)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))

		said := func() bool {
			return strings.Contains(s.output("dev"), `"`+name+` ended; Berth starts it again" ended="signal: killed" output=`+filepath.Join(s.dir, files[1]))
		}
		require.Eventually(t, said, time.Minute, tick, s.output("dev"))
	}

	require.Eventually(t, func() bool { return s.status("/readyz") == http.StatusOK }, time.Minute, tick, "the database stays away")
	s.requireOneTrial()
	s.requireOnce(id, 2)
	s.requireQuiet()
}

// status is that of the server's answer.
func (s *stack) status(path string) int {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(s.t, err)

	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())

	return answer.StatusCode
}
