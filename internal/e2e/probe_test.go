//go:build integration

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// TestProbe_ShortOneIsCappedAndLeavesNothing: a job that Keras' caps do not end.
// As a probe it writes a checkpoint and goes on for ten minutes; as a trial it
// says whether it began from nothing.
func TestProbe_ShortOneIsCappedAndLeavesNothing(t *testing.T) {
	t.Parallel()

	s := plain(t)
	id := s.submit(`
version: 1
name: capped
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import json, os, time
    clean = not os.listdir("/trial/checkpoint") and "TRIAL_RESUME" not in os.environ
    with open("/trial/checkpoint/model", "w") as f:
        f.write("weights")
    with open(os.environ["TRIAL_METRICS_FILE"], "a") as f:
        f.write(json.dumps({"epoch": 1, "clean": int(clean)}) + "\n")
    if os.environ["TRIAL_MODE"] == "probe":
        time.sleep(600)
parameters: [{name: n, values: [1]}]
search: {algorithm: grid}
objective: {metric: clean, goal: maximize}
limits: {max_trials: 1}
probe: {mode: short, max_duration: 3s}
metrics: {source: file}
`)

	sweep := s.until(id, patience, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, 2)
	require.Equal(t, "ok", attempts[0].FailureKind, attempts[0].Message)
	require.Contains(t, attempts[0].Message, "probe.max_duration")
	require.Positive(t, attempts[0].Usage.MemoryPeakBytes)
	require.Equal(t, "ok", attempts[1].FailureKind, attempts[1].Message)
	require.InDelta(t, 1, *attempts[1].Value, 0, "the trial began from nothing")
	require.Less(t, attempts[1].Demand.MemoryBytes, attempts[0].Demand.MemoryBytes, "sized by what the probe used until it was stopped")
}
