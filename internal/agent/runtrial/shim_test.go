package runtrial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestShim_IsOnTheLaunch(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) {
		who.Spec.EnvironmentVariables = map[string]string{"PYTHONPATH": "/app/lib"}
	})

	l := r.launch(t)
	require.Equal(t, "/trial/shim", l.Shim.Target)
	require.Equal(t, "/app/lib", l.Environment["PYTHONPATH"], "the user's stays behind it")
	require.Equal(t, "/trial/shim-out/records.jsonl", l.Shim.Records)

	mount := l.Shim
	require.Equal(t, filepath.Join(r.dir, "shim"), filepath.Dir(mount.Source))

	for path, mode := range map[string]os.FileMode{"": 0o755, "berth_shim": 0o755, "sitecustomize.py": 0o644, "berth_shim/__init__.py": 0o644} {
		info, err := os.Stat(filepath.Join(mount.Source, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}

	// A power cut left half a file.
	whole, err := os.ReadFile(filepath.Join(mount.Source, "sitecustomize.py"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(mount.Source, "sitecustomize.py"), whole[:10], 0o600))

	again, err := r.installShim()
	require.NoError(t, err)
	require.Equal(t, mount.Source, again)

	mended, err := os.ReadFile(filepath.Join(mount.Source, "sitecustomize.py"))
	require.NoError(t, err)
	require.Equal(t, whole, mended)
}

func TestShim_False(t *testing.T) {
	t.Parallel()

	r := setup(t)
	off := false
	r.books.says(func(who *berth.Assignee) { who.Spec.Shim = &off })

	l := r.launch(t)
	require.Nil(t, l.Shim)
	require.NoDirExists(t, filepath.Join(r.dir, "shim"))
	require.Nil(t, newOutput(r.newRun(t)).shimFile, "nobody reads what a script writes there")
}

const (
	greeting = `{"type":"hello","v":1,"pid":7}` + "\n"
	epochs   = greeting + `{"type":"metric","step":1,"metrics":{"acc":0.25,"loss":9}}` + "\n" + `{"type":"metric","step":2,"metrics":{"acc":0.5,"loss":NaN}}` + "\n"
)

func TestShim_SaysHowItEnded(t *testing.T) {
	t.Parallel()

	oom := `{"type":"error","kind":"device_oom"}` + "\n"

	for name, c := range map[string]struct {
		shim string
		exit int
		kind berth.FailureKind
		peak int64
	}{
		"out of the GPU's memory":              {greeting + oom, 86, berth.FailureDeviceOOM, 0},
		"behind a shell that hides the code":   {greeting + oom, 1, berth.FailureDeviceOOM, 0},
		"another program after that one":       {greeting + oom + greeting, 1, berth.FailureUserError, 0},
		"out of the host's, far from its size": {greeting + `{"type":"error","kind":"host_oom"}` + "\n", 87, berth.FailureUserError, 0},
		"87 of the program itself":             {greeting, 87, berth.FailureHostOOM, 0},
		"a kind that is not the shim's":        {greeting + `{"type":"error","kind":"infra"}` + "\n", 1, berth.FailureUserError, 0},
		"stopped from outside":                 {greeting, 75, berth.FailurePreempted, 0},
		"its peak":                             {epochs + `{"type":"memory","device_peak_bytes":4096,"frameworks":{"tensorflow":4096}}`, 0, berth.FailureOK, 4096},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) {
				who.Spec.Metrics.Source = berth.MetricsFile
				who.Attempt.Demand.DeviceBytes, who.Attempt.DeviceID = 1<<30, "gpu"
			})

			box, ended := r.begin(t)
			appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), c.shim)
			got := ends(t, box, ended, "", c.exit)
			require.Equal(t, c.kind, got.Kind, got.Message)
			require.Equal(t, c.peak, got.Usage.FrameworkPeakBytes)
		})
	}
}
