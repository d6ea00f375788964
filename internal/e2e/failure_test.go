//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

func TestFailure_MissingImageIsRefused(t *testing.T) {
	t.Parallel()

	s := start(t)
	file := strings.Replace(busy(1, 100, small), "berth-test/busy:1", "berth-test/absent:1", 1)

	require.Regexp(t, "E_IMAGE_(MISSING|LOGIN|REGISTRY)", s.refused(file), "by Docker Hub, or for want of a network")
}

func TestFailure_EachEndsWithItsKind(t *testing.T) {
	t.Parallel()

	s := start(t, "--cpus", "4")

	for _, tt := range []struct {
		name, command string
		kind          string
		attempts      int
		message       string
	}{
		{"entry point does not exist", "[/absent]", "bad_command", 1, "absent"},
		{"exit 0 without the metric", "[/busy, exit, '0']", "no_result", 1, "val"},
		{"error of its own", "[/busy, exit, '3']", "user_error", 1, "3"},
		{"bad configuration", "[/busy, exit, '78']", "bad_config", 1, ""},
		{"crash", "[/busy, exit, '139']", "crashed", 3, "3 attempts"},
		{"not a number", "[/busy, train, '10', NaN]", "not_finite", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			id := s.submit(`
name: failing
image: berth-test/busy:1
command: ` + tt.command + `
parameters: [{name: n, values: [1]}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
` + small + "\n")

			sweep := s.until(id, time.Minute, ended)
			require.Equal(t, client.SweepStateFailed, sweep.State)

			trial := s.trials(id)[0]
			require.Equal(t, client.TrialStateFailed, trial.State, trial.Message)
			require.Equal(t, tt.kind, trial.FailureKind, trial.Message)
			require.Contains(t, trial.Message, tt.message)
			require.Len(t, s.attempts(id), tt.attempts)
		})
	}
}

// Failure 33: a sweep whose jobs all fail does not burn through its space.
func TestFailure_PoisonSweepPausesItself(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(`
name: poison
image: berth-test/busy:1
command: [/busy, exit, '3', "{{n}}"]
parameters: [{name: n, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
limits: {max_parallel: 2}
` + small + "\n")

	sweep := s.until(id, time.Minute, func(sweep client.Sweep) bool {
		return sweep.State == client.SweepStatePaused && sweep.Counts.Running == 0
	})
	require.Contains(t, sweep.Reason, "trials all failed with user_error")
	require.Contains(t, sweep.Reason, "resume")
	require.LessOrEqual(t, sweep.Counts.Failed, 8, "five, and what ran")

	resumed, err := s.api.ResumeSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resumed.StatusCode(), string(resumed.Body))

	sweep = s.until(id, time.Minute, ended)
	require.Equal(t, client.SweepStateFailed, sweep.State)
	require.Equal(t, 14, sweep.Counts.Failed)
}

func TestOutOfMemory_GrowsAndTellsSiblings(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "3GiB", "--cpus", "2")
	// A first sweep measures the shape by a small trial; the trials of a second
	// need far more than its footprint says.
	file := func(mib string) string {
		return `
name: oom
image: berth-test/busy:1
command: [/busy, train, "1500", "1", "{{mib}}"]
parameters: [{name: mib, values: ` + mib + `}, {name: shape, values: [1], memory: true}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
probe: {mode: full}
limits: {max_parallel: 1}
`
	}
	require.Equal(t, 1, s.until(s.submit(file("[10]")), time.Minute, ended).Counts.Succeeded)

	id := s.submit(file("[300, 301, 302, 303]"))
	sweep := s.until(id, 2*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State)
	require.Equal(t, 4, sweep.Counts.Succeeded)
	require.Equal(t, 1, sweep.Counts.OomRetries, "siblings do not repeat the mistake")

	var killed, grown client.Attempt

	for _, a := range s.attempts(id) {
		switch {
		case a.FailureKind == "host_oom":
			killed = a
		case a.TrialNumber == killed.TrialNumber:
			grown = a
		}
	}

	require.NotEmpty(t, killed.ID)
	require.Equal(t, 137, *killed.ExitCode)
	require.Greater(t, grown.Demand.MemoryBytes, killed.Demand.MemoryBytes)
	require.Contains(t, killed.Message, "kernel")
}

// A program that asks for more at once than any machine has is refused, not
// killed: a larger reservation would not help it.
func TestMemoryError_IsTheProgramsOwn(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "1GiB")
	id := s.submit(`
name: asks-for-too-much
image: berth-examples/python:3.11
command: [python3, -c, "bytearray(7 << 40)", "{{n}}"]
parameters: [{name: n, values: [1]}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
resources: {memory: 256MiB}
probe: {mode: 'off'}
`)
	s.until(id, time.Minute, ended)

	trial := s.trials(id)[0]
	require.Equal(t, client.TrialStateFailed, trial.State, trial.Message)
	require.Equal(t, "user_error", trial.FailureKind)
	require.Contains(t, trial.Message, "MemoryError")
	require.Contains(t, trial.Message, "resources.memory")
	require.Len(t, s.attempts(id), 1)
}

func TestOutOfMemory_ThatNeverFitsIsInfeasible(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "1GiB")
	id := s.submit(`
name: never-fits
image: berth-test/busy:1
command: [/busy, alloc, "{{mib}}"]
parameters: [{name: mib, values: [8192]}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
resources: {memory: 64MiB}
probe: {mode: 'off'}
`)
	s.until(id, time.Minute, ended)

	trial := s.trials(id)[0]
	require.Equal(t, client.TrialStateInfeasible, trial.State)
	require.Equal(t, "too_big", trial.FailureKind)
	require.Contains(t, trial.Message, "1024 MiB")

	attempts := s.attempts(id)
	require.LessOrEqual(t, len(attempts), 3)

	for _, a := range attempts {
		require.Equal(t, "host_oom", a.FailureKind)
	}

	require.True(t, attempts[len(attempts)-1].Demand.Exclusive || attempts[len(attempts)-1].Demand.MemoryBytes == 1<<30)
	s.requireQuiet()
}
