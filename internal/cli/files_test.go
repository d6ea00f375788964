package cli

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/apitest"
)

var large = strings.Repeat("0123456789", 100_000)

// stored is a sample whose best trial has stored files, and their content.
func stored(t *testing.T) (store *apitest.Store, content map[string]string, attempt string) {
	t.Helper()

	store = apitest.Sample(t)
	content = map[string]string{
		"metrics.jsonl": "{}\n", "model/weights.h5": large, "model/a b.txt": "a b", "model/ünï": "ü", "new\nline": "n", "empty": "", "..2F": "dots", "a%2Fb": "percent",
		strings.Repeat("l", 255): "long",
	}

	attempt = apitest.AttemptID(2, 1)
	store.FilesAre(attempt, berth.FilesStored, "")
	store.Exec("UPDATE attempts SET files_left_out = 1 WHERE id = $1", attempt)
	store.Exec("INSERT INTO artifacts_left_out (attempt_id, number, path, reason) VALUES ($1, 1, 'link', 'it is a symbolic link; links are not followed')", attempt)

	for path, text := range content {
		store.AddFile(attempt, path, text)
	}

	return store, content, attempt
}

// below reads all files below a directory.
func below(t *testing.T, dir string) map[string]string {
	t.Helper()

	found := make(map[string]string)

	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)

		if !entry.IsDir() {
			text, err := os.ReadFile(path) //nolint:gosec // G122: the test's own directory
			require.NoError(t, err)

			name, err := filepath.Rel(dir, path)
			require.NoError(t, err)

			found[name] = string(text)
		}

		return nil
	}))

	return found
}

func TestTrialFiles(t *testing.T) {
	t.Parallel()

	store, content, _ := stored(t)
	server := serve(t, store)

	result := succeed(t, server, "trial", "files", apitest.SweepID, "2")
	require.Contains(t, result.stdout, "model/weights.h5")
	require.Contains(t, result.stdout, `"new\nline"`, "a terminal gets no line end of a name")
	require.Contains(t, result.stderr, "1 file was left out:\n  link: it is a symbolic link")

	result = execute(t.Context(), server, "trial", "files", apitest.SweepID, "2", "-o", "json")

	var set client.FileList

	require.NoError(t, json.Unmarshal([]byte(result.stdout), &set))
	require.Len(t, set.Data, len(content))
	require.Equal(t, client.FileStateStored, set.State)

	result = execute(t.Context(), server, "trial", "files", apitest.SweepID, "2", "-o", "csv")
	require.True(t, strings.HasPrefix(result.stdout, "path,bytes,sha256,stored\n"), result.stdout)

	result = succeed(t, server, "trial", "files", apitest.SweepID, "1")
	require.Contains(t, result.stderr, "files of attempt 1: pending")
}

func TestTrialDownload(t *testing.T) {
	t.Parallel()

	store, content, _ := stored(t)
	server, dir, id := serve(t, store), filepath.Join(t.TempDir(), "new", "dir"), apitest.SweepID

	download := func(args ...string) (outcome, downloaded) {
		result := execute(t.Context(), server, append([]string{"trial", "download", id, "2", "--to", dir, "-o", "json"}, args...)...)

		var d downloaded

		if result.code == ExitOK {
			require.NoError(t, json.Unmarshal([]byte(result.stdout), &d), result.stdout)
		}

		return result, d
	}

	_, d := download("model")
	require.Equal(t, 3, d.Files)
	require.Zero(t, d.There)
	require.Len(t, below(t, dir), 3)

	_, d = download()
	require.Equal(t, len(content), d.Files)
	require.Equal(t, 3, d.There)
	require.Equal(t, content, below(t, dir), "and no temporary file")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte("[]\n"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "metrics.jsonl"), 0o600))
	_, d = download("metrics.jsonl", "/trial/out/model/weights.h5")
	require.Equal(t, 1, d.There, "one has another content")
	require.Equal(t, content, below(t, dir))

	info, err := os.Stat(filepath.Join(dir, "metrics.jsonl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "what is replaced keeps its mode")

	result, _ := download("nothing")
	require.Equal(t, ExitNotFound, result.code)
	require.Contains(t, result.stderr, `no stored file "nothing"`)

	result = execute(t.Context(), server, "trial", "download", id, "1", "--to", dir)
	require.Equal(t, ExitConflict, result.code)
	require.Contains(t, result.stderr, "pending")
}

// A download that follows the end of a trial at once waits for the store.
func TestTrialDownload_WaitsForTheStore(t *testing.T) {
	t.Parallel()

	store, content, attempt := stored(t)
	store.FilesAre(attempt, berth.FilesPending, "")
	server, dir := serve(t, store), filepath.Join(t.TempDir(), "dir")

	var told page

	go func() { // until the download says that it waits
		for !strings.Contains(told.String(), "waiting for the files") && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}

		store.FilesAre(attempt, berth.FilesStored, "")
	}()

	result := executeFed(t.Context(), "", &told, time.Minute, server, "trial", "download", apitest.SweepID, "2", "--to", dir)
	require.Equal(t, ExitOK, result.code, result.stderr)
	require.Equal(t, content, below(t, dir))
}

// A half stored set of lost files is downloaded as far as possible, and the exit
// code says that it is incomplete.
func TestTrialDownload_OfLostFiles(t *testing.T) {
	t.Parallel()

	store, content, attempt := stored(t)
	store.FilesAre(attempt, berth.FilesLost, "removed before they were stored: the limit")

	server, dir, id := serve(t, store), filepath.Join(t.TempDir(), "dir"), apitest.SweepID

	for _, paths := range [][]string{nil, {"model"}, {"metrics.jsonl", "model"}} {
		result := execute(t.Context(), server, append([]string{"trial", "download", id, "2", "--to", dir}, paths...)...)
		require.Equal(t, ExitNotFound, result.code, paths)
		require.Contains(t, result.stderr, "not all files of attempt")
		require.Contains(t, result.stderr, "removed before they were stored: the limit")
	}

	require.Equal(t, content, below(t, dir))

	result := execute(t.Context(), server, "trial", "download", id, "2", "metrics.jsonl", "--to", dir)
	require.Equal(t, ExitOK, result.code, "all that was asked for: %s", result.stderr)
}

// A cut download begins again, and what is left of one that failed is no part of the next.
func TestTrialDownload_BeginsAgain(t *testing.T) {
	t.Parallel()

	store, _, _ := stored(t)
	cuts := 0
	server := troubled(t, serve(t, store), func(w http.ResponseWriter, r *http.Request, before int) bool {
		if before > 0 || !strings.HasSuffix(r.URL.Path, "weights.h5") {
			return false
		}

		cuts++

		w.Header().Set("Content-Length", strconv.Itoa(len(large)))
		_, _ = io.WriteString(w, large[:300_000])
		_ = http.NewResponseController(w).Flush()

		panic(http.ErrAbortHandler)
	})
	dir, id := t.TempDir(), apitest.SweepID
	part := filepath.Join(dir, "model", ".berth-"+berth.Digest(sha256.Sum256([]byte(large))).String()[:16]+".part")
	require.NoError(t, os.MkdirAll(filepath.Dir(part), 0o700))
	require.NoError(t, os.WriteFile(part, []byte(strings.Repeat("x", 500_000)), 0o600))

	succeed(t, server, "trial", "download", id, "2", "model/weights.h5", "--to", dir)
	require.Equal(t, map[string]string{"model/weights.h5": large}, below(t, dir))
	require.Equal(t, 1, cuts)

	store.Change(func() { store.Objects[berth.Digest(sha256.Sum256([]byte("{}\n")))] = "[]\n" })

	result := execute(t.Context(), server, "trial", "download", id, "2", "metrics.jsonl", "--to", dir)
	require.Equal(t, ExitError, result.code)
	require.Contains(t, result.stderr, "checksum")
	require.Len(t, below(t, dir), 1, "what is wrong is thrown away")
}

// Neither a name nor a link in the directory leads out of it.
func TestTrialDownload_NeverLeavesTheDirectory(t *testing.T) {
	t.Parallel()

	store, _, attempt := stored(t)
	server, outside, id := serve(t, store), t.TempDir(), apitest.SweepID

	dir := filepath.Join(outside, "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "model")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "metrics.jsonl")))

	result := execute(t.Context(), server, "trial", "download", id, "2", "model", "--to", dir)
	require.Equal(t, ExitError, result.code)

	result = execute(t.Context(), server, "trial", "download", id, "2", "metrics.jsonl", "--to", dir)
	require.Equal(t, ExitOK, result.code, "the link is replaced")

	store.Exec("ALTER TABLE artifacts DROP CONSTRAINT artifacts_path_is_below") // a server may be evil

	for _, name := range []string{"../evil", "/evil", "model/../../evil"} {
		store.Exec("DELETE FROM artifacts")
		store.AddFile(attempt, name, "evil")

		result = execute(t.Context(), server, "trial", "download", id, "2", "--to", dir)
		require.Equal(t, ExitError, result.code, name)
		require.Contains(t, result.stderr, "outside the directory")
	}

	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestSweepBest_Download(t *testing.T) {
	t.Parallel()

	store, content, _ := stored(t)
	server, dir, id := serve(t, store), t.TempDir(), apitest.SweepID

	for _, args := range [][]string{{"--download", filepath.Join(dir, "a")}, {"--download=" + filepath.Join(dir, "b")}} {
		result := succeed(t, server, append([]string{"sweep", "best", id}, args...)...)
		require.Contains(t, result.stdout, "9 files")
	}

	require.Equal(t, content, below(t, filepath.Join(dir, "a")))
	require.Equal(t, content, below(t, filepath.Join(dir, "b")))

	result := execute(t.Context(), server, "sweep", "best", id, dir)
	require.Equal(t, ExitUsage, result.code)
	require.Contains(t, result.stderr, "--download")

	result = succeed(t, server, "sweep", "best", id)
	require.Contains(t, result.stdout, "val_accuracy")
}
