package cli

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func yamlFile(text string) *sweepFile {
	return &sweepFile{name: "sweep.yaml", data: []byte(text), contentType: "application/yaml"}
}

const tryHead = "name: x\nimage: y:1\ncommand: [train, \"--lr={{lr}}\", /trial/in/params.json]\n"

func TestTry_ChoosesTheValues(t *testing.T) {
	t.Parallel()

	const (
		defaults = tryHead + "parameters:\n  - {name: lr, min: 0.001, max: 0.1, log: true, default: 0.02}\n  - {name: n, values: [1, 2], default: 2}\n  - {name: epochs, value: 5}\nlimits: {max_trials: 9}\n"
		bare     = tryHead + "parameters:\n  - {name: lr, min: 0.001, max: 0.1, log: true}\n  - {name: n, values: [1, 2]}\n  - {name: m, min: 0, max: 10, when: {n: 2}}\n  - {name: epochs, value: 5}\nlimits: {max_trials: 9}\n"
		grid     = tryHead + "parameters: [{name: lr, values: [0.1, 0.2]}]\nsearch: {algorithm: grid}\n"
		enqueued = bare + "enqueue: [{lr: 0.05, n: 1}, {lr: 0.06, n: 1}]\n"
	)

	for _, test := range []struct {
		file   string
		set    []string
		want   []berth.Assignment
		epochs int64
	}{
		{defaults, nil, []berth.Assignment{{}}, 5},
		{defaults, []string{"lr=0.01", "epochs=1"}, []berth.Assignment{{"lr": berth.FloatValue(0.01)}}, 1},
		{bare, nil, nil, 5}, // the first that the search draws
		{bare, []string{"epochs=1"}, nil, 1},
		{bare, []string{"n=1", "lr=0.1"}, []berth.Assignment{{"n": berth.IntValue(1), "lr": berth.FloatValue(0.1)}}, 5},
		{enqueued, nil, []berth.Assignment{{"n": berth.IntValue(1), "lr": berth.FloatValue(0.05)}}, 5},
		{enqueued, []string{"n=2", "m=5"}, []berth.Assignment{{"n": berth.IntValue(2), "lr": berth.FloatValue(0.05), "m": berth.IntValue(5)}}, 5},
		{grid, []string{"lr=0.20"}, []berth.Assignment{{"lr": berth.FloatValue(0.2)}}, 0},
	} {
		file, err := oneTrial(yamlFile(test.file), test.set)
		require.NoError(t, err, test.set)

		s, err := spec.Decode(file.data, file.contentType)
		require.NoError(t, err)
		require.Equal(t, test.want, s.Enqueue, "%v of %s", test.set, test.file)
		require.Equal(t, 1, s.Limits.MaxTrials)
		require.Equal(t, "x (try)", s.Name)
		require.Equal(t, "true", s.Labels["berth/try"])

		if test.epochs > 0 {
			require.Equal(t, berth.IntValue(test.epochs), *s.Parameters[len(s.Parameters)-1].Value)
		}
	}
}

func TestTry_RefusesWithWhatToType(t *testing.T) {
	t.Parallel()

	const file = tryHead + "parameters:\n  - {name: lr, min: 0.001, max: 0.1}\n  - {name: n, values: [1, 2]}\n  - {name: epochs, value: 5}\n  - {name: half, expr: lr / 2}\nlimits: {max_trials: 9}\n"

	for setting, want := range map[string]string{
		"lr=2":   `"lr" cannot be 2`,
		"lr=NaN": `"lr" cannot be NaN`,
		"n=1":    `no value for "lr", which has no default`,
		"rate=1": `there is no parameter "rate"`,
		"half=1": `"half" is derived`,
	} {
		one, err := oneTrial(yamlFile(file), []string{setting})
		require.NoError(t, err)

		_, err = spec.Decode(one.data, one.contentType) // as the server does
		require.ErrorContains(t, err, want, setting)
	}

	_, err := oneTrial(yamlFile(file), []string{"lr"})
	require.ErrorContains(t, err, "write --set NAME=VALUE")
	require.Equal(t, ExitUsage, ExitCode(err))

	_, err = oneTrial(yamlFile(strings.Replace(file, "min: 0.001", "min: 1", 1)), nil)
	require.ErrorContains(t, err, "E_RANGE /parameters/0/min")
	require.ErrorContains(t, err, "berth sweep validate -f sweep.yaml")
	require.Equal(t, ExitValidation, ExitCode(err))
}

// TestTry_TellsWhatWasMeasured plays a trial while the command watches it.
func TestTry_TellsWhatWasMeasured(t *testing.T) {
	t.Parallel()

	store, server := sampled(t)
	store.AddMetric(apitest.AttemptID(1, 1), "val_accuracy", 1, 0.5, berth.MetricFinite)
	store.AddMetric(apitest.AttemptID(1, 1), "val_accuracy", 2, 0.91, berth.MetricFinite)

	var (
		acts sync.WaitGroup
		told page
	)

	acts.Go(func() {
		for deadline := time.Now().Add(time.Minute); !strings.Contains(told.String(), "0/1 done"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				return // the command's own deadline ends the test
			}
		}

		id := store.Text("SELECT id::text FROM sweeps WHERE id <> $1", apitest.SweepID)
		store.Write(apitest.AttemptID(1, 1), "epoch 1\n")
		store.Exec("UPDATE trials SET sweep_id = $1 WHERE id = $2", id, apitest.TrialID(1))
		store.Exec("UPDATE sweeps SET state = 'succeeded', started_at = $2, finished_at = now() WHERE id = $1", id, apitest.Start)
	})

	result := executeTo(t.Context(), &told, server, "try", "-f", "-", "--set", "width=32", "--set", "lr=0.01")
	acts.Wait()

	require.Zero(t, result.code, result.stderr)
	require.Equal(t, "digits (try) 1", store.Text("SELECT concat(name, ' ', spec #>> '{limits,max_trials}') FROM sweeps WHERE id <> $1", apitest.SweepID))
	require.Contains(t, result.stderr, "epoch 1\n", "the log")
	require.Contains(t, result.stdout, "measured")
	require.Contains(t, result.stdout, "peak 600 MiB of 4,096 MiB")
	require.Regexp(t, `metric val_accuracy +2 values, last 0\.91`, result.stdout)
	require.Contains(t, result.stderr, "next: berth sweep submit -f stdin --wait")
}
