package apitest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// stagedFile is SweepFile with a stage that reads the width.
var stagedFile = strings.Replace(SweepFile, "command:", "stages:\n  - {name: base, command: [python3, base.py, \"--width={{width}}\"]}\ncommand:", 1)

// Staged is a store with two sweeps whose trials share the stage base. SweepID has ended: its trial 1
// ran base for the width 32, in 40 s. NewID(2) goes on: its trial 1 uses that output, and its trial 2
// waits for the width 64. It returns the keys of both.
func Staged(t testing.TB) (s *Store, made, awaited string) {
	t.Helper()

	s = Empty(t)
	s.AddHost(t)

	made = s.addStaged(t, 1, "digits", 32)[0]
	keys := s.addStaged(t, 2, "again", 32, 64)
	require.Equal(t, made, keys[0])

	s.Exec(`UPDATE hosts SET last_seen_at = '2100-01-01T12:00:00Z'`)
	s.Exec(`INSERT INTO attempts (id, trial_id, number, stage, purpose, shape_key, state, host_id, token, failure_kind, memory_bytes, cpu_milli, placed_at, started_at, finished_at)
		SELECT $1, t.id, 1, 'base', 'run', t.stage_shapes[1], 'finished', $2, nextval('lease_tokens'), 'ok', 1073741824, 1000, $3::timestamptz, $3::timestamptz, $3::timestamptz + interval '40 seconds'
		FROM trials t WHERE t.sweep_id = $4`, AttemptID(1, 1), HostID, Start, SweepID)
	s.Exec("INSERT INTO stage_outputs (key, stage, attempt_id, made_at) VALUES ($1, 'base', $2, $3)", made, AttemptID(1, 1), Start)
	s.Exec("UPDATE trials SET state = 'succeeded', failure_kind = 'ok', value = 0.9, finished_at = $1 WHERE sweep_id = $2", Start, SweepID)
	s.SweepIs(berth.SweepSucceeded)

	return s, made, keys[1]
}

// addStaged adds a sweep with a trial for each width, and returns the keys of their stage.
func (s *Store) addStaged(t testing.TB, n int, name string, widths ...int64) (keys []string) {
	t.Helper()

	decoded, err := spec.Decode([]byte(strings.Replace(stagedFile, "name: digits", "name: "+name, 1)), "")
	require.NoError(t, err)

	const digest = "berth-examples/digits@sha256:1"

	_, _, err = s.CreateSweep(t.Context(), berth.NewSweep{ID: NewID(n), Spec: decoded, ImageDigest: digest, CreatedBy: "local", Planned: len(widths)})
	require.NoError(t, err)

	var (
		recipes = search.NewRecipes(decoded, NewID(n), digest)
		shapes  = search.NewShapes(decoded, digest, berth.StageMain)
		trials  []berth.NewTrial
	)

	for i, width := range widths {
		params := berth.Assignment{"lr": berth.FloatValue(.01), "width": berth.IntValue(width)}
		stages, err := recipes.Of(params)
		require.NoError(t, err)

		keys = append(keys, stages[0].Key)
		trials = append(trials, berth.NewTrial{ID: NewID(1000*n + i), Params: params, Shape: shapes.Of(params), Stages: stages})
	}

	_, _, err = s.Suggest(t.Context(), NewID(n), 1, len(trials), berth.SearchNeeds{},
		func(berth.Tried) ([]berth.NewTrial, bool, error) { return trials, true, nil })
	require.NoError(t, err)

	return keys
}
