package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// finished is a trial with one attempt that ended, on the bundle's host.
func (r *retained) finished(t *testing.T) berth.PlacementRequest {
	t.Helper()

	request := r.bundle.request(t, gib)
	r.place(t, request)
	r.finish(t, request, berth.Outcome{Kind: berth.FailureOK, Value: new(0.5)})
	r.settle(t, request, berth.TrialSucceeded, berth.FailureOK, new(0.5))

	return request
}

// next goes on with another sweep.
func (r *retained) next(t *testing.T) {
	t.Helper()
	r.begin(t, berth.Spec{Name: "next"})
}

// A host above its limit removes files of ended sweeps only, oldest sweep
// first. The trial, its attempts and the audit log report the removal.
func TestExpireOutputs(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := retainedSetup(t)
	young, first := r.sweep, r.request
	second := r.finished(t)
	r.end(t, time.Hour)

	r.next(t)
	old, oldest := r.sweep, r.finished(t)
	r.setState(t, berth.SweepStopped)
	r.exec(t, "UPDATE sweeps SET finished_at = now() - interval '2 hours' WHERE id = $1", old)

	r.next(t)
	open := r.finished(t)

	r.next(t)
	held := r.finished(t)
	r.place(t, r.bundle.request(t, gib))
	r.exec(t, "UPDATE sweeps SET state = 'canceled', finished_at = now() - interval '3 hours' WHERE id = $1", r.sweep)

	outputs := func(p berth.PlacementRequest, ended time.Duration) berth.TrialOutputs {
		return berth.TrialOutputs{TrialID: p.TrialID, AttemptIDs: []string{p.AttemptID}, EndedFor: ended}
	}
	read := func(limit int) []berth.TrialOutputs {
		list, err := r.store.OldestOutputs(ctx, r.host.ID, limit)
		require.NoError(t, err)

		for i := range list {
			list[i].EndedFor = list[i].EndedFor.Round(time.Minute)
		}

		return list
	}

	list := []berth.TrialOutputs{outputs(oldest, 2*time.Hour), outputs(first, time.Hour), outputs(second, time.Hour)}
	require.Equal(t, list, read(10), "neither a sweep that goes on nor one whose container may run")
	require.Equal(t, list[:1], read(1))

	elsewhere, err := r.store.OldestOutputs(ctx, uuid.NewString(), 10)
	require.NoError(t, err)
	require.Empty(t, elsewhere, "of another host")

	require.NoError(t, r.store.SetHostStores(ctx, r.host.ID, true))
	require.NoError(t, r.store.SettleFiles(ctx, first.AttemptID, berth.FileOutcome{State: berth.FilesStored}))

	for _, i := range []int{0, 2} {
		list[i].Unstored = true
	}

	require.Equal(t, []berth.TrialOutputs{list[1], list[0], list[2]}, read(10), "what waits for the store goes last")
	require.NoError(t, r.store.SetHostStores(ctx, r.host.ID, false))

	const why = "its host keeps at most 10 MiB of files"

	all := []string{oldest.TrialID, first.TrialID, open.TrialID, held.TrialID}
	for range 2 { // once more changes nothing
		require.NoError(t, r.store.ExpireOutputs(ctx, r.host.ID, all, why))
	}

	asked, err := r.store.OutputRemovals(ctx, r.host.ID, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []berth.OutputRemoval{
		{AttemptID: oldest.AttemptID, TrialID: oldest.TrialID}, {AttemptID: first.AttemptID, TrialID: first.TrialID},
	}, asked)

	require.Equal(t, []berth.TrialOutputs{outputs(second, time.Hour)}, read(10))

	trial, err := r.store.GetTrial(ctx, young, 1)
	require.NoError(t, err)
	require.Equal(t, why, trial.OutputsRemoved)
	require.InDelta(t, 0.6, *trial.Value, 0, "the result stays")

	trial, err = r.store.GetTrial(ctx, young, 2)
	require.NoError(t, err)
	require.Empty(t, trial.OutputsRemoved)

	attempt := r.attempt(t, oldest.AttemptID)
	require.Equal(t, why, attempt.OutputsRemovedWhy)
	require.WithinDuration(t, time.Now(), *attempt.OutputsRemovedAt, time.Minute)

	require.Equal(t, 2, r.rows(t, "audit_log"), "one entry for each sweep")
	require.Equal(t, 2, r.rows(t, "events WHERE kind = 'sweep.outputs_removed'"))
}

// A trial's files belong to its last attempt. Only an earlier attempt itself
// reports the loss of its files on another host.
func TestExpireOutputs_OfAnEarlierAttempt(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := retainedSetup(t)
	first, second := r.host.ID, uuid.NewString()

	r.exec(t, `INSERT INTO hosts (id, name, boot_id, cpu_milli, memory_bytes, memory_headroom_bytes, memory_free_bytes, disk_free_bytes, disk_headroom_bytes, max_attempts, version)
		SELECT $1, 'second', boot_id, cpu_milli, memory_bytes, memory_headroom_bytes, memory_free_bytes, disk_free_bytes, disk_headroom_bytes, max_attempts, version FROM hosts`, second)
	r.exec(t, "UPDATE attempts SET number = 2, host_id = $1", second)

	earlier := uuid.NewString()
	r.exec(t, `INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, failure_kind, finished_at, memory_bytes, cpu_milli)
		SELECT $1, trial_id, 1, stage, purpose, state, $2, token, 'infra', finished_at, memory_bytes, cpu_milli FROM attempts`, earlier, first)
	r.end(t, 2*time.Hour)

	require.NoError(t, r.store.ExpireOutputs(ctx, first, []string{r.request.TrialID}, "too many files"))
	require.Empty(t, r.getTrial(t, 1).OutputsRemoved, "its model is on the second host")
	require.Equal(t, "too many files", r.attempt(t, earlier).OutputsRemovedWhy)

	require.NoError(t, r.store.ExpireOutputs(ctx, second, []string{r.request.TrialID}, "too many files there"))
	require.Equal(t, "too many files there", r.getTrial(t, 1).OutputsRemoved)
}

// A table that is being rewritten, as by VACUUM FULL, hides no other part.
func TestHealth_LooksBesideALockedTable(t *testing.T) {
	t.Parallel()

	b := setup(t)
	rewrite, err := b.pool.Begin(t.Context())
	require.NoError(t, err)

	defer rewrite.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // a failed test must not keep the pool from closing

	_, err = rewrite.Exec(t.Context(), "LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)

	health := b.health(t)
	require.Equal(t, 1, health.Answering)
	require.Positive(t, health.Database.Bytes)
	require.Zero(t, health.Database.MetricBytes, "not known meanwhile")

	require.NoError(t, rewrite.Rollback(t.Context()))
	require.Positive(t, b.health(t).Database.MetricBytes)
}

// Health names files that a worker cannot remove, until it can, and files that only a
// silent host can remove.
func TestHealth_NamesFilesOfASilentHost(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	r.end(t, 2*time.Hour)
	r.retain(t, berth.Retention{Outputs: time.Hour})

	outputs := func() []string { return r.health(t).Outputs }

	r.touch(t, berth.HostFree{MemoryBytes: gib, OutputsProblem: "files of 2 attempts cannot be removed"})
	require.Equal(t, []string{"a: files of 2 attempts cannot be removed"}, outputs())
	r.touch(t, berth.HostFree{MemoryBytes: gib})

	r.exec(t, "UPDATE hosts SET data_dir = '/old', last_seen_at = now() - interval '23 hours'")
	require.Empty(t, outputs(), "it may come back")

	r.exec(t, "UPDATE hosts SET last_seen_at = now() - interval '25 hours'")
	require.Equal(t, []string{`a: files of 1 attempts are to be removed in "/old", but its worker has not been heard of for a day`}, outputs())

	require.NoError(t, r.store.RemoveHost(t.Context(), r.host.ID, false))
	require.Empty(t, outputs())
}

// Files that a person deleted go before all others, however young they are.
func TestOldestOutputs_DeletedComeFirst(t *testing.T) {
	t.Parallel()

	r := &retained{bundle: setup(t)}
	older := r.finished(t)
	r.end(t, 2*time.Hour)
	r.next(t)
	deleted := r.finished(t)
	r.setState(t, berth.SweepSucceeded)
	require.NoError(t, r.store.DeleteSweep(t.Context(), r.sweep))

	list, err := r.store.OldestOutputs(t.Context(), r.host.ID, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []string{deleted.TrialID, older.TrialID}, []string{list[0].TrialID, list[1].TrialID})
	require.Greater(t, list[0].EndedFor, berth.FetchTime)
}
