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

// The host's disk is full for a moment, until an attempt that fails gives its
// room back. None of the attempts is to blame.
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
				var free atomic.Int64

				free.Store(90 << 30)

				r := setup(t)
				r.config.HostName, r.config.DiskHeadroom = "a", 2<<30
				r.config.DiskFree = func() (int64, error) { return free.Load(), nil }
				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)

				if c.full {
					free.Store(0)
				}

				time.Sleep(5 * time.Second)
				free.Store(90 << 30)
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
