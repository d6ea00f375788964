package runtrial

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// filesBelow are the files of a directory, by content.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()

	found := map[string]string{}
	require.NoError(t, walkBelow(dir, func(path string, info fs.FileInfo) error {
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)

			found[path] = string(data)
		}

		return nil
	}))

	return found
}

// endWell lets the job end well, and waits for its result.
func (r *rig) endWell(t *testing.T, ended <-chan answer) {
	t.Helper()

	box := r.docks.started(t)
	got := ends(t, box, ended, "acc=1\n", 0)
	require.Equal(t, berth.FailureOK, got.Kind, got.Message)
}

// One image that is missing must not hold up attempts of other images.
func TestPrepare_WaitsForNoImageOfAnother(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.has(t, "/app", image{"train.py": "x"})
	read := r.config.Workdir
	r.config.Workdir = func(ctx context.Context, ref, dir string) (string, io.ReadCloser, error) {
		if ref == "missing" {
			return "", nil, &berth.StartError{Kind: berth.FailureImageMissing, Err: berth.Errorf(berth.KindInvalid, "no image")}
		}

		return read(ctx, ref, dir)
	}

	mine := r.who(t)
	other := mine
	mine.ImageDigest, mine.Attempt.Number = "missing", 5 // waits 4 minutes
	other.Attempt.ID = "22222222-2222-2222-2222-222222222222"

	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)

	go func() {
		_, err := r.open(r.order(), mine).prepare(ctx)
		waits <- err
	}()
	require.Eventually(t, func() bool { return len(r.Waiting()) == 1 }, patience, tick)

	_, err := r.open(berth.Order{AttemptID: other.Attempt.ID, Token: token}, other).prepare(t.Context())
	require.NoError(t, err)
	require.Len(t, r.Waiting(), 1, "and that one still waits")
	cancel()
	require.ErrorIs(t, <-waits, context.Canceled)
}

// What a job wrote into its working directory comes to its output, whatever it calls other files.
func TestRun_GathersBesideWhatTheJobHas(t *testing.T) {
	t.Parallel()

	for name, odd := range map[string]func(r *rig) error{
		"a file out/work": func(r *rig) error { return os.WriteFile(r.file("out/work"), []byte("log of work"), 0o600) },
		"a link out/work": func(r *rig) error { return os.Symlink("/app", r.file("out/work")) },
		"a file of the model's name, another": func(r *rig) error {
			return errors.Join(os.MkdirAll(r.file("out/work"), 0o700), os.WriteFile(r.file("out/work/m.keras"), []byte("another"), 0o600))
		},
		"a directory that is no UTF-8, another": func(r *rig) error {
			return errors.Join(os.Mkdir(r.file("work/caf\xe9"), 0o700), os.WriteFile(r.file("work/caf\xe9/m.keras"), []byte("another"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.has(t, "/app", image{"train.py": "x"})
			_, ended := r.begin(t)
			require.NoError(t, os.WriteFile(r.file("work/m.keras"), []byte("model"), 0o600))
			require.NoError(t, odd(r))
			r.endWell(t, ended)

			kept := slices.Sorted(maps.Values(filesBelow(t, r.file("out"))))
			require.Contains(t, kept, "model")
			require.NotContains(t, kept, "x")
			require.Equal(t, strings.HasSuffix(name, "another"), slices.Contains(kept, "another"), "nothing is overwritten or left behind")

			left, err := r.Leftovers()
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A worker without root keeps what a job wrote into a directory that it made.
func TestGather_WithoutRoot(t *testing.T) {
	t.Parallel()

	if os.Geteuid() != 0 {
		runtimetest.Skip(t, "only root makes files of others")
	}

	const worker, job = 1000, 65532

	attempt, err := os.MkdirTemp("/tmp", "berth-gather-") //nolint:usetesting // another user has to enter it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(attempt)) })

	d := dirs{attempt: attempt, out: filepath.Join(attempt, "out")}
	plantFile(t, filepath.Join(d.work(), "runs/1/model.pt"), []byte("model"))
	require.NoError(t, os.Mkdir(d.out, 0o700))

	for path, uid := range map[string]int{".": worker, "work": worker, "out": worker, "work/runs": job, "work/runs/1": job, "work/runs/1/model.pt": job} {
		require.NoError(t, os.Chown(filepath.Join(attempt, path), uid, uid))
	}

	runtime.LockOSThread() // the user of this thread's files
	defer runtime.UnlockOSThread()

	require.NoError(t, syscall.Setfsuid(worker))

	_, closed := os.ReadDir(filepath.Join(d.work(), "runs"))
	err = d.gather()

	require.NoError(t, syscall.Setfsuid(0))
	require.ErrorIs(t, closed, fs.ErrPermission)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"work/runs/1/model.pt": "model"}, filesBelow(t, d.out))
}

// What the sweep mounts at the working directory, or above it, is what it gets.
func TestPrepare_ADatasetHidesTheWorkingDirectory(t *testing.T) {
	t.Parallel()

	for _, where := range []string{"/workspace", "/workspace/src"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.has(t, where, image{"train.py": "of the image"})
			r.with(map[string]string{"code": "v1"}, "code")
			r.books.says(func(who *berth.Assignee) { who.Spec.Datasets[0].Target = "/workspace" })

			mounts := r.launch(t).Mounts
			require.Equal(t, "/workspace", mounts[len(mounts)-1].Target)
			require.NoDirExists(t, r.file(workName))
		})
	}
}

// A copy that a person harmed is made anew.
func TestPrepare_MakesABrokenCopyAnew(t *testing.T) {
	t.Parallel()

	for name, harm := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 700) },
		"removed": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.has(t, "/app", image{"train.py": "import model"})
			r.launch(t)

			archives, err := filepath.Glob(filepath.Join(r.dir, "workdirs", "*.tar"))
			require.NoError(t, err)
			require.Len(t, archives, 1)
			require.NoError(t, harm(archives[0]))
			require.NoError(t, os.RemoveAll(r.file(""))) // the next attempt

			_, ended := r.begin(t)
			require.Equal(t, map[string]string{"train.py": "import model"}, filesBelow(t, r.file(workName)))
			r.endWell(t, ended)
		})
	}
}

// What the image has is nothing that the job wrote.
func TestRun_TheImagesFilesAreNotTheJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.has(t, "/app", image{"weights.bin": strings.Repeat("x", 3<<20)})
		r.config.Bounds.OutputLimit = 2 << 20

		ended := r.start(t.Context(), r.order())
		r.docks.started(t)
		time.Sleep(3 * sizeEvery)
		r.endWell(t, ended)
	})
}

// What a version without working directories left behind is gathered by the next one.
func TestLeftovers_OfWorkingDirectories(t *testing.T) {
	t.Parallel()

	r := setup(t)
	require.NoError(t, os.MkdirAll(r.file(workName), 0o700))
	require.NoError(t, os.MkdirAll(r.file("out"), 0o700))
	require.NoError(t, os.WriteFile(r.file("work/m.keras"), []byte("model"), 0o600))

	left, err := r.Leftovers()
	require.NoError(t, err)
	require.Equal(t, []string{attemptID}, left)
	require.NoError(t, r.Clean(attemptID))
	require.Equal(t, map[string]string{"work/m.keras": "model"}, filesBelow(t, r.file("out")))
}
