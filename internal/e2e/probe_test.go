//go:build integration

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// TestProbe_ShortOneIsCappedAndLeavesNothing: a job that Keras' caps do not end.
// As a probe it writes a checkpoint and goes on for ten minutes; as a trial it
// says whether it began from nothing.
func TestProbe_ShortOneIsCappedAndLeavesNothing(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "2GiB")
	began := time.Now()

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

	sweep := s.until(id, 2*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Less(t, time.Since(began), 2*time.Minute)

	attempts := s.attempts(id)
	require.Len(t, attempts, 2)
	require.Equal(t, "ok", attempts[0].FailureKind, attempts[0].Message)
	require.Contains(t, attempts[0].Message, "probe.max_duration")
	require.Positive(t, attempts[0].Usage.MemoryPeakBytes)
	require.Equal(t, "ok", attempts[1].FailureKind, attempts[1].Message)
	require.InDelta(t, 1, *attempts[1].Value, 0, "the trial began from nothing")
	require.Less(t, attempts[1].Demand.MemoryBytes, attempts[0].Demand.MemoryBytes, "sized by what the probe used until it was stopped")
}

// TestProbe_OneThatIsCappedRepeatsNoWholeRun: two trials of a new shape run side
// by side, both for longer than the probe may take. The probe then asks the
// second for a short run; but that one is in a whole run, which counts.
func TestProbe_OneThatIsCappedRepeatsNoWholeRun(t *testing.T) {
	t.Parallel()

	s := start(t, "--cpus", "2", "--memory", "2GiB")
	id := s.submit(`
version: 1
name: whole
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import json, os, sys, time
    time.sleep(15)
    with open(os.environ["TRIAL_METRICS_FILE"], "a") as f:
        f.write(json.dumps({"value": float(sys.argv[1])}) + "\n")
  - "{{lr}}"
parameters: [{name: lr, values: [0.1, 0.2], memory: false}]
search: {algorithm: grid}
objective: {metric: value, goal: maximize}
limits: {max_trials: 2}
probe: {mode: auto, max_duration: 5s}
metrics: {source: file}
`)

	sweep := s.until(id, 2*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, 2, "each trial ran once")

	values := make([]float64, 0, len(attempts))

	for _, a := range attempts {
		require.Equal(t, "ok", a.FailureKind, a.Message)
		require.NotNil(t, a.Value)
		values = append(values, *a.Value)
	}

	require.ElementsMatch(t, []float64{0.1, 0.2}, values)
}
