//go:build integration

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

func TestFailure_EachEndsWithItsKind(t *testing.T) {
	t.Parallel()

	s := plain(t)

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

			id := s.submit(one(tt.command))
			sweep := s.until(id, patience, ended)
			require.Equal(t, client.SweepStateFailed, sweep.State)

			trial := s.trials(id)[0]
			require.Equal(t, client.TrialStateFailed, trial.State, trial.Message)
			require.Equal(t, tt.kind, trial.FailureKind, trial.Message)
			require.Contains(t, trial.Message, tt.message)
			require.Len(t, s.attempts(id), tt.attempts)
		})
	}
}

func TestOutOfMemory_GrowsAndTellsSiblings(t *testing.T) {
	t.Parallel()

	s := plain(t)
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
	require.Equal(t, 1, s.until(s.submit(file("[10]")), patience, ended).Counts.Succeeded)

	id := s.submit(file("[300, 301, 302, 303]"))
	sweep := s.until(id, patience, ended)
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
