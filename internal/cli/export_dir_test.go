package cli

import (
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
		{"ü", "_"},
		{"berth.value", "berth.value_2"},
	} {
		require.Equal(t, c[1], m.fileName(c[0]), c[0])
	}
}
