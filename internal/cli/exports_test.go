//go:build nightly

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// exportedSweep is what a sweep of the store has, as the oracle knows it.
type exportedSweep struct {
	*apitest.Store

	trials   []berth.Trial
	attempts []berth.Attempt
	metrics  map[string][]berth.MetricPoint // by attempt
}

// newExported has trials in all states, with a conditional parameter; each
// attempt has metrics, some not finite.
func newExported(t *testing.T, trials int) *exportedSweep {
	t.Helper()

	store := &exportedSweep{Store: apitest.Sample(t), metrics: map[string][]berth.MetricPoint{}}
	store.OnGPU(t)
	store.Exec("DELETE FROM trials")

	spec, err := json.Marshal(berth.Spec{
		Name: "digits", Command: []string{"python3", "train.py"}, Objective: &berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize},
		Labels: map[string]string{"team": "vision"},
		Parameters: []berth.Parameter{
			{Name: "lr", Type: berth.ParameterFloat},
			{Name: "batch", Type: berth.ParameterInt},
			{Name: "optimizer", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue("sgd"), berth.StringValue("adam")}},
			{Name: "momentum", Type: berth.ParameterFloat, When: map[string]berth.Values{"optimizer": {berth.StringValue("sgd")}}},
			{Name: "layers", Type: berth.ParameterInt, When: map[string]berth.Values{"optimizer": {berth.StringValue("adam")}}},
			{Name: "nesterov", Type: berth.ParameterCategorical, Values: berth.Values{berth.BoolValue(true), berth.BoolValue(false)}},
			{Name: "epochs", Type: berth.ParameterFixed, Value: new(berth.IntValue(5))},
			{Name: "warmup", Type: berth.ParameterDerived, Expr: "0.1 * epochs"},
		},
		Datasets: []berth.DatasetMount{{Name: "flowers", Target: "/data/flowers"}},
	})
	require.NoError(t, err)
	store.Exec("UPDATE sweeps SET spec = $1", string(spec))
	store.Exec("UPDATE sweep_files SET spec = $1", string(spec))

	states := []berth.TrialState{berth.TrialSucceeded, berth.TrialFailed, berth.TrialSucceeded, berth.TrialRunning, berth.TrialWaiting, berth.TrialInfeasible, berth.TrialCanceled}

	for n := 1; n <= trials; n++ {
		store.add(t, n, states[n%len(states)])
	}

	return store
}

func (s *exportedSweep) add(t *testing.T, n int, state berth.TrialState) {
	t.Helper()

	trial := berth.Trial{
		ID: apitest.NewID(1000 + n), SweepID: apitest.NewID(1), Number: n, State: state, CreatedAt: apitest.Start.Add(time.Duration(n) * 1234567 * time.Microsecond),
		Params: berth.Assignment{
			"lr": berth.FloatValue(math.Exp(-float64(n) / 7)), "batch": berth.IntValue(int64(8 * n)), "optimizer": berth.StringValue("adam"), "layers": berth.IntValue(int64(n)),
			"nesterov": berth.BoolValue(n%2 == 0), "epochs": berth.IntValue(5), "warmup": berth.FloatValue(0.5),
		},
	}
	if n%3 == 0 {
		trial.Params["optimizer"], trial.Params["momentum"] = berth.StringValue("sgd"), berth.FloatValue(1)
		delete(trial.Params, "layers")
	}

	if state != berth.TrialWaiting {
		trial.StartedAt, trial.Attempts = new(trial.CreatedAt.Add(time.Second)), 1+n%2
	}

	if state.Terminal() {
		trial.FinishedAt, trial.Kind = new(trial.StartedAt.Add(2500*time.Millisecond)), berth.FailureOK
	}

	switch state {
	case berth.TrialSucceeded:
		trial.Value = new(1 / float64(n))
	case berth.TrialFailed:
		trial.Kind, trial.Message = berth.FailureUserError, fmt.Sprintf("ValueError: \"%d\",\nlook at its log", n)
	default:
	}

	params, err := json.Marshal(trial.Params)
	require.NoError(t, err)

	s.trials = append(s.trials, trial)
	s.Exec(`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, message, value, created_at, started_at, finished_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, trial.ID, trial.SweepID, n, string(params), apitest.SmallShape, state, trial.Kind, trial.Message, trial.Value,
		trial.CreatedAt, trial.StartedAt, trial.FinishedAt)

	for number := 1; number <= trial.Attempts; number++ {
		id := apitest.NewID(10_000 + 10*n + number)
		s.attempts = append(s.attempts, berth.Attempt{ID: id, TrialID: trial.ID, Number: number})
		s.Exec(`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, failure_kind, finished_at, token, host_id, device_id, exit_code,
			memory_bytes, cpu_milli, device_bytes, memory_peak_bytes, device_peak_bytes, datasets)
			VALUES ($1, $2, $3, 'main', 'run', 'finished', 'ok', now(), nextval('lease_tokens'), $4, $5, $6, $7, 1, $8, $9, $10, $11)`,
			id, trial.ID, number, apitest.HostID, []*string{nil, new("GPU-1")}[n%2], n%3, int64(n)<<30, int64(n%2)<<31, int64(n)<<29, int64(n%2)<<30,
			fmt.Sprintf(`{"flowers": "v%d"}`, n%4))

		for step := range int64(5) {
			at := trial.StartedAt.Add(time.Duration(step) * 123456 * time.Microsecond)
			s.metrics[id] = append(s.metrics[id],
				berth.MetricPoint{Name: "loss", Step: step, Value: float64(n) / float64(step+1), Status: berth.MetricFinite, At: at},
				berth.MetricPoint{Name: "val_loss", Step: step, Value: 1 / float64(n), Status: []berth.MetricStatus{
					berth.MetricFinite, berth.MetricNaN, berth.MetricPosInfinity, berth.MetricNegInfinity, berth.MetricFinite,
				}[step], At: at})
		}

		for _, p := range s.metrics[id] {
			s.Exec("INSERT INTO metrics (attempt_id, name, step, value, status, at) VALUES ($1, $2, $3, $4, $5, $6)", id, p.Name, p.Step, p.Value, p.Status, p.At)
		}
	}
}

// writeOracle writes the expected content of the exports, from the domain
// itself.
func writeOracle(t *testing.T, store *exportedSweep, dir string) {
	t.Helper()

	type object = map[string]any

	oracle := object{}

	trials := make([]object, 0, len(store.trials))

	for _, trial := range store.trials {
		cells := object{
			"number": trial.Number, "id": trial.ID, "state": trial.State, "value": trial.Value, "attempts": trial.Attempts,
			"created_at": trial.CreatedAt, "started_at": trial.StartedAt, "finished_at": trial.FinishedAt, "seconds": nil, "message": nil, "host": nil, "datasets.flowers": nil,
		}
		if trial.FinishedAt != nil {
			cells["seconds"] = trial.FinishedAt.Sub(*trial.StartedAt).Seconds()
		}

		if trial.Message != "" {
			cells["message"] = trial.Message
		}

		if trial.Attempts > 0 {
			cells["host"], cells["attempt"], cells["datasets.flowers"] = "laptop", trial.Attempts, fmt.Sprintf("v%d", trial.Number%4)
			cells["memory_reserved_bytes"], cells["memory_peak_bytes"] = int64(trial.Number)<<30, int64(trial.Number)<<29
		}

		trials = append(trials, object{"params": trial.Params, "cells": cells})
	}

	oracle["trials"] = trials

	points := []object{}

	for _, trial := range store.trials {
		for _, a := range store.attempts {
			if a.TrialID != trial.ID {
				continue
			}

			for _, name := range []string{"loss", "val_loss"} {
				for _, p := range store.metrics[a.ID] {
					if p.Name == name {
						points = append(points, object{
							"trial": trial.Number, "attempt": a.Number, "counts": a.Number == trial.Attempts, "name": name, "step": p.Step,
							"value": p.Value, "status": p.Status, "final": p.Final, "at": p.At.UnixMilli(),
						})
					}
				}
			}
		}
	}

	oracle["metrics"] = points

	data, err := json.Marshal(oracle)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oracle.json"), data, 0o600))
}

// pandas and pyarrow read the command's output: types, nulls, and every value.
func TestExport_PandasReadsTables(t *testing.T) {
	t.Parallel()

	store, dir := newExported(t, 150), t.TempDir()
	server := serve(t, store.Store)
	writeOracle(t, store, dir)

	for _, what := range []string{"trials", "metrics"} {
		for _, format := range []string{"csv", "jsonl", "parquet"} {
			result := execute(t.Context(), server, "sweep", "export", apitest.NewID(1), "--what", what, "--format", format, "-o", filepath.Join(dir, what+"."+format))
			require.Equal(t, ExitOK, result.code, result.stderr)
		}
	}

	t.Log(runtimetest.Python(t, "testdata/exports/read_tables.py", dir))
}
