package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/apitest"
)

func TestExportDir_Refuses(t *testing.T) {
	t.Parallel()

	server, dir := serve(t, apitest.Sample()), t.TempDir()

	for want, args := range map[string][]string{
		"say which with -o DIR":     {"--format", "mlflow"},
		"leave --what out":          {"--format", "tensorboard", "-o", dir, "--what", "metrics"},
		"goes with --format mlflow": {"--format", "tensorboard", "-o", dir, "--files"},
		"making the directory":      {"--format", "mlflow", "-o", "/dev/null/x"},
	} {
		result := execute(t.Context(), server, append([]string{"sweep", "export", apitest.NewID(1)}, args...)...)
		require.Equal(t, ExitUsage, result.code, result.stderr)
		require.Contains(t, result.stderr, want)
	}

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// names are all below a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}

		return err
	}))

	return all
}

// An export that is cut leaves the one before as it was, and nothing of its own.
func TestExportDir_CutChangesNothing(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Metrics = map[string][]berth.MetricPoint{store.Attempts[0].ID: {{Name: "loss", Step: 1, Value: 0.5, Status: berth.MetricFinite, At: apitest.Start}}}
	server := serve(t, store)

	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/export") {
			_, _ = w.Write([]byte(`{"number":1,"id":"a","state":"succeeded","created_at":"2026-11-21T12:00:00Z"}` + "\n"))
			_ = http.NewResponseController(w).Flush()

			panic(http.ErrAbortHandler)
		}

		http.Redirect(w, r, server+r.URL.Path, http.StatusTemporaryRedirect) //nolint:gosec // G710: a test's own server
	}))
	t.Cleanup(cut.Close)

	for _, format := range exportDirs {
		dir := t.TempDir()
		run := func(at string) outcome {
			return execute(t.Context(), at, "sweep", "export", apitest.NewID(1), "--format", format, "-o", dir)
		}

		whole := run(server)
		require.Equal(t, ExitOK, whole.code, whole.stderr)

		before := names(t, dir)
		require.NotEmpty(t, before)

		require.Equal(t, ExitUnreachable, run(cut.URL).code)
		require.Equal(t, before, names(t, dir))
	}
}

// Names that MLflow refuses, or that cannot be files beside each other, get others.
func TestMLflow_FileNames(t *testing.T) {
	t.Parallel()

	m := &mlflow{names: map[string]bool{mlflowValue: true}}

	for _, c := range [][2]string{
		{"loss", "loss"},
		{"val/loss", "val/loss"},
		{"loss/train", "loss.train"},
		{"a@b", "a_b"},
		{"a#b", "a_b_2"},
		{"Genauigkeit %", "Genauigkeit _"},
		{"../x", "_../x"},
		{"a//b", "a/_/b"},
		{"/abs", "_/abs"},
		{"ü", "__2"}, // _ is a directory here
		{"ö", "__3"},
		{"berth.value", "berth.value_2"},
		{"recall@5/train", "recall_5/train"},
		{"recall@5/val", "recall_5/val"},
		{"recall_5", "recall_5_2"},
		{"val", "val_2"},
	} {
		require.Equal(t, c[1], m.fileName(c[0]), c[0])
	}
}

// An export to MLflow writes names that cannot be beside each other, whatever characters they have.
func TestExportDir_MLflowNamesThatBecomeAlike(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	point := func(name string) berth.MetricPoint {
		return berth.MetricPoint{Name: name, Step: 1, Value: 0.5, Status: berth.MetricFinite, At: apitest.Start}
	}
	store.Metrics = map[string][]berth.MetricPoint{store.Attempts[0].ID: {point("recall@5/train"), point("recall@5/val"), point("recall_5")}}

	result := execute(t.Context(), serve(t, store), "sweep", "export", apitest.NewID(1), "--format", "mlflow", "-o", t.TempDir())
	require.Equal(t, ExitOK, result.code, result.stderr)
}

// A trial that ran out of memory while its sweep is exported: the points of its first attempt, and those of the
// second, each "counts" in the page that it was read with. docs/export.md: a run has "all points of the attempt
// that counts".
func TestExportDir_MLflowMixesNoAttempts(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	server, dir := serve(t, store), t.TempDir()

	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/export") && r.URL.Query().Get("what") == "metrics" {
			const line = `{"trial":1,"attempt":%d,"counts":true,"name":"loss","step":%d,"value":%d,"status":"finite","final":false,"at":"2026-11-21T12:00:00Z"}` + "\n"
			_, _ = fmt.Fprintf(w, line+line+line, 1, 1, 90, 1, 2, 80, 2, 1, 5)

			return
		}

		http.Redirect(w, r, server+r.URL.Path+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect) //nolint:gosec // G710: a test's own server
	}))
	t.Cleanup(between.Close)

	result := execute(t.Context(), between.URL, "sweep", "export", apitest.NewID(1), "--format", "mlflow", "-o", dir)
	require.Equal(t, ExitOK, result.code, result.stderr)

	curves := 0

	for _, name := range names(t, dir) {
		if strings.HasSuffix(name, "/metrics/loss") {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, []string{"90 1", "80 2"}, valuesOf(string(data)), "the row of trial 1 is of its first attempt")

			curves++
		}
	}

	require.Equal(t, 1, curves)
}

// valuesOf are the value and the step of each line of a metric's file.
func valuesOf(data string) (all []string) {
	for line := range strings.Lines(data) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, rest)
	}

	return all
}

// A sweep's name may have 200 characters of any script; a directory's has 255 bytes.
func TestExportDir_TensorBoardOfALongName(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Sweeps[0].Spec.Name = strings.Repeat("数字", 60) // 120 characters, 360 bytes
	store.Sweeps[0].Name = store.Sweeps[0].Spec.Name

	dir := t.TempDir()
	result := execute(t.Context(), serve(t, store), "sweep", "export", apitest.NewID(1), "--format", "tensorboard", "-o", dir)
	require.Equal(t, ExitOK, result.code, result.stderr)

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, strings.Repeat("数字", 41)+"-"+apitest.NewID(1)[:8], left[0].Name(), "255 bytes at most, in whole characters")
}

// What was there stays until the new one has its place, and comes back where that fails.
func TestReplace(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	place := filepath.Join(dir, "place")
	file := func() string {
		data, err := os.ReadFile(filepath.Join(place, "x"))
		require.NoError(t, err)

		return string(data)
	}

	for _, text := range []string{"first", "second"} {
		stage, err := stageDir(place)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(stage, "x"), []byte(text), 0o600))
		require.NoError(t, replace(stage, place))
		require.Equal(t, text, file())
	}

	require.NoError(t, os.Chmod(place, 0o700)) //nolint:gosec // G302: a directory

	stage, err := stageDir(place)
	require.NoError(t, err)

	info, err := os.Stat(stage)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "the mode of what is there")
	require.NoError(t, os.Remove(stage))

	require.ErrorContains(t, replace(stage, place), "writing")
	require.Equal(t, "second", file())

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}
