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

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// untilTold is a sweep of trials that run until the test makes /tmp/end in their containers.
func untilTold(trials int) string {
	return strings.NewReplacer("berth-test/busy:1", "berth-examples/python:3.11",
		`[/busy, train, "0", "{{n}}"]`, `[python3, -c, "import os, time\nwhile not os.path.exists('/tmp/end'): time.sleep(0.05)\nprint('val={{n}}')"]`,
	).Replace(busy(trials, 0, small))
}

// Trials do not notice the end of any process of Berth: each keeps its container, is
// started once and has one result.
func TestDeath_ContainersOutliveEachProcess(t *testing.T) {
	t.Parallel()

	s := start(t, "--cpus", "4", "--waits", "heartbeat="+fastHeartbeat.String())
	id := s.submit(untilTold(2))
	before := s.twoRunning(id)

	for _, end := range []struct {
		name  string
		kills func()
		says  string // the worker that comes after
	}{
		{"the worker is killed", func() { stop(s.worker, syscall.SIGKILL) }, "worker serves"},
		{"the worker is stopped", func() { stop(s.worker, syscall.SIGTERM) }, "worker serves"},
		{"the machine's id is lost", func() { // its cores must not be handed out twice
			stop(s.worker, syscall.SIGKILL)
			require.NoError(t, os.Remove(filepath.Join(s.dir, "host-id")))
		}, "taking over the host"},
		{"all are killed", func() { // the database and Temporal die with their parent
			stop(s.worker, syscall.SIGKILL)
			stop(s.dev, syscall.SIGKILL)
			s.startDev()
		}, "worker serves"},
	} {
		end.kills()
		require.Equal(t, before, s.twoRunning(id), end.name)

		s.startWorker() // and there is one host
		require.Contains(t, s.output("worker"), end.says, end.name)
		require.Eventually(t, func() bool { return strings.Count(s.output("worker"), "adopted=true") == 2 }, patience, tick, end.name)
	}

	s.killServersOfDev()
	s.requireOneTrial()

	for _, box := range before {
		s.touch(box, "/tmp/end")
	}

	s.requireOnce(id, 2)

	for _, a := range s.attempts(id) {
		require.Contains(t, []string{before[0].id, before[1].id}, a.ContainerID)
	}

	s.requireQuiet(id)
}

// killServersOfDev kills PostgreSQL and Temporal below `berth dev`, which starts each
// again and names its log file.
func (s *stack) killServersOfDev() {
	s.t.Helper()

	for name, files := range map[string][2]string{
		"PostgreSQL": {"postgres/data/postmaster.pid", "postgres/postgres.log"},
		"Temporal":   {"temporal/temporal.pid", "temporal/temporal.log"},
	} {
		first, _, _ := strings.Cut(readFile(s.t, filepath.Join(s.dir, files[0])), "\n")
		pid, err := strconv.Atoi(first)
		require.NoError(s.t, err)
		require.NoError(s.t, syscall.Kill(pid, syscall.SIGKILL))

		require.Eventually(s.t, func() bool {
			return strings.Contains(s.output("dev"), `"`+name+` ended; Berth starts it again" ended="signal: killed" output=`+filepath.Join(s.dir, files[1]))
		}, patience, tick, s.output("dev"))
	}

	require.Eventually(s.t, func() bool { return s.status("/readyz") == http.StatusOK }, patience, tick, "the database stays away")
}

// twoRunning waits until two containers of a sweep run.
func (s *stack) twoRunning(id string) []container {
	s.t.Helper()

	var all []container

	require.Eventually(s.t, func() bool {
		all = s.running(id)

		return len(all) == 2
	}, patience, tick)

	return all
}

// Two Berths on one data directory, one machine or one namespace of Temporal
// refuse each other with a sentence.
func TestDeath_SecondOfOneIsRefused(t *testing.T) {
	t.Parallel()

	s := plain(t)
	postgresURL, temporalAddress := s.backends()

	other := func() string {
		dir := newStack(t).dir
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

	sweep := s.until(s.submit(busy(1, 100, half)), patience, ended)
	require.Equal(s.t, client.SweepStateSucceeded, sweep.State, "%+v", sweep)
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
