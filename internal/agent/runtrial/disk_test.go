package runtrial

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

const plenty = 90 << 30

// hasDisk gives the host a disk for files and logs, with a headroom of 2 GiB. The
// test says what is free on it.
func (r *rig) hasDisk() *atomic.Int64 {
	free := &atomic.Int64{}
	free.Store(plenty)

	r.config.HostName, r.config.DiskHeadroom = "a", 2<<30
	r.config.DiskFree = func() (int64, int64, error) { return free.Load(), free.Load(), nil }

	return free
}

// betweenLooks keeps what a test does at once, writing files and filling the disk, from the
// looks of every second: one in between would see the files on a disk with room.
const betweenLooks = 100 * time.Millisecond

// hasSmallDisk is hasDisk with a headroom of 20 MiB, which tests can fill.
func (r *rig) hasSmallDisk() *atomic.Int64 {
	free := r.hasDisk()
	r.config.DiskHeadroom, r.config.Bounds.OutputLimit = 20<<20, 100<<20
	r.seldom()

	return free
}

// A container is adopted and collected on a disk that takes nothing more: a
// directory in the way of each temporary file stands for it.
func TestRun_AFullDiskKeepsNothingFromBeingAdopted(t *testing.T) {
	t.Parallel()

	r := setup(t)
	box := r.leave(t, r.order())

	for _, file := range []string{filepath.Join("in", paramsName), launchName, verdictName} {
		require.NoError(t, os.MkdirAll(r.file(file+".tmp"), 0o700))
	}

	got := ends(t, box, r.start(t.Context(), r.order()), "acc=0.5\n", 0)
	require.Equal(t, berth.FailureOK, got.Kind)
	require.Equal(t, 1, r.docks.made)
}

const noSpaceLine = "OSError: [Errno 28] No space left on device: '/trial/checkpoint/m.h5'\n"

// The worker is away, or replaced, when the disk is full, and a person frees
// space before the attempt is judged.
func TestRun_RemembersThatTheDiskWasFull(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		free := r.hasDisk()

		r.readFor(t, 2*time.Second, func(*fake.Process) {}) // a disk with room takes the first record
		for _, name := range ours {                         // and a full one no further file
			require.NoError(t, os.MkdirAll(r.file(name+".tmp"), 0o700))
		}

		free.Store(0)
		r.readFor(t, 2*time.Second, func(*fake.Process) {})
		free.Store(plenty)
		r.readFor(t, 2*time.Second, func(*fake.Process) {})

		box, ended := r.begin(t)
		time.Sleep(time.Second)

		got := ends(t, box, ended, noSpaceLine, 1)
		require.Equal(t, berth.FailureInfra, got.Kind, got.Message)
		require.Contains(t, got.Message, `host "a"`)
	})
}

// What cannot be read behind a tear may hold the best value.
func TestRun_ATornLogIsNoResult(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]berth.FailureKind{
		berth.MetricsStdout: berth.FailureInfra, berth.MetricsFile: berth.FailureOK,
	} {
		bubble(t, source, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = source })
			r.docks.mute(berth.Errorf(berth.KindInternal, "malformed log frame"))

			box, ended := r.begin(t)
			box.Print(berth.Stdout, "acc=0.1\n")
			require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), []byte(`{"acc":0.1}`+"\n"), 0o600))
			got := ends(t, box, ended, "", 0)
			require.Equal(t, want, got.Kind, got.Message)
			require.Contains(t, got.Message, "the end of its log could not be read")
			require.Equal(t, "acc=0.1\n\n[berth: the end of its log could not be read]\n", r.books.text(t))
		})
	}
}

// A trial whose own files fill the disk, below its quota, would fill the disk of
// the next host as well. One of many that wrote as much is not to blame, nor one that
// wrote little since the disk had room, nor one that ended well.
func TestRun_WhoFillsTheDiskIsCharged(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		before int // bytes that it wrote while the disk had room
		wrote  int // that it wrote since
		others int // of another attempt
		exit   int
		want   berth.FailureKind
	}{
		"once more":                    {0, 5 << 20, 0, 1, berth.FailureDiskQuota}, // others had filled it before
		"its own files":                {0, 5 << 20, 0, 1, berth.FailureDiskQuota},
		"its own, at once":             {0, 4<<20 + entryBytes, 0, 1, berth.FailureDiskQuota},
		"others' files":                {0, 3 << 20, 0, 1, berth.FailureInfra},
		"those of another attempt":     {0, 5 << 20, 6 << 20, 1, berth.FailureInfra},
		"another program's since then": {5 << 20, 0, 0, 1, berth.FailureInfra},
		"its own, and it ended well":   {0, 5 << 20, 0, 0, berth.FailureInfra},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			free := r.hasSmallDisk()
			box, ended := r.begin(t)
			model, checkpoint := filepath.Join(mountOf(t, box.Launch, mountOut), "model"), filepath.Join(r.checkpoints(), "epoch-1")
			require.NoError(t, os.WriteFile(checkpoint, nil, 0o600))

			if name == "once more" {
				time.Sleep(time.Second)
				free.Store(0)
				time.Sleep(2 * time.Second)
				free.Store(plenty)
				time.Sleep(time.Hour)
			}

			if c.before > 0 {
				require.NoError(t, os.WriteFile(model, make([]byte, c.before), 0o600))
			}

			time.Sleep(3*time.Second + betweenLooks)

			if c.wrote > 0 {
				require.NoError(t, os.WriteFile(model, make([]byte, c.wrote), 0o600))
			}

			other := filepath.Join(r.dir, "attempts", "other", "out")
			require.NoError(t, os.MkdirAll(other, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(other, "model"), make([]byte, c.others), 0o600))
			box.Print(berth.Stdout, "acc=0.1\n")
			free.Store(16<<20 - 1)
			time.Sleep(2 * time.Second)
			box.Print(berth.Stderr, "OSError: [Errno 28] No space left on device\n")
			got := ends(t, box, ended, "", c.exit)
			require.Equal(t, c.want, got.Kind, got.Message)
			require.FileExists(t, checkpoint, "those of a shared disk stay")

			if c.want == berth.FailureInfra {
				require.FileExists(t, model)
			} else {
				require.NoFileExists(t, model)
				require.Contains(t, got.Message, "MiB free")
			}
		})
	}
}

// No container starts without its parameters. A host that cannot write them is
// tried for a while; then the trial goes elsewhere and the host is counted.
func TestRun_AFullDiskStartsNothing(t *testing.T) {
	t.Parallel()

	bubble(t, "for good", func(t *testing.T) {
		r := setup(t)
		require.NoError(t, os.MkdirAll(r.file(filepath.Join("in", paramsName+".tmp")), 0o700))

		began := time.Now()
		got := <-r.start(t.Context(), r.order())
		require.NoError(t, got.err)
		require.Equal(t, berth.FailureInfra, got.outcome.Kind)
		require.Contains(t, got.outcome.Message, "could not be started; Berth tries again: preparing attempt")
		require.GreaterOrEqual(t, time.Since(began), startPatience)
		require.Zero(t, r.docks.made)
		require.Empty(t, r.who(t).Attempt.ContainerID, "so it counts as a failed start of the host")
		require.False(t, r.books.result(t).ImageMissing)
	})

	bubble(t, "beside its container", func(t *testing.T) { // whose launch cannot be read any more
		r := setup(t)
		box := r.leave(t, r.order())
		require.NoError(t, r.books.AttemptRunning(t.Context(), attemptID, token, box.Container().ID, time.Now()))

		for _, name := range []string{launchName, filepath.Join("in", paramsName)} {
			require.NoError(t, os.Remove(r.file(name)))
			require.NoError(t, os.MkdirAll(r.file(name+".tmp"), 0o700))
		}

		got := <-r.start(t.Context(), r.order())
		require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err))
		require.Equal(t, berth.ContainerRunning, box.Container().State, "its result waits for a person")
	})
}

// A container of an earlier attempt that cannot be killed holds up the next
// attempt for a while. Then the trial goes elsewhere.
func TestRun_AStuckEarlierContainerFailsTheStart(t *testing.T) {
	t.Parallel()

	for name, away := range map[string]bool{"one container": false, "Docker answers nothing": true} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Earlier = []string{"earlier"} })
			_, err := r.docks.Ensure(t.Context(), berth.Launch{AttemptID: "earlier", Image: imageID})
			require.NoError(t, err)

			r.docks.Hook(func(h *fake.DockerHooks) {
				h.Stop = func(ctx context.Context, id string, call func(context.Context) error) error {
					if away || id == r.docks.Name("earlier") {
						return berth.Errorf(berth.KindUnavailable, "hangs")
					}

					return call(ctx)
				}
			})

			began := time.Now()
			got := <-r.start(t.Context(), r.order())
			require.LessOrEqual(t, time.Since(began), 3*time.Minute)
			require.Nil(t, r.docks.Process(attemptID), "two containers of the trial at once")

			if away { // it waits for Docker
				require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err))
				require.Empty(t, r.books.results)

				return
			}

			require.NoError(t, got.err)
			require.Equal(t, berth.FailureInfra, got.outcome.Kind)
		})
	}
}

// Bytes free do not tell that a disk is out of inodes or read-only.
func TestDiskProblem(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.hasDisk()
	require.Empty(t, r.DiskProblem())
	require.NoDirExists(t, filepath.Join(r.dir, "probe"))

	box, ended := r.begin(t)

	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "probe"), nil, 0o600))
	require.Contains(t, r.DiskProblem(), "takes no new files")

	box.Print(berth.Stderr, noSpaceLine)
	got := ends(t, box, ended, "", 1)
	require.Equal(t, berth.FailureInfra, got.Kind, "its files were refused as well")
	require.Contains(t, got.Message, "takes no new files")
}
