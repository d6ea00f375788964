package runtrial

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/filetime"
)

// ofStageBase has the rig's attempt run a stage, as the ledger shows it.
func ofStageBase(who *berth.Assignee) {
	who.Attempt.Stage, who.StageKey = "base", "0123"
	who.Spec.Objective, who.Spec.Stages = nil, []berth.Stage{{Name: "base"}}
	who.Trial.Params = berth.Assignment{"width": berth.IntValue(2)}
	who.Spec.Command = []string{"python", "base.py"}
}

// The container of a stage is told nothing of its trial, and has a checkpoint of its own.
func TestStage_IsToldNothingOfItsTrial(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(ofStageBase)

	l := r.launch(t)
	for _, hidden := range []string{"TRIAL_ID", "TRIAL_NUMBER", "TRIAL_SWEEP", "TRIAL_ATTEMPT"} {
		require.NotContains(t, l.Environment, hidden)
	}

	require.Equal(t, "base", l.Environment["TRIAL_STAGE"])
	require.Equal(t, "2", l.Environment["TRIAL_PARAM_WIDTH"])
	require.Equal(t, "1719280593", l.Environment["TRIAL_SEED"], "of the key: FNV-1a")
	require.Equal(t, filepath.Join(r.dir, "checkpoints", "trial.stages", "base"), l.Mounts[2].Source)
}

// wrote is an earlier attempt of the stage base-model, with its output.
func (r *rig) wrote(t *testing.T) (file string) {
	t.Helper()

	r.books.says(func(who *berth.Assignee) {
		who.Inputs = []berth.StageInput{{Name: "base-model", Key: "0123", AttemptID: "earlier", HostID: who.Attempt.HostID}}
	})

	d := r.dirs(berth.Assignee{Attempt: berth.Attempt{ID: "earlier"}})
	file = filepath.Join(d.out, "deep", "base.keras")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(t, os.WriteFile(file, []byte("weights"), 0o600))

	files, err := d.outputFiles()
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, writeJSON(filepath.Join(d.attempt, manifestName), "manifest", files))

	return file
}

// Outputs of earlier stages are mounted, read-only.
func TestStage_InputsAreMounted(t *testing.T) {
	t.Parallel()

	r := setup(t)
	file := r.wrote(t)
	require.NoError(t, os.Chtimes(file, time.Now(), time.Now()), "the store links it to an object")

	l := r.launch(t)
	require.Contains(t, l.Mounts, berth.Mount{Source: filepath.Dir(filepath.Dir(file)), Target: "/trial/stages/base-model", ReadOnly: true})
	require.Equal(t, "/trial/stages/base-model", l.Environment["TRIAL_STAGE_BASE_MODEL"])
	require.Contains(t, l.Environment, "TRIAL_ID")
}

// An output that is gone, or not as its stage left it, is forgotten, so that the stage runs
// again; the trial is not to blame.
func TestStage_DamagedInputIsForgotten(t *testing.T) {
	t.Parallel()

	for name, damage := range map[string]func(file string) error{
		"gone":     os.Remove,
		"shorter":  func(file string) error { return os.Truncate(file, 3) },
		"one byte": func(file string) error { return os.WriteFile(file, []byte("Weights"), 0o600) },
		"no manifest": func(file string) error {
			return os.Remove(filepath.Join(filepath.Dir(file), "..", "..", manifestName))
		},
	} {
		r := setup(t)
		require.NoError(t, damage(r.wrote(t)), name)

		got := came(t, r.start(t.Context(), r.order()))
		require.Equal(t, berth.FailureInfra, got.Kind, name)
		require.Contains(t, got.Message, "the output of stage base-model is not whole on host", name)
		require.Equal(t, []string{"earlier"}, r.books.Dropped(), name)
		require.Empty(t, r.docks.launches(), name)
	}
}

// A byte that changes after the output was compared is noticed, too.
func TestStage_InputChangesLater(t *testing.T) {
	t.Parallel()

	r := setup(t)
	file := r.wrote(t)
	d := r.dirs(berth.Assignee{Attempt: berth.Attempt{ID: "earlier"}})
	changed := func() time.Time {
		info, err := os.Stat(file)
		require.NoError(t, err)

		return filetime.Changed(info)
	}

	require.Empty(t, r.damage(d))

	for compared := changed(); !changed().After(compared); { // the kernel's clock has steps of milliseconds
		require.NoError(t, os.WriteFile(file, []byte("Weights"), 0o600))
	}

	require.Equal(t, "its files are not those of its manifest", r.damage(d))
}

// The second run of a stage in a try says which files differ from the first, and is not shared.
func TestStage_SecondRunIsCompared(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		first, second map[string]string
		says          string
	}{
		"agrees":    {map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2", metricsName: "x"}, "agrees byte for byte"},
		"one":       {map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "3"}, "inputs: b. Set seeds from TRIAL_SEED"},
		"other":     {map[string]string{"a": "1", "c": "2"}, map[string]string{"b": "1", "c": "2"}, "inputs: a, b. Set"},
		"many":      {map[string]string{"a": "1"}, map[string]string{"b": "1", "c": "1", "d": "1", "e": "1"}, "inputs: a, b, c and 2 more. Set"},
		"elsewhere": {nil, map[string]string{"a": "1"}, "did not compare"},
	} {
		r := setup(t)
		r.books.says(ofStageBase)
		r.books.says(func(who *berth.Assignee) { who.FirstRun = "earlier" })

		if d := r.dirs(berth.Assignee{Attempt: berth.Attempt{ID: "earlier"}}); test.first != nil {
			writeAll(t, d.out, test.first)
			files, err := d.outputFiles()
			require.NoError(t, err)
			require.NoError(t, writeJSON(filepath.Join(d.attempt, manifestName), "manifest", files))
		}

		box, ended := r.begin(t)
		writeAll(t, r.file("out"), test.second)

		got := ends(t, box, ended, "done\n", 0)
		require.Equal(t, berth.FailureOK, got.Kind, name)
		require.Contains(t, got.Message, test.says, name)
		require.Empty(t, r.books.result(t).StageKey, name)
	}
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o750))

	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// What a stage wrote is shared once it ended well, and a checkpoint is not needed any more.
func TestStage_OutputIsShared(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		file string
		code int
		kind berth.FailureKind
		key  string
	}{
		"ended well":    {"base.keras", 0, berth.FailureOK, "0123"},
		"wrote nothing": {metricsName, 0, berth.FailureNoResult, ""},
		"failed":        {"base.keras", 1, berth.FailureUserError, ""},
		"full disk":     {"base.keras", 0, berth.FailureInfra, ""}, // its list of files cannot be written
	} {
		r := setup(t)
		r.books.says(ofStageBase)

		box, ended := r.begin(t)
		checkpoint := filepath.Join(r.dir, "checkpoints", "trial.stages", "base", "epoch1")
		require.NoError(t, os.WriteFile(r.file("out/"+test.file), []byte("x"), 0o600))
		require.NoError(t, os.WriteFile(checkpoint, []byte("x"), 0o600))

		if test.kind == berth.FailureInfra {
			require.NoError(t, os.Mkdir(r.file(manifestName), 0o700))
		}

		got := ends(t, box, ended, "done\n", test.code)
		require.Equal(t, test.kind, got.Kind, name)
		require.Equal(t, test.key, r.books.result(t).StageKey, name)

		if test.kind == berth.FailureOK {
			require.NoFileExists(t, checkpoint, name)
			require.FileExists(t, r.file("out/base.keras"), name)
			require.Empty(t, r.damage(r.dirs(berth.Assignee{Attempt: berth.Attempt{ID: attemptID}})), name)
		} else {
			require.FileExists(t, checkpoint, name)
		}
	}
}

// The output of a stage is not shared if its data set changed. A worker reads the data set first
// after its start.
func TestStage_DataThatChanges(t *testing.T) {
	t.Parallel()

	for name, after := range map[string][]string{"it changed": {"v2"}, "the worker reads it": {"", "", "v1"}, "the worker reads another one": {"", "v2"}} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			r.books.says(ofStageBase)

			looks := []string{"v1"}
			r.with(nil, "flowers")
			r.books.says(func(who *berth.Assignee) { who.Spec.Datasets[0].Version = "v1" })
			r.config.Dataset = func(string) (path, version string, found bool) {
				version = looks[0]
				looks = looks[min(1, len(looks)-1):]

				return "/srv/flowers", version, true
			}

			box, ended := r.begin(t)
			require.NoError(t, os.WriteFile(r.file("out/base.keras"), []byte("x"), 0o600))

			looks = after
			ends(t, box, ended, "", 0)

			got := r.books.result(t)
			if name == "the worker reads it" {
				require.Equal(t, "0123", got.StageKey)

				return
			}

			require.Equal(t, berth.FailureInfra, got.Outcome.Kind, name)
			require.Contains(t, got.Outcome.Message, `the data set "flowers" changed while the stage ran`)
			require.Empty(t, got.StageKey)
		})
	}
}
