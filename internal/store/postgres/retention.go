package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

const (
	// retainStep is how many rows one statement deletes: well within a
	// statement's five seconds, with all that hangs on them.
	retainStep = 2000
	// retainPoints is the same for points of metrics and memory: 40 ms on 2 cores (2026-11-27).
	retainPoints = 20_000
	// retainTrials is the same for trials, each with attempts and their rows. A deleted sweep
	// goes by so many trials at a time, with all that is theirs: steps that begin with its first
	// rows each time find ever more that earlier ones left dead.
	retainTrials = 100
	// allTrials of a sweep lose something, and stay.
	allTrials = math.MaxInt32
	// retainSweeps is how many sweeps one call looks at.
	retainSweeps = 200
	// auditKept is how long entries of the audit log are kept: a year, for an audit once a year.
	auditKept = 365 * 24 * time.Hour
	// eventsKept is how long a watcher may be away and miss no event. A watcher that was away
	// for longer reads the current state and goes on from there.
	eventsKept = 24 * time.Hour
	// keysKept is how long an Idempotency-Key is known, as the API promises.
	keysKept = 24 * time.Hour
	// deletedWhy is why the files of a deleted sweep are removed.
	deletedWhy = "the sweep was deleted"
	// outputs is what files are called in events and the audit log.
	outputs = "outputs"
)

// DeleteSweep hides a sweep that has ended. Its rows and files go soon after.
// Errors: not_found; conflict while it goes on or holds a place.
func (s *Store) DeleteSweep(ctx context.Context, id string) error { return s.deleteSweep(ctx, id, "") }

// deleteSweep is DeleteSweep by a limit, which why names. It is empty for a
// person: the API records what people do.
func (s *Store) deleteSweep(ctx context.Context, id, why string) error {
	return s.inTx(ctx, "deleting sweep "+id, func(tx pgx.Tx) error {
		row, err := s.q.GetSweep(ctx, tx, id)
		if err != nil {
			return err
		}

		if state := row.State; !state.Terminal() {
			return berth.Errorf(berth.KindConflict, "the sweep is %s; stop or cancel it first", state)
		}

		rows, err := s.q.DeleteSweep(ctx, tx, id)
		if err != nil {
			return err
		}

		if rows == 0 {
			held, err := s.q.HoldsOutputs(ctx, tx, id)
			if err != nil {
				return err
			}

			if held {
				return berth.Errorf(berth.KindConflict, "trials of another sweep read what its stages wrote; delete it when they have ended, or cancel that sweep")
			}

			return berth.Errorf(berth.KindConflict, "containers of the sweep are still being removed; try again in a moment, "+
				"or see with `berth host list` which host does not answer")
		}

		if err := s.q.DeleteSweepKeys(ctx, tx, id); err != nil { // the same submission makes a new sweep
			return err
		}

		event := berth.Event{Kind: "sweep.deleted", SweepID: id, Subject: id}
		if why != "" {
			event.Data = why

			if err := s.q.InsertAudit(ctx, tx, &dbsqlc.InsertAuditParams{
				Actor: "berth", Action: "REMOVE", Object: "/sweeps/" + id, Result: why,
			}); err != nil {
				return err
			}
		}

		return s.notify(ctx, tx, event)
	})
}

// Retain deletes what is over its limit, a bounded number of rows, and says
// whether it did: there may be more then. It notes in failed what fails, and
// leaves out what failed already, so that it keeps nothing else waiting.
func (s *Store) Retain(ctx context.Context, keep berth.Retention, failed map[string]error) (more bool) {
	l := look{failed: failed}

	for _, old := range []struct {
		what   string
		most   int64 // rows that one statement deletes: with fewer there are no more
		remove func() (int64, error)
	}{
		{"audit log", retainStep, func() (int64, error) { return s.q.DeleteOldAudit(ctx, s.pool, auditKept, retainStep) }},
		{"events", retainStep, func() (int64, error) { return s.q.DeleteOldEvents(ctx, s.pool, eventsKept, retainStep) }},
		{"idempotency keys", math.MaxInt64, func() (int64, error) { return s.q.DeleteOldIdempotencyKeys(ctx, s.pool, keysKept) }},
		{"sessions", math.MaxInt64, func() (int64, error) { return s.q.DeleteOldSessions(ctx, s.pool) }},
		{"paces", retainStep, func() (int64, error) { return s.q.DeleteOldPaces(ctx, s.pool, berth.PaceKept, retainStep) }},
		{"points of machines", retainStep, func() (int64, error) {
			return s.q.DeleteOldMachinePoints(ctx, s.pool, berth.MachinePointsKept, retainStep)
		}},
		{"checkpoints", retainCheckpoints, func() (int64, error) { return s.q.DeleteOverCheckpoints(ctx, s.pool, retainCheckpoints) }},
	} {
		more = l.try(ctx, old.what, func() (bool, error) {
			rows, err := old.remove()

			return rows >= old.most, translate(err, "deleting old "+old.what)
		}) || more
	}

	for _, step := range []struct {
		what string
		do   func(context.Context, berth.Retention, look) (bool, error)
	}{ // the slowest come last
		{"sweeps", s.expireSweeps},
		{"outputs", s.expireOutputs},
		{"deleted sweeps", s.purgeSweeps},
	} {
		more = l.try(ctx, step.what, func() (bool, error) { return step.do(ctx, keep, l) }) || more
	}

	return more
}

// expireSweeps deletes sweeps that ended too long ago.
func (s *Store) expireSweeps(ctx context.Context, keep berth.Retention, l look) (bool, error) {
	if keep.Sweeps <= 0 {
		return false, nil
	}

	why := fmt.Sprintf("sweeps are kept for %.4g days after their end (--keep-sweeps)", keep.Sweeps.Hours()/24)
	ids, err := s.q.OldSweeps(ctx, s.pool, keep.Sweeps, retainSweeps)

	return l.each(ctx, "sweep", ids, func(id string) (bool, error) {
		err := s.deleteSweep(ctx, id, why)
		if kind := berth.KindOf(err); kind == berth.KindNotFound || kind == berth.KindConflict { // a person was faster
			return false, nil
		}

		return true, err
	}), translate(err, "looking for old sweeps")
}

// purgeSweeps removes the rows of deleted sweeps, after the hosts were asked
// to remove the files.
func (s *Store) purgeSweeps(ctx context.Context, _ berth.Retention, l look) (bool, error) {
	ids, err := s.q.DeletedSweeps(ctx, s.pool, retainSweeps)

	return l.each(ctx, "rows of sweep", ids, func(id string) (bool, error) {
		for _, part := range []func() (int64, error){
			func() (int64, error) { return s.askOutputRemoval(ctx, s.pool, id, retainTrials, deletedWhy) },
			func() (int64, error) {
				return s.q.DeleteSweepLogs(ctx, s.pool, &dbsqlc.DeleteSweepLogsParams{SweepID: id, MaxTrials: retainTrials, MaxRows: retainStep})
			},
			func() (int64, error) {
				return s.q.DeleteSweepMetrics(ctx, s.pool, &dbsqlc.DeleteSweepMetricsParams{SweepID: id, MaxTrials: retainTrials, MaxRows: retainPoints})
			},
			func() (int64, error) {
				return s.q.DeleteSweepMemoryPoints(ctx, s.pool, &dbsqlc.DeleteSweepMemoryPointsParams{SweepID: id, MaxTrials: retainTrials, MaxRows: retainPoints})
			},
			func() (int64, error) { return s.deleteSweepFiles(ctx, s.pool, id, retainTrials) },
			func() (int64, error) { return s.q.DeleteSweepTrials(ctx, s.pool, id, retainTrials) },
			func() (int64, error) { return s.q.DeleteSweepRow(ctx, s.pool, id) },
		} {
			if rows, err := part(); err != nil || rows > 0 {
				return true, translate(err, "removing rows of sweep "+id)
			}
		}

		return false, nil
	}), translate(err, "looking for deleted sweeps")
}

// noteRemoved records what of a sweep is removed that no person deleted.
func (s *Store) noteRemoved(ctx context.Context, tx pgx.Tx, sweepID, part, what string) error {
	if err := s.q.InsertAudit(ctx, tx, &dbsqlc.InsertAuditParams{
		Actor: "berth", Action: "REMOVE", Object: "/sweeps/" + sweepID + "/" + part, Result: what,
	}); err != nil {
		return err
	}

	return s.notify(ctx, tx, berth.Event{Kind: "sweep." + part + "_removed", SweepID: sweepID, Subject: sweepID, Data: what})
}

// look is one look at what is over its limit, with what failed in it.
type look struct{ failed map[string]error }

// try does what has not failed yet. That time is up is no failure.
func (l look) try(ctx context.Context, what string, do func() (bool, error)) (more bool) {
	if l.failed[what] != nil || ctx.Err() != nil {
		return false
	}

	more, err := do()
	if err != nil && ctx.Err() == nil {
		l.failed[what] = err
	}

	return more && err == nil
}

// each does something for every sweep. One that fails keeps no other from it.
func (l look) each(ctx context.Context, what string, ids []string, do func(id string) (bool, error)) (more bool) {
	for _, id := range ids {
		more = l.try(ctx, what+" "+id, func() (bool, error) { return do(id) }) || more
	}

	return more
}

// NoteRetention stores what cannot be deleted although it is over its limit;
// empty = nothing.
func (s *Store) NoteRetention(ctx context.Context, problem string) error {
	return translate(s.q.SetRetentionProblem(ctx, s.pool, problem), "noting what cannot be deleted")
}
