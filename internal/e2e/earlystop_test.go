//go:build integration

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// Trials beyond a bound are stopped while they run, and say why.
func TestEarlyStop_EndsTrialsBeyondABound(t *testing.T) {
	t.Parallel()

	s := plain(t)
	id := s.submit(`
name: early
image: berth-test/busy:1
command: [/busy, epochs, "8000", "{{x}}", "5"]
parameters: [{name: x, values: [8, 4, 3]}]
search: {algorithm: grid}
objective: {metric: val}
early_stop: {rule: threshold, below: 1.2, max: 4}
metrics: {source: stdout}
` + small)

	sweep := s.until(id, patience, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, 1, sweep.Counts.Succeeded)
	require.Equal(t, 2, sweep.Counts.Pruned)
	require.Equal(t, 1, sweep.Best.Trial)

	for _, trial := range s.trials(id)[1:] {
		require.Equal(t, client.TrialStatePruned, trial.State)
		require.Equal(t, "pruned", trial.FailureKind)
		require.Nil(t, trial.Value)

		read, err := s.api.GetTrialWithResponse(t.Context(), id, trial.Number)
		require.NoError(t, err)
		require.Len(t, read.JSON200.Rungs, 1)

		rung := read.JSON200.Rungs[0]
		require.True(t, rung.Stop)
		require.Equal(t, int64(1), rung.Step)
		require.Equal(t, trial.Message, "stopped early: "+rung.Why)
	}

	for _, attempt := range s.attempts(id)[1:] {
		require.Less(t, attempt.Usage.WallSeconds, 8.0, "it was stopped")
	}

	s.requireQuiet(id)
}
