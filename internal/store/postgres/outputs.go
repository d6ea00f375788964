package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// expireOutputs has the files of sweeps removed that ended too long ago.
func (s *Store) expireOutputs(ctx context.Context, keep berth.Retention, l look) (bool, error) {
	if keep.Outputs <= 0 {
		return false, nil
	}

	why := fmt.Sprintf("files are kept for %.4g days after the end of their sweep (--keep-outputs)", keep.Outputs.Hours()/24)
	ids, err := s.q.SweepsWithOldOutputs(ctx, s.pool, &dbsqlc.SweepsWithOldOutputsParams{
		Keep: keep.Outputs, FetchTime: berth.FetchTime, MaxRows: retainSweeps,
	})

	return l.each(ctx, "files of sweep", ids, func(id string) (bool, error) {
		return true, s.inTx(ctx, "asking for the removal of the files of sweep "+id, func(tx pgx.Tx) error {
			asked, err := s.askOutputRemoval(ctx, tx, id, allTrials, why)

			rows := int64(retainStep) // that name stored files; first all attempts say that theirs are removed
			if err == nil && asked < retainStep {
				rows, err = s.deleteSweepFiles(ctx, tx, id, allTrials)
			}

			if err == nil && rows < retainStep {
				err = s.q.MarkOutputsRemoved(ctx, tx, id)
			}

			if err != nil || asked == 0 {
				return err
			}

			return s.noteRemoved(ctx, tx, id, outputs, fmt.Sprintf("%d attempts: %s", asked, why))
		})
	}), translate(err, "looking for old files")
}

// askOutputRemoval asks the hosts to remove the files of some attempts of a
// sweep's first trials, and returns of how many.
func (s *Store) askOutputRemoval(ctx context.Context, db dbsqlc.DBTX, sweepID string, trials int, why string) (int64, error) {
	return s.q.AskOutputRemoval(ctx, db, &dbsqlc.AskOutputRemovalParams{SweepID: sweepID, Why: why, MaxTrials: trials, MaxRows: retainStep})
}

// deleteSweepFiles forgets some stored files of a sweep's first trials.
func (s *Store) deleteSweepFiles(ctx context.Context, db dbsqlc.DBTX, sweepID string, trials int) (int64, error) {
	return s.q.DeleteSweepFiles(ctx, db, &dbsqlc.DeleteSweepFilesParams{SweepID: sweepID, MaxTrials: trials, MaxRows: retainStep})
}

// OutputRemovals are attempts whose files a host still has to remove, at most limit.
func (s *Store) OutputRemovals(ctx context.Context, hostID string, limit int) ([]berth.OutputRemoval, error) {
	rows, err := s.q.OutputRemovals(ctx, s.pool, hostID, limit)

	return collect(rows, err, "reading which files to remove", func(row dbsqlc.OutputRemovalsRow) berth.OutputRemoval { return berth.OutputRemoval(row) })
}

// OutputsRemoved records the attempts whose files a host has removed, and the
// attempts whose files it could not remove: it gets these again, after all
// others.
func (s *Store) OutputsRemoved(ctx context.Context, hostID string, removed, failed []string) error {
	err := s.q.OutputsRemoved(ctx, s.pool, hostID, removed)
	if err == nil && len(failed) > 0 {
		err = s.q.DeferOutputs(ctx, s.pool, hostID, failed)
	}

	return translate(err, "noting which files were removed")
}

// OldestOutputs returns up to limit trials of ended sweeps whose files a host
// may have, by the end of their sweep, oldest first; files that wait for the store
// come last.
func (s *Store) OldestOutputs(ctx context.Context, hostID string, limit int) ([]berth.TrialOutputs, error) {
	rows, err := s.q.OldestOutputs(ctx, s.pool, hostID, limit)

	return collect(rows, err, "looking for the oldest files of host "+hostID, func(row dbsqlc.OldestOutputsRow) berth.TrialOutputs { return berth.TrialOutputs(row) })
}

// ExpireOutputs asks a host to remove its files of these trials, says why with
// each attempt, and records it. Trials of sweeps that go on are left out.
func (s *Store) ExpireOutputs(ctx context.Context, hostID string, trialIDs []string, why string) error {
	return s.inTx(ctx, "asking for the removal of files of host "+hostID, func(tx pgx.Tx) error {
		sweeps, err := s.q.ExpireOutputs(ctx, tx, &dbsqlc.ExpireOutputsParams{HostID: hostID, TrialIDs: trialIDs, Why: why})
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
