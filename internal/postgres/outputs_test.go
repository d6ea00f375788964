package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// finished is a trial with one attempt that ended, on the bundle's host.
func (r *retained) finished(t *testing.T) berth.PlacementRequest {
	t.Helper()

	request := r.bundle.request(t, gib)
	status := r.place(t, request)

	require.NoError(t, r.store.FinishAttempt(t.Context(), result(request, status.Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "finished", Value: new(0.5), FinishedAt: time.Now(),
	})))

	_, err := r.store.SetTrialState(t.Context(), berth.TrialUpdate{
		TrialID: request.TrialID, SweepID: r.sweep, Number: r.trial, State: berth.TrialSucceeded, Value: new(0.5),
	})
	require.NoError(t, err)

	return request
}

// next goes on with another sweep.
func (r *retained) next(t *testing.T) {
	t.Helper()

	r.sweep, r.trial = uuid.NewString(), 0
	_, _, err := r.store.CreateSweep(t.Context(), berth.NewSweep{ID: r.sweep, Spec: berth.Spec{Name: "next"}, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)
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
	_, err := r.store.SetSweepState(ctx, old, berth.SweepStopped, "")
	require.NoError(t, err)
	r.exec(t, "UPDATE sweeps SET finished_at = now() - interval '2 hours' WHERE id = $1", old)

	r.next(t)
	open := r.finished(t)

	r.next(t)
	held := r.finished(t)
	r.place(t, r.bundle.request(t, gib))
	r.exec(t, "UPDATE sweeps SET state = 'canceled', finished_at = now() - interval '3 hours' WHERE id = $1", r.sweep)

	outputs := func(sweep string, number int, p berth.PlacementRequest) berth.TrialOutputs {
		return berth.TrialOutputs{SweepID: sweep, TrialID: p.TrialID, Number: number, AttemptIDs: []string{p.AttemptID}}
	}
	read := func(after *berth.TrialOutputs, limit int) []berth.TrialOutputs {
		list, err := r.store.OldestOutputs(ctx, r.host.ID, after, limit)
		require.NoError(t, err)

		return list
	}
	plain := func(list []berth.TrialOutputs) []berth.TrialOutputs {
		list = slices.Clone(list)
		for i := range list {
			list[i].EndedAt, list[i].EndedFor = time.Time{}, 0
		}

		return list
	}

	list := read(nil, 10)
	require.Equal(t, []berth.TrialOutputs{outputs(old, 1, oldest), outputs(young, 1, first), outputs(young, 2, second)}, plain(list),
		"neither a sweep that goes on nor one whose container may run")
	require.InDelta(t, (2 * time.Hour).Seconds(), list[0].EndedFor.Seconds(), 60)
	require.InDelta(t, time.Hour.Seconds(), list[1].EndedFor.Seconds(), 60)

	for i := range list {
		require.Equal(t, plain(list[i+1:]), plain(read(&list[i], 10)), "they go on behind any")
	}

	require.Equal(t, plain(list[:1]), plain(read(nil, 1)))
	require.Equal(t, plain(list[1:2]), plain(read(&list[0], 1)))

	list, err = r.store.OldestOutputs(ctx, uuid.NewString(), nil, 10)
	require.NoError(t, err)
	require.Empty(t, list, "of another host")

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

	require.Equal(t, []berth.TrialOutputs{outputs(young, 2, second)}, plain(read(nil, 10)))

	trial, err := r.store.GetTrial(ctx, young, 1)
	require.NoError(t, err)
	require.Equal(t, why, trial.OutputsRemoved)
	require.InDelta(t, 0.6, *trial.Value, 0, "the result stays")

	trial, err = r.store.GetTrial(ctx, young, 2)
	require.NoError(t, err)
	require.Empty(t, trial.OutputsRemoved)

	attempt, err := r.store.GetAttempt(ctx, oldest.AttemptID)
	require.NoError(t, err)
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

	trial := func() berth.Trial {
		trial, err := r.store.GetTrial(ctx, r.sweep, 1)
		require.NoError(t, err)

		return trial
	}

	require.NoError(t, r.store.ExpireOutputs(ctx, first, []string{r.request.TrialID}, "too many files"))
	require.Empty(t, trial().OutputsRemoved, "its model is on the second host")

	attempt, err := r.store.GetAttempt(ctx, earlier)
	require.NoError(t, err)
	require.Equal(t, "too many files", attempt.OutputsRemovedWhy)

	require.NoError(t, r.store.ExpireOutputs(ctx, second, []string{r.request.TrialID}, "too many files there"))
	require.Equal(t, "too many files there", trial().OutputsRemoved)
}

// Berth reports files removed by age as it does files removed by size.
func TestRetain_SaysThatOutputsAreTooOld(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	r.end(t, 48*time.Hour)
	r.retain(t, berth.Retention{Outputs: 36 * time.Hour})
	r.retain(t, berth.Retention{Outputs: 36 * time.Hour})

	trial, err := r.store.GetTrial(t.Context(), r.sweep, 1)
	require.NoError(t, err)
	require.Contains(t, trial.OutputsRemoved, "1.5 days")
	require.Contains(t, trial.OutputsRemoved, "--keep-outputs")
	require.Equal(t, 1, r.rows(t, "audit_log"))
}

// A table that is being rewritten, as by VACUUM FULL, hides no other part.
func TestHealth_LooksBesideALockedTable(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)

	rewrite, err := pool.Begin(t.Context())
	require.NoError(t, err)

	defer rewrite.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // a failed test must not keep the pool from closing

	_, err = rewrite.Exec(t.Context(), "LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)

	health, err := b.store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, health.Answering)
	require.Positive(t, health.Database.Bytes)
	require.Zero(t, health.Database.MetricBytes, "not known meanwhile")

	require.NoError(t, rewrite.Rollback(t.Context()))

	health, err = b.store.Health(t.Context())
	require.NoError(t, err)
	require.Positive(t, health.Database.MetricBytes)
}

// What a worker says of files that it cannot remove reaches a person until it is mended.
func TestHealth_SaysWhichFilesCannotBeRemoved(t *testing.T) {
	t.Parallel()

	b := setup(t)

	for _, problem := range []string{"files of 2 attempts cannot be removed", ""} {
		require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: gib, DiskBytes: gib, OutputsProblem: problem}, nil))

		health, err := b.store.Health(t.Context())
		require.NoError(t, err)

		said := []string(nil)
		if problem != "" {
			said = []string{b.host.Name + ": " + problem}
		}

		require.Equal(t, said, health.Outputs)
	}
}

// Health names files that only a silent host can remove.
func TestHealth_NamesFilesOfASilentHost(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	r.end(t, 2*time.Hour)
	r.retain(t, berth.Retention{Outputs: time.Hour})

	outputs := func() []string {
		health, err := r.store.Health(t.Context())
		require.NoError(t, err)

		return health.Outputs
	}

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

	ctx := t.Context()
	url := pgtest.URL(t)
	r := &retained{bundle: setupOn(t, url), url: url}
	older, deleted := r.sized(t, 2*time.Hour, 1), r.sized(t, time.Minute, 1)
	require.NoError(t, r.store.DeleteSweep(ctx, deleted))

	list, err := r.store.OldestOutputs(ctx, r.host.ID, nil, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []string{deleted, older}, []string{list[0].SweepID, list[1].SweepID})
	require.Greater(t, list[0].EndedFor, berth.FetchTime)

	behind, err := r.store.OldestOutputs(ctx, r.host.ID, &list[0], 10)
	require.NoError(t, err)
	require.Len(t, behind, 1)
	require.Equal(t, older, behind[0].SweepID)

	behind, err = r.store.OldestOutputs(ctx, r.host.ID, &behind[0], 10)
	require.NoError(t, err)
	require.Empty(t, behind)
}
