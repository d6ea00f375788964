package runtrial

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Others write to the disk while a checkpoint is fetched, which takes minutes. A fetch that goes on
// below --disk-headroom fills the disk, and a neighbour that has written as much as the headroom is
// charged with it (disk_quota): its trial has failed, and its files are removed.
func TestRun_AFetchLeavesTheHeadroomToThoseThatRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64

		free.Store(12 << 20)

		x := setupSecond(t, nil)
		x.config.DiskFree = func() (int64, int64, error) { return free.Load(), 1 << 40, nil }
		x.config.DiskHeadroom = 2 << 20
		x.config.Restore = func(ctx context.Context, _ string, root *os.Root, told func(int64)) error {
			for n := range 3 { // MiB
				told(int64(n) << 20)

				if n == 1 { // a neighbour writes
					free.Store(1 << 20)
				}

				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}

			return writes("state", "7")(root)
		}

		ended := x.start(t.Context(), x.order())

		for {
			if box := x.docks.Process(attemptID); box != nil {
				box.Exit(0)
				<-ended
				require.Fail(t, "it fetched on, below what stays free")
			}

			select {
			case got := <-ended:
				require.NoError(t, got.err)
				require.True(t, got.outcome.NoRoom)
				require.Contains(t, got.outcome.Message, "--disk-headroom")

				return
			case <-time.After(time.Second):
			}
		}
	})
}

// "A fetch that was cut off needs room for the rest only" (artifacts.md): all of it was there, but for
// the last step, as a file with holes, which has few blocks.
func TestRun_WhatHasHolesNeedsNoRoomTwice(t *testing.T) {
	t.Parallel()

	cutOff := make(chan struct{})

	var calls atomic.Int32

	x := setupSecond(t, nil)
	x.config.DiskHeadroom = 2 << 20

	var free atomic.Int64

	free.Store(8 << 20)
	x.config.DiskFree = func() (int64, int64, error) { return free.Load(), 1 << 40, nil }
	x.config.Restore = func(ctx context.Context, _ string, root *os.Root, told func(int64)) error {
		file, err := root.OpenFile("memmap", os.O_CREATE|os.O_RDWR, 0o600)
		require.NoError(t, err)
		require.NoError(t, file.Truncate(3<<20))
		require.NoError(t, file.Close())
		told(3 << 20)

		if calls.Add(1) == 1 {
			close(cutOff)
			<-ctx.Done()

			return context.Cause(ctx)
		}

		return nil
	}

	ctx, kill := context.WithCancel(t.Context())
	ended := x.start(ctx, x.order())
	<-cutOff
	kill()
	require.ErrorIs(t, await(t, ended).err, ErrDetached)

	free.Store(4 << 20) // a neighbour wrote; nothing more is to be fetched

	ended = x.start(t.Context(), x.order())

	require.Eventually(t, func() bool { return calls.Load() == 2 }, patience, tick, "it is refused for want of room")
	x.docks.started(t).Exit(0)
	require.NoError(t, await(t, ended).err)
}

// This machine lets an attempt keep less than the one that the trial comes from (--output-limit). What
// it fetched is more than that: the trial has failed at once (disk_quota), and all of its files go. It
// wrote nothing here: another host is to take it.
func TestRun_WhatWasFetchedIsNoQuotaOfTheTrials(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, func(root *os.Root) error { return root.WriteFile("state", make([]byte, 3<<20), 0o600) })
	x.config.Bounds.OutputLimit = 2 << 20

	got := await(t, x.start(t.Context(), x.order()))
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureInfra, got.outcome.Kind, "%s", got.outcome.Message)
	require.Contains(t, got.outcome.Message, "--output-limit")
	require.True(t, got.outcome.NoRoom)
	require.Contains(t, x.books.result(t).NotTaken, "--output-limit")
	require.EqualValues(t, 1, x.fetched.Load(), "it is no smaller the next time")
	require.Empty(t, x.docks.launches())
}

// The sweep file bounds it, on each host alike: the trial itself has too much.
func TestRun_WhatTheSweepFileBoundsIsAQuotaOfTheTrials(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, func(root *os.Root) error { return root.WriteFile("state", make([]byte, 3<<20), 0o600) })
	x.books.says(func(who *berth.Assignee) { who.Spec.Limits.MaxOutput = 2 << 20 })

	got := await(t, x.start(t.Context(), x.order()))
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureDiskQuota, got.outcome.Kind, "%s", got.outcome.Message)
}
