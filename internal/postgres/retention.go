package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
)

const (
	// retainStep is how many rows one statement deletes: well within a
	// statement's five seconds, with all that hangs on them.
	retainStep = 2000
	// retainTrials is the same for trials, each with attempts and their rows.
	retainTrials = 50
	// retainSweeps is how many sweeps one call looks at.
	retainSweeps = 200
	// keysKept is how long an Idempotency-Key is known, as the API promises.
	keysKept = 24 * time.Hour
	// deletedWhy is why the files of a deleted sweep are removed.
	deletedWhy = "the sweep was deleted"
)

// DeleteSweep hides a sweep that has ended. Its rows and files go soon after.
// Errors: not_found; conflict while it goes on or holds a place.
func (s *Store) DeleteSweep(ctx context.Context, id string) error {
	return s.inTx(ctx, "deleting sweep "+id, func(tx pgx.Tx) error {
		row, err := s.q.GetSweep(ctx, tx, id)
		if err != nil {
			return err
		}

		if state := berth.SweepState(row.State); !state.Terminal() {
			return berth.Errorf(berth.KindConflict, "the sweep is %s; stop or cancel it first", state)
		}

		rows, err := s.q.DeleteSweep(ctx, tx, id)
		if err != nil {
			return err
		}

		if rows == 0 {
			return berth.Errorf(berth.KindConflict, "containers of the sweep are still being removed; try again in a moment, "+
				"or see with `berth host list` which host does not answer")
		}

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.deleted", SweepID: id, Subject: id})
	})
}

// Retain deletes what is over its limit, a bounded number of rows, and says
// whether there may be more. Each kind is tried although another one failed.
func (s *Store) Retain(ctx context.Context, keep berth.Retention) (more bool, err error) {
	for _, step := range []func(context.Context, berth.Retention) (bool, error){
		s.expireSweeps, s.purgeSweeps, s.expireOutputs, s.expireLogs, s.expireMetrics, s.pruneAudit, s.pruneEvents, s.pruneKeys,
	} {
		again, stepErr := step(ctx, keep)
		more, err = more || again, errors.Join(err, stepErr)
	}

	return more, err
}

// expireSweeps deletes sweeps that ended too long ago.
func (s *Store) expireSweeps(ctx context.Context, keep berth.Retention) (bool, error) {
	if keep.Sweeps <= 0 {
		return false, nil
	}

	return each(s.q.OldSweeps(ctx, s.pool, keep.Sweeps, retainSweeps))(func(id string) error {
		err := s.DeleteSweep(ctx, id)
		if kind := berth.KindOf(err); kind == berth.KindNotFound || kind == berth.KindConflict { // a person was faster
			return nil
		}

		return err
	})
}

// purgeSweeps removes the rows of deleted sweeps, after the hosts were asked
// to remove the files.
func (s *Store) purgeSweeps(ctx context.Context, _ berth.Retention) (bool, error) {
	more := false

	_, err := each(s.q.DeletedSweeps(ctx, s.pool, retainSweeps))(func(id string) error {
		if _, err := s.q.AskOutputRemoval(ctx, s.pool, id, deletedWhy); err != nil {
			return translate(err, "asking for the removal of the files of sweep "+id)
		}

		for _, part := range []func() (int64, error){
			func() (int64, error) { return s.q.DeleteSweepLogs(ctx, s.pool, id, retainStep) },
			func() (int64, error) { return s.q.DeleteSweepMetrics(ctx, s.pool, id, retainStep) },
			func() (int64, error) { return s.q.DeleteSweepTrials(ctx, s.pool, id, retainTrials) },
		} {
			rows, err := part()
			if err != nil || rows > 0 {
				more = true

				return translate(err, "removing rows of sweep "+id)
			}
		}

		_, err := s.q.DeleteSweepRow(ctx, s.pool, id)

		return translate(err, "removing sweep "+id)
	})

	return more, err
}

// expireOutputs has the files of sweeps removed that ended too long ago.
func (s *Store) expireOutputs(ctx context.Context, keep berth.Retention) (bool, error) {
	if keep.Outputs <= 0 {
		return false, nil
	}

	why := fmt.Sprintf("files are kept for %.4g days after the end of their sweep (--keep-outputs)", keep.Outputs.Hours()/24)

	return each(s.q.SweepsWithOldOutputs(ctx, s.pool, keep.Outputs, retainSweeps))(func(id string) error {
		return s.inTx(ctx, "asking for the removal of the files of sweep "+id, func(tx pgx.Tx) error {
			rows, err := s.q.AskOutputRemoval(ctx, tx, id, why)
			if err != nil || rows == 0 {
				return err
			}

			return s.noteOutputs(ctx, tx, id, "all trials: "+why)
		})
	})
}

// noteOutputs records that files of a sweep are removed which no person deleted.
func (s *Store) noteOutputs(ctx context.Context, tx pgx.Tx, sweepID, what string) error {
	if err := s.q.InsertAudit(ctx, tx, &dbsqlc.InsertAuditParams{
		Actor: "berth", Action: "REMOVE", Object: "/sweeps/" + sweepID + "/outputs", Result: what,
	}); err != nil {
		return err
	}

	return s.notify(ctx, tx, berth.Event{Kind: "sweep.outputs_removed", SweepID: sweepID, Subject: sweepID, Data: what})
}

// part is what a sweep has of one kind, as far as limits go.
type part struct {
	keep   time.Duration // after the end of its sweep; 0 = for ever
	most   int64         // of all ended sweeps, in the unit of size; 0 = without limit
	old    func(ctx context.Context, db dbsqlc.DBTX, keep time.Duration, maxRows int32) ([]string, error)
	remove func(ctx context.Context, db dbsqlc.DBTX, sweepID string, maxRows int32) (int64, error)
	mark   func(ctx context.Context, db dbsqlc.DBTX, sweepID string) error
	size   func(ctx context.Context, db dbsqlc.DBTX, sweepID string) (int64, error)
	gone   func(dbsqlc.EndedSweepsRow) bool
}

func (s *Store) expireLogs(ctx context.Context, keep berth.Retention) (bool, error) {
	return s.expire(ctx, part{
		keep: keep.Logs, most: keep.LogBytes,
		old: s.q.SweepsWithOldLogs, remove: s.q.DeleteSweepLogs, mark: s.q.MarkLogsRemoved, size: s.q.SweepLogBytes,
		gone: func(row dbsqlc.EndedSweepsRow) bool { return row.LogsRemovedAt != nil },
	})
}

func (s *Store) expireMetrics(ctx context.Context, keep berth.Retention) (bool, error) {
	return s.expire(ctx, part{
		keep: keep.Metrics, most: keep.MetricPoints,
		old: s.q.SweepsWithOldMetrics, remove: s.q.DeleteSweepMetrics, mark: s.q.MarkMetricsRemoved, size: s.q.SweepMetricPoints,
		gone: func(row dbsqlc.EndedSweepsRow) bool { return row.MetricsRemovedAt != nil },
	})
}

// expire removes a part of the sweeps that are too old, and of those that the
// newer ones leave no room for.
func (s *Store) expire(ctx context.Context, p part) (more bool, err error) {
	var old, excess []string

	if p.keep > 0 {
		old, err = p.old(ctx, s.pool, p.keep, retainSweeps)
	}

	if err == nil && p.most > 0 {
		excess, err = s.excess(ctx, p)
	}

	_, err = each(append(old, excess...), err)(func(id string) error {
		rows, err := p.remove(ctx, s.pool, id, retainStep)
		if err != nil || rows > 0 {
			more = more || rows > 0

			return translate(err, "removing old rows of sweep "+id)
		}

		return translate(p.mark(ctx, s.pool, id), "marking sweep "+id)
	})

	return more, err
}

// excess are the ended sweeps, from the newest on, with which a part is larger
// than its limit.
func (s *Store) excess(ctx context.Context, p part) (ids []string, err error) {
	total := int64(0)

	for before := time.Now().UTC().AddDate(1, 0, 0); ; {
		rows, err := s.q.EndedSweeps(ctx, s.pool, before, retainSweeps)
		if err != nil {
			return nil, err
		}

		for _, row := range rows {
			if p.gone(row) {
				continue
			}

			size, err := p.size(ctx, s.pool, row.ID)
			if err != nil {
				return nil, err
			}

			if total += size; total > p.most {
				ids = append(ids, row.ID)
			}
		}

		if len(rows) < retainSweeps || len(ids) > 0 {
			return ids, nil
		}

		before = *rows[len(rows)-1].FinishedAt
	}
}

func (s *Store) pruneAudit(ctx context.Context, keep berth.Retention) (bool, error) {
	return prune(keep.Audit, keep.AuditRows,
		func() (int64, error) { return s.q.DeleteOldAudit(ctx, s.pool, keep.Audit, retainStep) },
		func() (int64, error) { return s.q.DeleteExcessAudit(ctx, s.pool, keep.AuditRows, retainStep) })
}

func (s *Store) pruneEvents(ctx context.Context, keep berth.Retention) (bool, error) {
	return prune(keep.Events, keep.EventRows,
		func() (int64, error) { return s.q.DeleteOldEvents(ctx, s.pool, keep.Events, retainStep) },
		func() (int64, error) { return s.q.DeleteExcessEvents(ctx, s.pool, keep.EventRows, retainStep) })
}

func (s *Store) pruneKeys(ctx context.Context, _ berth.Retention) (bool, error) {
	_, err := s.q.DeleteOldIdempotencyKeys(ctx, s.pool, keysKept)

	return false, translate(err, "deleting old idempotency keys")
}

// prune deletes rows that are too old, and those that are too many.
func prune(age time.Duration, most int64, old, excess func() (int64, error)) (more bool, err error) {
	if age > 0 {
		rows, err := old()
		if err != nil {
			return false, translate(err, "deleting old rows")
		}

		more = rows == retainStep
	}

	if most > 0 {
		rows, err := excess()
		if err != nil {
			return false, translate(err, "deleting rows above the limit")
		}

		more = more || rows == retainStep
	}

	return more, nil
}

// each calls do for every sweep and says whether there may be more of them. One
// that fails keeps no other from it.
func each(ids []string, err error) func(do func(id string) error) (bool, error) {
	return func(do func(id string) error) (bool, error) {
		if err != nil {
			return false, translate(err, "looking for what is over its limit")
		}

		var all error
		for _, id := range ids {
			all = errors.Join(all, do(id))
		}

		return len(ids) == retainSweeps, all
	}
}

// OutputRemovals are attempts whose files a host still has to remove, at most limit.
func (s *Store) OutputRemovals(ctx context.Context, hostID string, limit int) ([]berth.OutputRemoval, error) {
	rows, err := s.q.OutputRemovals(ctx, s.pool, hostID, int32Of(limit))
	if err != nil {
		return nil, translate(err, "reading which files to remove")
	}

	return convertAll(rows, func(row dbsqlc.OutputRemovalsRow) (berth.OutputRemoval, error) {
		return berth.OutputRemoval{AttemptID: row.AttemptID, TrialID: row.TrialID}, nil
	})
}

// OutputsRemoved records the attempts whose files a host has removed, and those
// whose files it could not remove: these are asked for again, after all others.
func (s *Store) OutputsRemoved(ctx context.Context, hostID string, removed, failed []string) error {
	err := s.q.OutputsRemoved(ctx, s.pool, hostID, removed)
	if err == nil && len(failed) > 0 {
		err = s.q.DeferOutputs(ctx, s.pool, hostID, failed)
	}

	return translate(err, "noting which files were removed")
}

// OldestOutputs are trials of ended sweeps whose files a host may have, at most
// limit: those of the sweep that ended first come first. They begin behind
// after; nil = with the first.
func (s *Store) OldestOutputs(ctx context.Context, hostID string, after *berth.TrialOutputs, limit int) ([]berth.TrialOutputs, error) {
	params := dbsqlc.OldestOutputsParams{HostID: hostID, AfterSweep: noID, MaxRows: int32Of(limit)}
	if after != nil {
		params.AfterTime, params.AfterSweep, params.AfterNumber = after.EndedAt, after.SweepID, int32Of(after.Number)
	}

	rows, err := s.q.OldestOutputs(ctx, s.pool, &params)
	if err != nil {
		return nil, translate(err, "looking for the oldest files of host "+hostID)
	}

	return convertAll(rows, func(row dbsqlc.OldestOutputsRow) (berth.TrialOutputs, error) {
		return berth.TrialOutputs{
			SweepID: row.SweepID, TrialID: row.TrialID, Number: int(row.Number), AttemptIDs: row.AttemptIds,
			EndedAt: *row.FinishedAt, EndedFor: time.Duration(row.EndedSeconds * float64(time.Second)),
		}, nil
	})
}

// ExpireOutputs asks a host to remove its files of these trials, says why with
// each attempt, and records it. Trials of sweeps that go on are left out.
func (s *Store) ExpireOutputs(ctx context.Context, hostID string, trialIDs []string, why string) error {
	return s.inTx(ctx, "asking for the removal of files of host "+hostID, func(tx pgx.Tx) error {
		sweeps, err := s.q.ExpireOutputs(ctx, tx, &dbsqlc.ExpireOutputsParams{HostID: hostID, TrialIds: trialIDs, Why: why})
		if err != nil {
			return err
		}

		for _, sweep := range sweeps {
			if err := s.noteOutputs(ctx, tx, sweep.SweepID, fmt.Sprintf("%d trials: %s", sweep.Trials, why)); err != nil {
				return err
			}
		}

		return nil
	})
}
