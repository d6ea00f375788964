package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
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
	// retainCounts is how many ended sweeps one call counts.
	retainCounts = 10
	// countTimeout bounds the count of one sweep, which no person waits for: tens of
	// millions of points.
	countTimeout = "30s"
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

	for _, step := range []struct {
		what string
		do   func(context.Context, berth.Retention, look) (bool, error)
	}{ // the slowest come last
		{"audit log", s.pruneAudit},
		{"events", s.pruneEvents},
		{"idempotency keys", s.pruneKeys},
		{"sessions", s.pruneSessions},
		{"paces", s.prunePaces},
		{"points of machines", s.pruneMachines},
		{"checkpoints", s.pruneCheckpoints},
		{"sweeps", s.expireSweeps},
		{"outputs", s.expireOutputs},
		{"logs", s.expireLogs},
		{"metrics", s.expireMetrics},
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
			func() (int64, error) { return s.deleteSweepLogs(ctx, id, retainTrials) },
			func() (int64, error) { return s.deleteSweepMetrics(ctx, id, retainTrials) },
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

// part is what a sweep has of one kind, as far as limits go.
type part struct {
	name  string        // of its event
	age   string        // flag of keep
	limit string        // why what is above most goes
	keep  time.Duration // after the end of its sweep; 0 = for ever
	most  int64         // of all ended sweeps, in the unit of size; 0 = without limit
	old   func(ctx context.Context, db dbsqlc.DBTX, keep time.Duration, maxRows int32) ([]string, error)
	count func(ctx context.Context, db dbsqlc.DBTX, sweepID string) error
	size  func(dbsqlc.SizedSweepsRow) (size *int64, removed *time.Time) // nil = not counted; not removed

	mark    func(ctx context.Context, db dbsqlc.DBTX, why, sweepID string) ([]string, error)
	toPurge func(ctx context.Context, db dbsqlc.DBTX, maxRows int32) ([]string, error)
	remove  func(ctx context.Context, sweepID string, trials int32) (int64, error)
	purged  func(ctx context.Context, db dbsqlc.DBTX, sweepID string) error
}

func (s *Store) expireLogs(ctx context.Context, keep berth.Retention, l look) (bool, error) {
	return s.expire(ctx, l, part{
		name: "logs", keep: keep.Logs, age: "--keep-logs", most: keep.LogBytes,
		limit: "logs of all ended sweeps may take " + berth.BytesText(keep.LogBytes) + " (--keep-log-bytes); the newest that fit are kept",
		old:   s.q.SweepsWithOldLogs, count: s.q.CountLogBytes,
		size: func(row dbsqlc.SizedSweepsRow) (*int64, *time.Time) { return row.LogBytes, row.LogsRemovedAt },
		mark: s.q.MarkLogsRemoved, toPurge: s.q.SweepsToPurgeOfLogs, remove: s.deleteSweepLogs, purged: s.q.LogsPurged,
	})
}

func (s *Store) expireMetrics(ctx context.Context, keep berth.Retention, l look) (bool, error) {
	return s.expire(ctx, l, part{
		name: "metrics", keep: keep.Metrics, age: "--keep-metrics", most: keep.MetricPoints,
		limit: fmt.Sprintf("%d metric points of all ended sweeps are kept (--keep-metric-points): the newest that fit", keep.MetricPoints),
		old:   s.q.SweepsWithOldMetrics, count: s.q.CountMetricPoints,
		size: func(row dbsqlc.SizedSweepsRow) (*int64, *time.Time) { return row.MetricPoints, row.MetricsRemovedAt },
		mark: s.q.MarkMetricsRemoved, toPurge: s.q.SweepsToPurgeOfMetrics, remove: s.deleteSweepMetrics, purged: s.q.MetricsPurged,
	})
}

// deleteSweepLogs removes some of what the first trials of a sweep printed.
func (s *Store) deleteSweepLogs(ctx context.Context, sweepID string, trials int32) (int64, error) {
	return s.q.DeleteSweepLogs(ctx, s.pool, &dbsqlc.DeleteSweepLogsParams{SweepID: sweepID, MaxTrials: trials, MaxRows: retainStep})
}

// deleteSweepMetrics removes some metric points of a sweep's first trials, then of their points of memory.
func (s *Store) deleteSweepMetrics(ctx context.Context, sweepID string, trials int32) (int64, error) {
	rows, err := s.q.DeleteSweepMetrics(ctx, s.pool, &dbsqlc.DeleteSweepMetricsParams{SweepID: sweepID, MaxTrials: trials, MaxRows: retainPoints})
	if err != nil || rows > 0 {
		return rows, err
	}

	return s.q.DeleteSweepMemoryPoints(ctx, s.pool, &dbsqlc.DeleteSweepMemoryPointsParams{SweepID: sweepID, MaxTrials: trials, MaxRows: retainPoints})
}

// expire marks the sweeps that are too old, and those that the newer ones leave
// no room for, and removes a part of all marked sweeps. A mark stays: half of a
// sweep's rows would be taken for all of them.
func (s *Store) expire(ctx context.Context, l look, p part) (more bool, err error) {
	if p.keep > 0 {
		why := fmt.Sprintf("%s are kept for %.4g days after the end of their sweep (%s)", p.name, p.keep.Hours()/24, p.age)

		ids, err := p.old(ctx, s.pool, p.keep, retainSweeps)
		if err != nil {
			return false, translate(err, "looking for old "+p.name)
		}

		more = l.each(ctx, p.name+" of sweep", ids, func(id string) (bool, error) { return true, s.mark(ctx, p, id, why) })
	}

	if p.most > 0 {
		ids, uncounted, err := s.excess(ctx, p)
		if err != nil {
			return more, translate(err, "looking for the largest "+p.name)
		}

		more = l.each(ctx, p.name+" of sweep", uncounted, func(id string) (bool, error) { return true, s.count(ctx, p, id) }) || more
		more = l.each(ctx, p.name+" of sweep", ids, func(id string) (bool, error) { return true, s.mark(ctx, p, id, p.limit) }) || more
	}

	ids, err := p.toPurge(ctx, s.pool, retainSweeps)

	return l.each(ctx, p.name+" of sweep", ids, func(id string) (bool, error) {
		rows, err := p.remove(ctx, id, allTrials)
		if err != nil || rows > 0 {
			return true, translate(err, "removing "+p.name+" of sweep "+id)
		}

		return true, translate(p.purged(ctx, s.pool, id), "noting that sweep "+id+" has no "+p.name)
	}) || more, translate(err, "looking for removed "+p.name)
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

// count stores what a sweep has of a part: after its end that does not change.
func (s *Store) count(ctx context.Context, p part, sweepID string) error {
	return s.inTx(ctx, "counting the "+p.name+" of sweep "+sweepID, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '"+countTimeout+"'"); err != nil {
			return err
		}

		return p.count(ctx, tx, sweepID)
	})
}

// Removed says why the log and the metrics of an attempt were removed.
// Errors: not_found.
func (s *Store) Removed(ctx context.Context, attemptID string) (berth.Removed, error) {
	row, err := s.q.GetRemoved(ctx, s.pool, attemptID)

	return berth.Removed{Logs: row.LogsRemovedWhy, Metrics: row.MetricsRemovedWhy}, translate(err, "asking what was removed of attempt "+attemptID)
}

// excess are the ended sweeps that do not fit within the limit beside the newer
// ones that do. A sweep that ended just now neither goes nor counts. While some
// are not counted yet, there are only these, a few of them.
func (s *Store) excess(ctx context.Context, p part) (ids, uncounted []string, err error) {
	rows, err := s.q.SizedSweeps(ctx, s.pool, berth.FetchTime)
	total := int64(0)

	for _, row := range rows {
		size, removed := p.size(row)

		switch {
		case removed != nil:
		case size == nil:
			uncounted = append(uncounted, row.ID)
		case total+*size <= p.most:
			total += *size
		default:
			ids = append(ids, row.ID)
		}
	}

	if len(uncounted) > 0 {
		return nil, uncounted[:min(len(uncounted), retainCounts)], err
	}

	return ids, nil, err
}

func (s *Store) pruneAudit(ctx context.Context, keep berth.Retention, _ look) (bool, error) {
	return prune("the audit log", keep.Audit, keep.AuditRows,
		func() (int64, error) { return s.q.DeleteOldAudit(ctx, s.pool, keep.Audit, retainStep) },
		func() (int64, error) { return s.q.DeleteExcessAudit(ctx, s.pool, keep.AuditRows, retainStep) })
}

func (s *Store) pruneEvents(ctx context.Context, keep berth.Retention, _ look) (bool, error) {
	return prune("events", keep.Events, keep.EventRows,
		func() (int64, error) { return s.q.DeleteOldEvents(ctx, s.pool, keep.Events, retainStep) },
		func() (int64, error) { return s.q.DeleteExcessEvents(ctx, s.pool, keep.EventRows, retainStep) })
}

func (s *Store) pruneKeys(ctx context.Context, _ berth.Retention, _ look) (bool, error) {
	_, err := s.q.DeleteOldIdempotencyKeys(ctx, s.pool, keysKept)

	return false, translate(err, "deleting old idempotency keys")
}

func (s *Store) pruneSessions(ctx context.Context, _ berth.Retention, _ look) (bool, error) {
	_, err := s.q.DeleteOldSessions(ctx, s.pool)

	return false, translate(err, "deleting old sessions")
}

func (s *Store) prunePaces(ctx context.Context, _ berth.Retention, _ look) (bool, error) {
	rows, err := s.q.DeleteOldPaces(ctx, s.pool, berth.PaceKept, retainStep)

	return rows == retainStep, translate(err, "deleting old paces")
}

// prune deletes rows that are too old, and those that are too many.
func prune(what string, age time.Duration, most int64, old, excess func() (int64, error)) (more bool, err error) {
	if age > 0 {
		rows, err := old()
		if err != nil {
			return false, translate(err, "deleting old rows of "+what)
		}

		more = rows == retainStep
	}

	if most > 0 {
		rows, err := excess()
		if err != nil {
			return false, translate(err, "deleting rows above the limit of "+what)
		}

		more = more || rows == retainStep
	}

	return more, nil
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
