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
	"github.com/berthml/berth/internal/fake"
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

// The host's disk is full for a moment, until somebody frees space. None of the attempts is to blame.
func TestRun_AFullDiskOfTheHostIsNotTheTrialsFault(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		full bool
		want berth.FailureKind
		says string
	}{
		"it was full": {true, berth.FailureInfra, `the disk of host "a"`},
		"it had room": {false, berth.FailureUserError, "/dev/shm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				free := r.hasDisk()
				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)

				if c.full {
					free.Store(0)
				}

				time.Sleep(5 * time.Second)
				free.Store(plenty)
				time.Sleep(5 * time.Second)
				box.Print(berth.Stderr, "OSError: [Errno 28] No space left on device: '/trial/checkpoint/m.h5'\n")
				box.Exit(1)

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, c.want, got.outcome.Kind)
				require.Contains(t, got.outcome.Message, c.says)
			})
		})
	}
}

// A container is adopted and collected on a disk that takes nothing more: a
// directory in the way of each temporary file stands for it.
func TestRun_AFullDiskKeepsNothingFromBeingAdopted(t *testing.T) {
	t.Parallel()

	for name, params := range map[string]string{
		"the same parameters":        "",
		"written by another version": `{"lr": 0.1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			box := r.leave(t, r.order())

			if params != "" {
				require.NoError(t, os.WriteFile(r.file(filepath.Join("in", paramsName)), []byte(params), 0o600))
			}

			for _, file := range []string{filepath.Join("in", paramsName), launchName, usageName, readingName, verdictName} {
				require.NoError(t, os.MkdirAll(r.file(file+".tmp"), 0o700))
			}

			box.Print(berth.Stdout, "acc=0.5\n")
			box.Exit(0)

			got := await(t, r.start(t.Context(), r.order()))
			require.NoError(t, got.err)
			require.Equal(t, berth.FailureOK, got.outcome.Kind)
			require.Equal(t, 1, r.docks.made)
		})
	}
}

const noSpaceLine = "OSError: [Errno 28] No space left on device: '/trial/checkpoint/m.h5'\n"

// The worker is away, or replaced, when the disk is full, and a person frees
// space before the attempt is judged.
func TestRun_RemembersThatTheDiskWasFull(t *testing.T) {
	t.Parallel()

	for name, full := range map[string]func(t *testing.T, r *rig, free *atomic.Int64){
		"seen by the run before": func(t *testing.T, r *rig, free *atomic.Int64) {
			t.Helper()

			box := r.readFor(t, 2*time.Second, func(*fake.Process) {}) // a disk with room takes the first record
			for _, name := range ours {                                // and a full one no further file
				require.NoError(t, os.MkdirAll(r.file(name+".tmp"), 0o700))
			}

			free.Store(0)
			r.readFor(t, 2*time.Second, func(*fake.Process) {})
			free.Store(plenty)
			r.readFor(t, 2*time.Second, func(*fake.Process) {})

			ended := r.start(t.Context(), r.order())

			time.Sleep(time.Second)
			box.Print(berth.Stderr, noSpaceLine)
			box.Exit(1)
			await(t, ended)
		},
		"seen by nobody": func(t *testing.T, r *rig, _ *atomic.Int64) {
			t.Helper()

			box := r.leave(t, r.order())
			box.Print(berth.Stderr, noSpaceLine)
			box.Exit(1)
			await(t, r.start(t.Context(), r.order()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				full(t, r, r.hasDisk())
				require.Equal(t, berth.FailureInfra, r.books.result(t).Outcome.Kind, r.books.result(t).Outcome.Message)
				require.Contains(t, r.books.result(t).Outcome.Message, `host "a"`)
			})
		})
	}
}

// The log of a full disk ends before the words do: Docker drops what it cannot
// write. What was seen of the disk is enough, also for an end that looks well.
func TestRun_AFullDiskTakesTheLastWords(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		free   int64
		source string
		exit   int
		want   berth.FailureKind
	}{
		"failed, and could not say why":      {0, berth.MetricsStdout, 1, berth.FailureInfra},
		"failed within the headroom":         {1 << 30, berth.MetricsStdout, 1, berth.FailureUserError},
		"ended well, with an old value":      {0, berth.MetricsStdout, 0, berth.FailureInfra},
		"ended well, and reports in a file":  {0, berth.MetricsFile, 0, berth.FailureOK},
		"ended well within the headroom":     {1 << 30, berth.MetricsStdout, 0, berth.FailureOK},
		"ended well, and there was room all": {plenty, berth.MetricsStdout, 0, berth.FailureOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = c.source })

				free := r.hasDisk()
				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				box.Print(berth.Stdout, "acc=0.1\n")
				require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), []byte(`{"acc":0.1}`+"\n"), 0o600))
				time.Sleep(time.Second)
				free.Store(c.free)
				time.Sleep(2 * time.Second) // acc=0.9 is printed, and dropped
				free.Store(plenty)
				time.Sleep(time.Second)
				box.Exit(c.exit)

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, c.want, got.outcome.Kind, got.outcome.Message)
				require.Equal(t, c.want == berth.FailureOK, got.outcome.Value != nil)
			})
		})
	}
}

// What cannot be read behind a tear may hold the best value.
func TestRun_ATornLogIsNoResult(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]berth.FailureKind{
		berth.MetricsStdout: berth.FailureInfra, berth.MetricsFile: berth.FailureOK,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = source })
				r.docks.mute(berth.Errorf(berth.KindInternal, "malformed log frame"))

				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				box.Print(berth.Stdout, "acc=0.1\n")
				require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), []byte(`{"acc":0.1}`+"\n"), 0o600))
				box.Exit(0)

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, want, got.outcome.Kind, got.outcome.Message)
				require.Contains(t, got.outcome.Message, "the end of its log could not be read")
			})
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
		"its own files":                {0, 5 << 20, 0, 1, berth.FailureDiskQuota},
		"its own, at once":             {0, 4<<20 + entryBytes, 0, 1, berth.FailureDiskQuota},
		"others' files":                {0, 3 << 20, 0, 1, berth.FailureInfra},
		"those of another attempt":     {0, 5 << 20, 6 << 20, 1, berth.FailureInfra},
		"another program's since then": {5 << 20, 0, 0, 1, berth.FailureInfra},
		"its own, and it ended well":   {0, 5 << 20, 0, 0, berth.FailureInfra},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				free := r.hasSmallDisk()
				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				model, checkpoint := filepath.Join(mountOf(t, box.Launch, mountOut), "model"), filepath.Join(r.checkpoints(), "epoch-1")
				require.NoError(t, os.WriteFile(checkpoint, nil, 0o600))

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
				box.Exit(c.exit)

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, c.want, got.outcome.Kind, got.outcome.Message)
				require.FileExists(t, checkpoint, "those of a shared disk stay")

				if c.want == berth.FailureInfra {
					require.FileExists(t, model)
				} else {
					require.NoFileExists(t, model)
					require.Contains(t, got.outcome.Message, "MiB free")
				}
			})
		})
	}
}

// No container starts without its parameters. A host that cannot write them is
// tried for a while; then the trial goes elsewhere and the host is counted.
func TestRun_AFullDiskStartsNothing(t *testing.T) {
	t.Parallel()

	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
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
	})

	t.Run("for a moment", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			inTheWay := r.file(filepath.Join("in", paramsName+".tmp"))
			require.NoError(t, os.MkdirAll(inTheWay, 0o700))

			ended := r.start(t.Context(), r.order())

			time.Sleep(startPatience / 2)
			require.NoError(t, os.Remove(inTheWay))
			time.Sleep(2 * retryEvery)
			r.docks.started(t).Print(berth.Stdout, "acc=1\n")
			r.docks.started(t).Exit(0)

			got := await(t, ended)
			require.NoError(t, got.err)
			require.Equal(t, berth.FailureOK, got.outcome.Kind)
		})
	})

	t.Run("beside its container", func(t *testing.T) { // whose launch cannot be read any more
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
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
	})
}

// A container of an earlier attempt that cannot be killed holds up the next
// attempt for a while. Then the trial goes elsewhere.
func TestRun_AStuckEarlierContainerFailsTheStart(t *testing.T) {
	t.Parallel()

	for name, away := range map[string]bool{"one container": false, "Docker answers nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)

	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "probe"), nil, 0o600))
	require.Contains(t, r.DiskProblem(), "takes no new files")

	box.Print(berth.Stderr, noSpaceLine)
	box.Exit(1)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureInfra, got.outcome.Kind, "its files were refused as well")
	require.Contains(t, got.outcome.Message, "takes no new files")
}
