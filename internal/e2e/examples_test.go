//go:build integration && nightly

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// example is a directory of examples/ with a sweep that this test runs as it is.
type example struct {
	name   string
	trials int
	better float64  // the best trial's objective must exceed this: more than guessing gives
	worse  float64  // than this, the worst trial's; 0 = it need not be
	series []string // metrics of every trial
	file   string   // that the best trial leaves; empty = none
	// repeats is a kind of failure that it shows: its trials succeed all the same.
	repeats string
	check   func(t *testing.T, s *stack, sweep client.Sweep)
}

var examples = []example{
	{name: "digits-stages", trials: 48, better: 0.95, worse: 0.9, series: []string{"val_accuracy"}, check: stagesRunOnce},
	{name: "applications-stages", trials: 24, better: 0.9, series: []string{"accuracy", "val_accuracy", "val_loss"}},
	{name: "applications", trials: 2, better: 0.3, series: []string{"accuracy", "val_accuracy", "val_loss"}, file: "model.keras"},
	{name: "sklearn", trials: 4, better: 0.95, worse: 0.9, series: []string{"accuracy", "spread"}, file: "model.joblib", check: sklearnIsConditional},
	{name: "torch-spirals", trials: 3, better: 0.9, series: []string{"val_accuracy", "val_loss"}, file: "model.pt"},
	{name: "jax-digits", trials: 2, better: 0.8, worse: 0.75, series: []string{"val_accuracy", "val_loss"}, file: "params.npz"},
	{name: "loader", trials: 2, better: 0.9, series: []string{"accuracy", "shared_mib"}},
	{name: "resume", trials: 2, better: 0.9, series: []string{"accuracy"}},
	{name: "oom", trials: 8, series: []string{"val_accuracy"}, repeats: "host_oom"},
}

// TestExamples runs the sweep of each example, and checks what it learned. The
// digits example has tests of its own.
func TestExamples(t *testing.T) { //nolint:tparallel // the trials run in parallel
	t.Parallel()

	for _, e := range examples { //nolint:paralleltest // they share two cores
		t.Run(e.name, func(t *testing.T) { e.run(t, plain(t)) })
	}
}

func (e example) run(t *testing.T, s *stack) {
	t.Helper()

	file, err := os.ReadFile("../../examples/" + e.name + "/sweep.yaml")
	require.NoError(t, err)

	id := s.submit(string(file))
	sweep := s.until(id, 20*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, e.trials, sweep.Counts.Succeeded, "%+v", s.attempts(id))
	require.Equal(t, e.trials, sweep.Counts.Total)
	require.NotNil(t, sweep.Best)
	require.Greater(t, sweep.Best.Value, e.better)

	worst := sweep.Best.Value
	for _, trial := range s.trials(id) {
		worst = min(worst, *trial.Value)
	}

	if e.worse > 0 {
		require.Less(t, worst, e.worse, "the search has something to find")
	}

	for _, a := range s.attempts(id) {
		if a.FailureKind != "ok" {
			require.Equal(t, e.repeats, a.FailureKind, a.Message)

			continue
		}

		if a.Stage == "main" {
			require.Subset(t, metricNames(s.points(t, a.ID)), e.series)
		}
	}

	if e.file != "" {
		dir := t.TempDir()
		out, err := exec.CommandContext(t.Context(), binary, "sweep", "best", id, "--server", s.url, "--download", dir).CombinedOutput()
		require.NoError(t, err, string(out))
		require.FileExists(t, filepath.Join(dir, e.file))
	}

	if e.check != nil {
		e.check(t, s, sweep)
	}
}

// stagesRunOnce is the check of an example whose trials share three widths.
func stagesRunOnce(t *testing.T, s *stack, sweep client.Sweep) {
	t.Helper()
	require.Equal(t, map[string]int{"base": 3, "features": 3, "main": 48}, s.attemptsByStage(sweep.ID))
}

// points are the values of an attempt's metrics, by step.
func (s *stack) points(t *testing.T, attempt string) []client.Metric {
	t.Helper()

	response, err := s.api.ListMetricsWithResponse(t.Context(), attempt, nil)
	require.NoError(t, err)
	require.NotNil(t, response.JSON200, string(response.Body))

	return response.JSON200.Data
}

func metricNames(points []client.Metric) []string {
	names := make([]string, 0, len(points))
	for _, p := range points {
		names = append(names, p.Name)
	}

	return names
}

// sklearnIsConditional: each model has its own parameter, and not the other's.
func sklearnIsConditional(t *testing.T, s *stack, sweep client.Sweep) {
	t.Helper()

	for _, trial := range s.trials(sweep.ID) {
		_, depth := trial.Params["depth"]
		_, c := trial.Params["c"]

		model := trial.Params["model"]
		require.Equal(t, model.String() == "forest", depth, "%v", trial.Params)
		require.Equal(t, model.String() == "svc", c, "%v", trial.Params)
	}
}

// People copy the example. It is killed after its last epoch was saved: the next attempt has
// nothing to train, and must still report its value, or a finished training fails.
func TestExample_ResumeAfterItsLastEpoch(t *testing.T) {
	t.Parallel()

	checkpoint := t.TempDir()
	require.NoError(t, os.Chmod(checkpoint, 0o777)) //nolint:gosec // G302: the container's user writes there

	example, err := filepath.Abs("../../examples/resume/train.py")
	require.NoError(t, err)

	run := func() string {
		return typeIn(t, ".", nil, "docker", "run", "--rm", "-v", checkpoint+":/trial/checkpoint", "-v", example+":/app/train.py:ro", "-e", "TRIAL_RESUME=1",
			"berth-examples/resume:1", "python3", "train.py", "--epochs=2").out
	}

	first, again := run(), run()
	require.Equal(t, 2, strings.Count(first, `"accuracy":`), first)
	require.Equal(t, 1, strings.Count(again, `"accuracy":`), again)

	lines := strings.Split(strings.TrimSpace(first), "\n")
	require.Contains(t, again, lines[len(lines)-1], "as the first attempt said")
}

// The report of a sweep without stages finds the first fit that trials of a real Keras script share.
func TestStages_ReportAdvisesOne(t *testing.T) {
	t.Parallel()

	file, err := os.ReadFile("../../examples/digits/sweep.yaml")
	require.NoError(t, err)

	s := plain(t)
	text := string(file)

	for from, to := range map[string]string{
		"optimizer, values: [adam, sgd]": "optimizer, values: [adam]", "batch, values: [32, 64]": "batch, values: [64]", "value: 5": "value: 1",
	} {
		require.Contains(t, text, from)
		text = strings.Replace(text, from, to, 1)
	}

	id := s.submit(text)
	require.Equal(t, client.SweepStateSucceeded, s.until(id, 5*patience, ended).State)

	got := berthIn(t, t.TempDir(), []string{"BERTH_SERVER=" + s.url}, "sweep", "report", id)
	require.Equal(t, 0, got.code, got.err)
	require.Regexp(t, `4 of 6 trials repeated the first fit of another trial, [^,]+ of [^,]+ each, [^,]+ in all\. `+
		`It depends on width, .*stages: \[\{name: base, parameters: \[width\]\}\]`, got.out+got.err)
}
