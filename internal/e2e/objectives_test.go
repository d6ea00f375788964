//go:build integration

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// A search with two objectives and a constraint stores each result, ranks no trial that breaks
// the constraint, and learns from both.
func TestObjectives_AreStoredAndLearned(t *testing.T) {
	t.Parallel()

	s := plain(t)
	id := s.submit(`
name: trades
image: berth-test/busy:1
command: [/busy, args, "acc={{x}}", "ms={{y}}"]
parameters: [{name: x, min: 1, max: 4, memory: false}, {name: y, min: 1, max: 3, memory: false}]
search: {algorithm: tpe, startup: 2}
objective: [{metric: acc}, {metric: ms, goal: minimize}]
constraints: [{metric: ms, max: 2}]
metrics: {source: stdout, pattern: '(?P<name>acc|ms)=(?P<value>[0-9]+)'}
limits: {max_parallel: 2}
` + small)

	sweep := s.until(id, patience, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, 12, sweep.Counts.Succeeded, "the space is tried whole")
	require.InDelta(t, 4, sweep.Best.Value, 0)

	learned := 0

	for _, trial := range s.trials(id) {
		x, _ := trial.Params["x"].Number()
		y, _ := trial.Params["y"].Number()
		require.Equal(t, map[string]float64{"acc": x, "ms": y}, trial.Results)

		if y > 2 {
			require.Nil(t, trial.Value)
			require.Contains(t, trial.Message, "its ms of 3 is more than 2")
		} else {
			require.InDelta(t, x, *trial.Value, 0)
		}

		if trial.Origin.By == "tpe" {
			learned++
		}
	}

	require.Positive(t, learned)

	insight, err := s.api.GetSweepInsightWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, insight.JSON200.Front, 1)
	require.Equal(t, map[string]float64{"acc": 4, "ms": 1}, insight.JSON200.Front[0].Results)
}
