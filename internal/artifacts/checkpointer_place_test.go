package artifacts_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/placer"
)

// decides has a placer decide on the trial's next attempt, and returns its host; empty = it waits,
// and why.
func (x *trials) decides(short bool) (host string, why []string) {
	x.t.Helper()

	ctx := x.t.Context()
	of := berth.AttemptCheckpoint{AttemptID: uuid.NewString(), TrialID: x.trial}
	_, err := x.db.RequestPlacement(ctx, berth.PlacementRequest{
		AttemptID: of.AttemptID, SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: x.number + 1, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000}, Short: short,
	})
	require.NoError(x.t, err)
	x.sql().Exec("UPDATE placement_requests SET not_before = now() WHERE attempt_id = $1", of.AttemptID)
	require.NoError(x.t, placer.New(x.db, slog.New(slog.DiscardHandler)).Round(ctx))

	status, err := x.db.PlacementStatus(ctx, of.AttemptID)
	require.NoError(x.t, err)

	if status.HostID == "" {
		x.sql().Exec("DELETE FROM placement_requests WHERE attempt_id = $1", of.AttemptID)

		return "", status.Reasons
	}

	x.number++
	of.Token = status.Token
	x.of = of

	return status.HostID, nil
}

// disk sets the free space of a host's disk.
func (x *trials) disk(host string, free int64) {
	x.sql().Exec("UPDATE hosts SET disk_free_bytes = $1, disk_bytes = $2, disk_headroom_bytes = $3 WHERE id = $4", free, int64(1)<<50, int64(2*gib), host)
}

// full leaves no room for another attempt on a host.
func (x *trials) full(host string) {
	x.sql().Exec("UPDATE hosts SET cpu_milli_reserved = cpu_milli WHERE id = $1", host)
}

// The disk of a host refuses the checkpoint though it has bytes free: a quota, no inodes, an I/O
// error. Another host has room for it. The trial must not come to the same host again and again.
func TestCheckpointer_ADiskThatRefusesIsNotTriedForEver(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	third := uuid.NewString()
	require.NoError(t, x.db.RegisterHost(t.Context(), berth.Host{
		ID: third, Name: "c", BootID: "boot", CPUMilli: 16_000, MemoryBytes: 16 * gib, MemoryFreeBytes: 16 * gib, // a little smaller: b is the emptier one
	}, "test"))
	x.writes(map[string]string{"state": "seven b"})
	x.ends(berth.FailureCrashed, berth.Result{ContainerID: "c", Checkpoint: true})
	x.looks()

	for _, host := range []string{x.second, third} {
		require.NoError(t, x.db.SetHostCheckpoints(t.Context(), host, true))
		x.disk(host, 1<<40)
	}

	x.full(x.host)

	host, why := x.decides(false)
	require.Equal(t, x.second, host, "%v", why)
	x.ends(berth.FailureInfra, berth.Result{NoRoom: true}) // as the worker reports it of such a disk

	w := x.asks()
	require.Equal(t, []string{x.second}, w.Refused)
	require.Equal(t, []string{x.second}, w.Shunned)

	host, why = x.decides(false)
	require.Equal(t, third, host, "%v", why)
	x.ends(berth.FailureInfra, berth.Result{})

	x.sql().Exec("UPDATE leases SET released_at = released_at - interval '11 minutes'")
	require.Empty(t, x.asks().Shunned, "it may have been mended")
	require.Equal(t, []string{x.second}, x.asks().Refused)
	x.sql().Exec("UPDATE leases SET released_at = released_at - interval '1 day'")
	require.Empty(t, x.asks().Refused)
}

// An attempt has just ended on a full host that stores its checkpoint in the next seconds or hours. Its
// trial does not begin again on a host without a store, as it would not once the checkpoint is stored.
func TestCheckpointer_WhatComesIsNotGivenAway(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.looks() // its worker stores checkpoints
	x.disk(x.host, 1<<40)
	x.disk(x.second, 1<<40)
	x.writes(map[string]string{"state": "ten hours"}) // --checkpoint-every 0, or the first five minutes
	x.fails()
	x.full(x.host)

	host, _ := x.decides(false)
	require.Empty(t, host, "it begins anew there")

	x.looks()

	host, why := x.decides(false)
	require.Empty(t, host, "stored, it waits: %v", why)
}

// A short probe has its own directory and fetches nothing. It needs no room for the checkpoint of
// the trial's first attempt, and loses nothing on a host without a store.
func TestCheckpointer_AShortProbeWaitsForNoRoom(t *testing.T) {
	t.Parallel()

	for name, without := range map[string]bool{"on a full disk": false, "on a host without a store": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"state": "seven b"})
			x.fails()
			x.looks()
			x.full(x.host)
			x.disk(x.host, 1<<40)
			x.disk(x.second, 2*gib+5)
			require.NoError(t, x.db.SetHostCheckpoints(t.Context(), x.second, !without))

			host, why := x.decides(true)
			require.Equal(t, x.second, host, "all that wait for this probe wait, too: %v", why)
		})
	}
}

// A host restarts, or its worker is upgraded, while it has a checkpoint to store; or PostgreSQL was
// away, so that all hosts were silent. The attempt waits as long as the attempts before it ran, but
// at least ten minutes (artifacts.md). It does not wait for a host that has gone.
func TestCheckpointer_WaitsForAHostThatIsSilentForAMoment(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		silent string
		comes  bool
	}{
		"it restarts":             {"UPDATE hosts SET last_seen_at = now() - interval '2 minutes' WHERE name = 'a'", true},
		"the database comes back": {"UPDATE hosts SET last_seen_at = now() - interval '30 minutes'", true},
		"it has gone":             {"UPDATE hosts SET last_seen_at = now() - interval '2 hours' WHERE name = 'a'", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.looks()
			x.writes(map[string]string{"state": "ten hours"})
			x.fails()
			x.sql().Exec(tt.silent)

			require.Equal(t, tt.comes, x.next().Coming, "if not, the next attempt begins anew at once")
		})
	}
}

// The trial began again on a host without a store, while the other host was lost for ten hours. It
// ran out of memory, and the next container did not start there once. Its checkpoint there is the
// newest: the placer does not report that the trial would begin again there, and the trial does not
// go back to the stored checkpoint.
func TestCheckpointer_AFailedStartForgetsNothing(t *testing.T) {
	t.Parallel()

	for name, abandoned := range map[string]bool{"its container could not start": false, "it was given up before that": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"state": "an hour"})
			x.fails()
			x.looks()
			x.disk(x.host, 1<<40)
			x.disk(x.second, 1<<40)

			x.runs(x.second)
			x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c", Checkpoint: true})
			require.Contains(t, x.asks().Fetched, x.second, "as long as nothing else happened")
			x.places(x.second)

			if abandoned {
				require.NoError(t, x.db.RefuseAttempt(t.Context(), x.of.AttemptID, "its host was lost"))
				require.NoError(t, x.db.ReleaseLease(t.Context(), x.of.AttemptID, "no container of it is there"))
			} else {
				x.ends(berth.FailureInfra, berth.Result{})
			}

			w := x.asks()
			require.Equal(t, x.second, w.Checkpoint)
			require.Contains(t, w.Fetched, x.second)

			x.full(x.host)

			host, why := x.decides(false)
			require.Equal(t, x.second, host, "%v", why)
		})
	}
}
