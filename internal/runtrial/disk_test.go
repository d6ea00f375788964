package runtrial

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
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

// No container starts without its parameters.
func TestRun_AFullDiskStartsNothing(t *testing.T) {
	t.Parallel()

	r := setup(t)
	require.NoError(t, os.MkdirAll(r.file(filepath.Join("in", paramsName+".tmp")), 0o700))

	for range 2 { // the second finds the launch of the first
		_, err := r.Run(t.Context(), r.order())
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
		require.Zero(t, r.docks.made)
	}
}
