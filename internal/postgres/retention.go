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
	// outputs is what files are called in events and the audit log.
	outputs = "outputs"
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

		if err := s.q.DeleteSweepKeys(ctx, tx, id); err != nil { // the same submission makes a new sweep
			return err
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

			return s.noteRemoved(ctx, tx, id, outputs, "all trials: "+why)
		})
	})
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

// part is what a sweep has of one kind, as far as limits go.
type part struct {
	name  string        // of its event
	age   string        // flag of keep
	limit string        // why what is above most goes
	keep  time.Duration // after the end of its sweep; 0 = for ever
	most  int64         // of all ended sweeps, in the unit of size; 0 = without limit
	old   func(ctx context.Context, db dbsqlc.DBTX, keep time.Duration, maxRows int32) ([]string, error)
	size  func(ctx context.Context, db dbsqlc.DBTX, sweepID string) (int64, error)
	gone  func(dbsqlc.EndedSweepsRow) bool

	mark    func(ctx context.Context, db dbsqlc.DBTX, why, sweepID string) ([]string, error)
	toPurge func(ctx context.Context, db dbsqlc.DBTX, maxRows int32) ([]string, error)
	remove  func(ctx context.Context, db dbsqlc.DBTX, sweepID string, maxRows int32) (int64, error)
	purged  func(ctx context.Context, db dbsqlc.DBTX, sweepID string) error
}

func (s *Store) expireLogs(ctx context.Context, keep berth.Retention) (bool, error) {
	return s.expire(ctx, part{
		name: "logs", keep: keep.Logs, age: "--keep-logs", most: keep.LogBytes,
		limit: "logs of all ended sweeps may take " + berth.BytesText(keep.LogBytes) + " (--keep-log-bytes); the oldest go first",
		old:   s.q.SweepsWithOldLogs, size: s.q.SweepLogBytes,
		gone: func(row dbsqlc.EndedSweepsRow) bool { return row.LogsRemovedAt != nil },
		mark: s.q.MarkLogsRemoved, toPurge: s.q.SweepsToPurgeOfLogs, remove: s.q.DeleteSweepLogs, purged: s.q.LogsPurged,
	})
}

func (s *Store) expireMetrics(ctx context.Context, keep berth.Retention) (bool, error) {
	return s.expire(ctx, part{
		name: "metrics", keep: keep.Metrics, age: "--keep-metrics", most: keep.MetricPoints,
		limit: fmt.Sprintf("%d metric points of all ended sweeps are kept (--keep-metric-points); the oldest go first", keep.MetricPoints),
		old:   s.q.SweepsWithOldMetrics, size: s.q.SweepMetricPoints,
		gone: func(row dbsqlc.EndedSweepsRow) bool { return row.MetricsRemovedAt != nil },
		mark: s.q.MarkMetricsRemoved, toPurge: s.q.SweepsToPurgeOfMetrics, remove: s.q.DeleteSweepMetrics, purged: s.q.MetricsPurged,
	})
}

// expire marks the sweeps that are too old, and those that the newer ones leave
// no room for, and removes a part of all marked sweeps. A mark stays: half of a
// sweep's rows would be taken for all of them.
func (s *Store) expire(ctx context.Context, p part) (more bool, err error) {
	if p.keep > 0 {
		why := fmt.Sprintf("%s are kept for %.4g days after the end of their sweep (%s)", p.name, p.keep.Hours()/24, p.age)
		ids, oldErr := p.old(ctx, s.pool, p.keep, retainSweeps)
		more, err = each(ids, oldErr)(func(id string) error { return s.mark(ctx, p, id, why) })
	}

	if p.most > 0 {
		ids, excessErr := s.excess(ctx, p)
		_, markErr := each(ids, excessErr)(func(id string) error { return s.mark(ctx, p, id, p.limit) })
		err = errors.Join(err, markErr)
	}

	ids, listErr := p.toPurge(ctx, s.pool, retainSweeps)
	again, purgeErr := each(ids, listErr)(func(id string) error {
		rows, err := p.remove(ctx, s.pool, id, retainStep)
		if err != nil || rows > 0 {
			more = more || rows > 0

			return translate(err, "removing "+p.name+" of sweep "+id)
		}

		return translate(p.purged(ctx, s.pool, id), "noting that sweep "+id+" has no "+p.name)
	})

	return more || again, errors.Join(err, purgeErr)
}

// mark says that a part of a sweep goes, once, and only when there is any.
func (s *Store) mark(ctx context.Context, p part, sweepID, why string) error {
	return s.inTx(ctx, "marking sweep "+sweepID, func(tx pgx.Tx) error {
		marked, err := p.mark(ctx, tx, why, sweepID)
		if err != nil || len(marked) == 0 || marked[0] == "" {
			return err
		}

		return s.noteRemoved(ctx, tx, sweepID, p.name, why)
	})
}

// Removed says why the log and the metrics of an attempt were removed.
// Errors: not_found.
func (s *Store) Removed(ctx context.Context, attemptID string) (berth.Removed, error) {
	row, err := s.q.GetRemoved(ctx, s.pool, attemptID)

	return berth.Removed{Logs: row.LogsRemovedWhy, Metrics: row.MetricsRemovedWhy}, translate(err, "asking what was removed of attempt "+attemptID)
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
			if err := s.noteRemoved(ctx, tx, sweep.SweepID, outputs, fmt.Sprintf("%d trials: %s", sweep.Trials, why)); err != nil {
				return err
			}
		}

		return nil
	})
}
