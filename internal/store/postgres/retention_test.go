package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// retained is a sweep with a finished attempt that left metrics, a log and files.
type retained struct {
	*bundle

	request berth.PlacementRequest
}

func retainedSetup(t *testing.T) *retained {
	t.Helper()

	r := &retained{bundle: setup(t)}
	r.request = r.bundle.request(t, gib)
	token := r.place(t, r.request).Token

	require.NoError(t, errors.Join(
		r.store.PutMetrics(t.Context(), r.request.AttemptID, token, points("acc", 2)),
		r.store.PutMemory(t.Context(), r.request.AttemptID, token, []berth.MemoryPoint{{HostBytes: new(int64(gib / 2))}}),
		r.store.PutLog(t.Context(), r.request.AttemptID, token, berth.LogPiece{Stream: "stdout", At: time.Now(), Data: []byte("0123456789")}),
	))
	r.finish(t, r.request, berth.Outcome{
		Kind: berth.FailureOK, Value: new(0.6), Usage: berth.Usage{MemoryPeakBytes: gib / 2, Samples: 3, Wall: berth.Duration(time.Minute)},
	})
	r.settle(t, r.request, berth.TrialSucceeded, berth.FailureOK, new(0.6))

	return r
}

// end ends the sweep, this long ago.
func (r *retained) end(t *testing.T, ago time.Duration) {
	t.Helper()
	r.setState(t, berth.SweepSucceeded)
	r.exec(t, "UPDATE sweeps SET finished_at = now() - $1::interval", ago)
}

// retain deletes until nothing is over its limit.
func (r *retained) retain(t *testing.T, keep berth.Retention) {
	t.Helper()

	for step := 0; ; step++ {
		failed := make(map[string]error)
		more := r.store.Retain(t.Context(), keep, failed)
		require.Empty(t, failed)

		if !more {
			return
		}

		require.Less(t, step, 100, "it finds no end")
	}
}

func TestFindSweep(t *testing.T) {
	t.Parallel()

	b, ctx := bare(t), t.Context()
	b.exec(t, `INSERT INTO sweeps (id, name, spec, image_digest, created_by) VALUES
		('aaaa0000-0000-4000-8000-000000000001', 'one', '{}', 'sha256:x', 'me'), ('aaaa1111-0000-4000-8000-000000000002', 'two', '{}', 'sha256:x', 'me'),
		('bbbb0000-0000-4000-8000-000000000003', 'two', '{}', 'sha256:x', 'me'), ('cccc0000-0000-4000-8000-000000000004', 'bbbb', '{}', 'sha256:x', 'me')`)

	for ref, want := range map[string]string{"AAAA0": "aaaa0000-0000-4000-8000-000000000001", "one": "aaaa0000-0000-4000-8000-000000000001", "c": "cccc0000-0000-4000-8000-000000000004"} {
		id, err := b.store.FindSweep(ctx, ref)
		require.NoError(t, err, ref)
		require.Equal(t, want, id, ref)
	}

	for ref, want := range map[string]berth.Kind{"aaaa": berth.KindConflict, "two": berth.KindConflict, "bbbb": berth.KindConflict, "One": berth.KindNotFound, "on": berth.KindNotFound, "_": berth.KindNotFound} {
		_, err := b.store.FindSweep(ctx, ref)
		require.Equal(t, want, berth.KindOf(err), "%s: %v", ref, err)
	}
}

// Trials whose messages differ in numbers only failed for one reason.
func TestFailures(t *testing.T) {
	t.Parallel()

	b := setup(t)

	for i, message := range []string{"KeyError: 'a', after 3.5 s", "ValueError: no", "KeyError: 'a', after 0.25e-3 s", "fine"} {
		r := b.request(t, gib)
		b.place(t, r)

		end := berth.TrialUpdate{TrialID: b.getTrial(t, i+1).ID, SweepID: b.sweep, Number: i + 1, State: berth.TrialFailed, Kind: berth.FailureUserError, Message: message}
		if message == "fine" {
			end.State, end.Kind = berth.TrialCanceled, berth.FailureCanceled
		}

		_, err := b.store.SetTrialState(t.Context(), end)
		require.NoError(t, err)
	}

	reasons, err := b.store.Failures(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, []berth.FailureReason{
		{State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "KeyError: 'a', after 3.5 s", Trials: 2, First: 1},
		{State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "ValueError: no", Trials: 1, First: 2},
	}, reasons)
}

func TestDeleteSweep(t *testing.T) {
	t.Parallel()

	r, ctx := retainedSetup(t), t.Context()

	err := r.store.DeleteSweep(ctx, r.sweep)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "it goes on")
	require.ErrorContains(t, err, "stop or cancel it first")

	waiting := r.bundle.request(t, gib)
	r.place(t, waiting)
	r.end(t, 0)
	require.Equal(t, berth.KindConflict, berth.KindOf(r.store.DeleteSweep(ctx, r.sweep)), "a container of it may run")

	require.NoError(t, r.store.AbandonAttempt(ctx, waiting.AttemptID, "gone"))
	require.NoError(t, r.store.ReleaseLease(ctx, waiting.AttemptID, "no container"))
	require.NoError(t, r.store.DeleteSweep(ctx, r.sweep))

	// It is not shown from this moment on: half of a curve would look whole.
	_, noSweep := r.store.GetSweep(ctx, r.sweep)
	_, noneFound := r.store.FindSweep(ctx, r.sweep[:8])
	_, noTrial := r.store.GetTrial(ctx, r.sweep, 1)
	_, noAttempt := r.store.GetAttempt(ctx, r.request.AttemptID)

	for _, err := range []error{noSweep, noneFound, noTrial, noAttempt, r.store.DeleteSweep(ctx, r.sweep)} {
		require.Equal(t, berth.KindNotFound, berth.KindOf(err), "%v", err)
	}

	sweeps, err := r.store.ListSweepRecords(ctx, nil, time.Time{}, "", 10)
	require.NoError(t, err)
	trials, err := r.store.ListTrials(ctx, r.sweep, nil, 0, 10)
	require.NoError(t, err)
	attempts, err := r.store.ListSweepAttempts(ctx, r.sweep, 0, 0, 10)
	require.NoError(t, err)
	require.Zero(t, len(sweeps)+len(trials)+len(attempts))

	r.retain(t, berth.Retention{})

	for _, table := range []string{"sweeps", "trials", "attempts", "leases", "metrics", "memory_points", "log_chunks", "placement_requests"} {
		require.Zero(t, r.rows(t, table), table)
	}

	require.Equal(t, 1, r.rows(t, "footprints"), "what was measured serves other sweeps")

	asked := func() []berth.OutputRemoval {
		asked, err := r.store.OutputRemovals(ctx, r.host.ID, 10)
		require.NoError(t, err)

		return asked
	}
	first, second := berth.OutputRemoval{AttemptID: r.request.AttemptID, TrialID: r.request.TrialID}, berth.OutputRemoval{AttemptID: waiting.AttemptID, TrialID: waiting.TrialID}
	require.ElementsMatch(t, []berth.OutputRemoval{first, second}, asked(), "its host removes the files")

	require.NoError(t, r.store.OutputsRemoved(ctx, r.host.ID, []string{first.AttemptID}, []string{second.AttemptID}))
	require.Equal(t, []berth.OutputRemoval{second}, asked(), "what could not be removed is asked for again")
	require.NoError(t, r.store.OutputsRemoved(ctx, r.host.ID, []string{second.AttemptID}, nil))
	require.Empty(t, asked())
}

func TestRetain(t *testing.T) {
	t.Parallel()

	const month = 30 * 24 * time.Hour

	all := map[string]int{"sweeps": 1, "trials": 1, "attempts": 1, "metrics": 2, "memory_points": 1, "log_chunks": 1, "output_removals": 0}
	gone := map[string]int{"sweeps": 0, "trials": 0, "attempts": 0, "metrics": 0, "memory_points": 0, "log_chunks": 0, "output_removals": 1}

	for _, tt := range []struct {
		name  string
		ended time.Duration // ago; negative = it goes on
		keep  berth.Retention
		left  map[string]int // rows left; missing tables are unchanged
	}{
		{"no limit deletes nothing", 100 * month, berth.Retention{}, nil},
		{"sweeps", 2 * month, berth.Retention{Sweeps: month}, gone},
		{"younger sweeps stay", month / 2, berth.Retention{Sweeps: month, Outputs: month}, nil},
		{"what goes on stays", -1, berth.Retention{Sweeps: 1, Outputs: 1}, nil},
		{"outputs", 2 * month, berth.Retention{Outputs: month}, map[string]int{"output_removals": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := retainedSetup(t)
			if tt.ended >= 0 {
				r.end(t, tt.ended)
			}

			r.retain(t, tt.keep)
			r.retain(t, tt.keep) // once more changes nothing

			for table, n := range all {
				if left, changed := tt.left[table]; changed {
					n = left
				}

				require.Equal(t, n, r.rows(t, table), table)
			}

			if r.rows(t, "sweeps") == 0 {
				require.Equal(t, 1, r.rows(t, "audit_log WHERE actor = 'berth' AND action = 'REMOVE' AND object = '/sweeps/"+r.sweep+"' AND result LIKE '%30 days%--keep-sweeps%'"))

				return
			}

			trial := r.getTrial(t, 1)
			require.InDelta(t, 0.6, *trial.Value, 0, "the result stays")

			if tt.left != nil {
				require.Contains(t, trial.OutputsRemoved, "30 days")
				require.Contains(t, trial.OutputsRemoved, "--keep-outputs")
				require.Equal(t, 1, r.rows(t, "audit_log"))
			}
		})
	}
}

// The newest event stays: otherwise a stream that has read all would seem to
// have missed events.
func TestRetain_EventsAndAudit(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	for range 3 {
		require.NoError(t, r.store.Audit(t.Context(), berth.AuditEntry{Actor: "a", Action: "POST", Object: "/", IP: "::1", Result: "200"}))
	}

	_, err := r.store.PublishEvents(t.Context(), 100)
	require.NoError(t, err)

	_, last, err := r.store.EventRange(t.Context())
	require.NoError(t, err)

	r.retain(t, berth.Retention{})
	require.Equal(t, 3, r.rows(t, "audit_log"), "they are young")

	r.exec(t, "UPDATE audit_log SET at = now() - interval '366 days' WHERE id < (SELECT max(id) FROM audit_log)")
	r.exec(t, "UPDATE events SET created_at = now() - interval '25 hours'")
	r.retain(t, berth.Retention{})
	require.Equal(t, 1, r.rows(t, "audit_log"))

	first, still, err := r.store.EventRange(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{last, last}, []int64{first, still})
}

// A deleted sweep goes in few steps, and by trials: the points of later ones are there until earlier trials are gone, so
// that no step looks through what others deleted. Without logs and memory of its own no step reads those of other sweeps.
func TestRetain_DeletesASweepByItsTrials(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	r.end(t, time.Hour)

	other := r.another(t, berth.Resources{}).sweep

	for _, statement := range []string{
		`DELETE FROM log_chunks`, `DELETE FROM memory_points`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, finished_at)
		SELECT gen_random_uuid(), CASE WHEN n <= 150 THEN '%[1]s' ELSE '%[2]s' END::uuid, n, params, shape_key, state, failure_kind, finished_at
		FROM trials, generate_series(2, 250) n WHERE number = 1`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, finished_at)
		SELECT t.id, t.id, 1, 'main', 'run', 'finished', h.id, nextval('lease_tokens'), 1, 1, 'ok', now() FROM trials t, hosts h WHERE t.number > 1`,
		`INSERT INTO memory_points SELECT id, s, 1, 1, 1 FROM trials, generate_series(1, 400) s WHERE sweep_id = '%[2]s'`,
		`INSERT INTO log_chunks (attempt_id, "offset", stream, at, data) SELECT attempt_id, at_second, 'stdout', now(), 'x' FROM memory_points`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT a.id, 'loss', n, 1, 'finite', now() FROM attempts a JOIN trials t ON t.id = a.trial_id, generate_series(1, 140) n WHERE t.sweep_id = '%[1]s'`,
		`ANALYZE`,
	} {
		r.exec(t, fmt.Sprintf(statement+" -- %[1]s %[2]s", r.sweep, other))
	}

	require.NoError(t, r.store.ReleaseLease(t.Context(), r.request.AttemptID, "removed"))
	require.NoError(t, r.store.DeleteSweep(t.Context(), r.sweep))
	r.store.Close()

	before := r.reads(t, tupleReads, "memory_points", "log_chunks")
	r.store = open(t, r.url)
	steps, kept := 0, "trials WHERE sweep_id = '"+r.sweep+"'"

	for r.rows(t, kept) == 150 {
		require.True(t, r.store.Retain(t.Context(), berth.Retention{}, map[string]error{}))

		steps++
	}

	require.Equal(t, 50*140, r.rows(t, "metrics"))

	for r.store.Retain(t.Context(), berth.Retention{}, map[string]error{}) {
		steps++
	}

	require.Zero(t, r.rows(t, "sweeps WHERE id = '"+r.sweep+"'"))
	require.LessOrEqual(t, steps, 12)
	r.store.Close()

	for table, rows := range r.reads(t, tupleReads, "memory_points", "log_chunks") {
		require.Less(t, rows-before[table], int64(1000), "rows of %s that are of another sweep, of 40,000", table)
	}
}

// sized ends the current sweep, so long ago, with one attempt of so many metric
// points, and goes on with the next.
func (r *retained) sized(t *testing.T, ago time.Duration, points int) (sweep string) {
	t.Helper()

	sweep = r.sweep
	r.exec(t, `INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT $1, 'loss', n, 0.5, 'finite', now() FROM generate_series(1, $2::integer) n`, r.finished(t).AttemptID, points)
	r.exec(t, "UPDATE sweeps SET state = 'succeeded', finished_at = now() - $1::interval WHERE id = $2", ago, sweep)
	r.next(t)

	return sweep
}

// many adds attempts to the sweep's first trial.
func (r *retained) many(t *testing.T, n int) {
	t.Helper()

	r.exec(t, `INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, failure_kind, finished_at, memory_bytes, cpu_milli)
		SELECT gen_random_uuid(), trial_id, n, stage, purpose, state, host_id, token, 'infra', finished_at, memory_bytes, cpu_milli
		FROM attempts, generate_series(2, $1::integer + 1) n WHERE id = $2`, n, r.request.AttemptID)
}

// One statement never asks for the files of a whole large sweep: it would time
// out each time, and nothing of the sweep would go.
func TestRetain_AsksForFilesInSteps(t *testing.T) {
	t.Parallel()

	const attempts = 4500

	for name, keep := range map[string]berth.Retention{"deleted": {}, "too old": {Outputs: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := retainedSetup(t)
			r.many(t, attempts-1)
			r.end(t, 2*time.Hour)

			if name == "deleted" {
				require.NoError(t, r.store.DeleteSweep(t.Context(), r.sweep))
			}

			require.True(t, r.store.Retain(t.Context(), keep, map[string]error{}))
			require.Equal(t, 2000, r.rows(t, "output_removals"))

			r.retain(t, keep)
			require.Equal(t, attempts, r.rows(t, "output_removals"))

			if name == "deleted" {
				require.Zero(t, r.rows(t, "sweeps"))
			} else {
				require.Equal(t, 1, r.rows(t, "sweeps WHERE outputs_removed_at IS NOT NULL"))
				require.Equal(t, 1, r.rows(t, "audit_log WHERE result LIKE '500 attempts: %--keep-outputs)'"))
			}
		})
	}
}

// A failing part is left out of the look, and does not prevent other deletions.
// Health reports it until it works.
func TestRetain_GoesOnBesideWhatFails(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := retainedSetup(t)
	r.end(t, 2*time.Hour)
	broken := r.sweep
	r.next(t)
	whole := r.sized(t, 3*time.Hour, 3000)

	r.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'page is damaged'; END $$`)
	r.exec(t, `CREATE TRIGGER refuse BEFORE DELETE ON log_chunks FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, r.store.DeleteSweep(ctx, broken))
	require.NoError(t, r.store.DeleteSweep(ctx, whole))

	failed := make(map[string]error)
	for step := 0; r.store.Retain(ctx, berth.Retention{}, failed); step++ {
		require.Less(t, step, 100, "it finds no end")
	}

	require.Len(t, failed, 1)
	require.ErrorContains(t, failed["rows of sweep "+broken], "page is damaged")
	require.Equal(t, 1, r.rows(t, "sweeps WHERE deleted_at IS NOT NULL"), "the other one is gone")

	for _, problem := range []string{"page is damaged", ""} {
		require.NoError(t, r.store.NoteRetention(ctx, problem))

		health, err := r.store.Health(ctx)
		require.NoError(t, err)
		require.Equal(t, problem, health.Retention)
	}

	r.exec(t, "DROP TRIGGER refuse ON log_chunks")
	r.retain(t, berth.Retention{})
	require.Zero(t, r.rows(t, "sweeps WHERE deleted_at IS NOT NULL"))
}

// A look that is cut short has not failed.
func TestRetain_IsNoFailureWhenTimeIsUp(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	failed := make(map[string]error)
	require.False(t, setup(t).store.Retain(ctx, berth.Retention{Sweeps: time.Hour}, failed))
	require.Empty(t, failed)
}

// After its sweep was deleted the same submission makes a new one.
func TestDeleteSweep_FreesItsKey(t *testing.T) {
	t.Parallel()

	b := bare(t)

	for range 2 {
		var created bool
		var err error

		b.sweep, created, err = b.store.CreateSweep(t.Context(), berth.NewSweep{
			ID: uuid.NewString(), Spec: berth.Spec{Name: "s"}, ImageDigest: "sha256:x", CreatedBy: "local", Route: "r", Key: "k", BodyHash: []byte("b"),
		})
		require.NoError(t, err)
		require.True(t, created)
		b.setState(t, berth.SweepFailed)
		require.NoError(t, b.store.DeleteSweep(t.Context(), b.sweep))
	}
}
