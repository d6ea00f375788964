package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// retainCheckpoints is how many checkpoints one step deletes.
const retainCheckpoints = 1000

// SetHostCheckpoints notes whether a host's worker stores checkpoints. If it does,
// attempts on other hosts wait a while for the host's checkpoints.
func (s *Store) SetHostCheckpoints(ctx context.Context, hostID string, stores bool) error {
	return translate(s.q.SetHostCheckpoints(ctx, s.pool, stores, hostID), "noting whether host "+hostID+" stores checkpoints")
}

// EarlierCheckpoints returns the checkpoints of the attempts before this one,
// newest first, without short probes.
func (s *Store) EarlierCheckpoints(ctx context.Context, attemptID string) ([]berth.EarlierCheckpoint, error) {
	rows, err := s.q.ListEarlierCheckpoints(ctx, s.pool, berth.CheckpointSilence, attemptID)

	return collect(rows, err, "looking for checkpoints before attempt "+attemptID, func(row dbsqlc.ListEarlierCheckpointsRow) berth.EarlierCheckpoint {
		e := berth.EarlierCheckpoint{
			AttemptID: row.ID, Number: row.Number, HostID: row.HostID, Host: row.HostName, Ran: row.Ran, Took: row.Took,
			Left: row.CheckpointLeft, Coming: row.Coming, GivenUp: row.GivenUp, Problem: row.CheckpointProblem,
		}
		if len(row.Sha256) == len(berth.Digest{}) {
			e.Stored = &berth.StoredCheckpoint{Digest: berth.Digest(row.Sha256), Bytes: row.Bytes, StoredAt: row.StoredAt}
		}

		return e
	})
}

// NoteResumed stores from which checkpoint an attempt goes on. Errors: fenced.
func (s *Store) NoteResumed(ctx context.Context, attemptID string, token int64, text string) error {
	rows, err := s.q.NoteResumed(ctx, s.pool, &dbsqlc.NoteResumedParams{ID: attemptID, Token: token, Resumed: text})

	return fencedError(rows, err, attemptID, token)
}

// CheckpointsToStore are attempts of a host that have ended, are to be run again,
// and left a checkpoint that is to be stored, at most limit.
func (s *Store) CheckpointsToStore(ctx context.Context, hostID string, limit int) ([]berth.AttemptCheckpoint, error) {
	if err := s.q.SettleOverCheckpoints(ctx, s.pool, hostID); err != nil {
		return nil, translate(err, "settling checkpoints of host "+hostID)
	}

	rows, err := s.q.CheckpointsToStore(ctx, s.pool, hostID, limit)

	return collect(rows, err, "looking for checkpoints to store of host "+hostID, func(row dbsqlc.CheckpointsToStoreRow) berth.AttemptCheckpoint {
		return berth.AttemptCheckpoint(row)
	})
}

// SettleCheckpoint notes that the checkpoint of an ended attempt is stored, or with
// a problem why it will not be. It does not change a settled one.
func (s *Store) SettleCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, problem string) error {
	return translate(s.q.SettleCheckpoint(ctx, s.pool, &dbsqlc.SettleCheckpointParams{ID: of.AttemptID, Token: of.Token, Problem: problem}),
		"settling the checkpoint of attempt "+of.AttemptID)
}

// BeginCheckpoint names the archive of a checkpoint before it is stored. Errors: fenced
// when the attempt is not its host's any more, or its trial is over.
func (s *Store) BeginCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, archive berth.StoredCheckpoint) error {
	return s.inTx(ctx, "naming a checkpoint of attempt "+of.AttemptID, func(tx pgx.Tx) error {
		if err := s.q.ShareArtifacts(ctx, tx); err != nil {
			return err
		}

		rows, err := s.q.BeginCheckpoint(ctx, tx, &dbsqlc.BeginCheckpointParams{
			AttemptID: of.AttemptID, Token: of.Token, Sha256: archive.Digest[:], Bytes: archive.Bytes,
		})
		if err := fencedError(rows, err, of.AttemptID, of.Token); err != nil {
			return err
		}

		return s.q.ForgetUnnamed(ctx, tx, [][]byte{archive.Digest[:]})
	})
}

// FinishCheckpoint notes that a checkpoint is whole in the store. It drops the older
// checkpoints of the trial, and returns their objects. Errors: fenced.
func (s *Store) FinishCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, archive berth.Digest) (replaced []berth.Digest, err error) {
	err = s.inTx(ctx, "finishing a checkpoint of attempt "+of.AttemptID, func(tx pgx.Tx) error {
		rows, err := s.q.FinishCheckpoint(ctx, tx, &dbsqlc.FinishCheckpointParams{AttemptID: of.AttemptID, Sha256: archive[:], Token: of.Token})
		if err := fencedError(rows, err, of.AttemptID, of.Token); err != nil {
			return err
		}

		old, err := s.q.ReplaceCheckpoints(ctx, tx, of.AttemptID, archive[:])
		replaced = convertAll(old, toDigest)

		return err
	})

	return replaced, err
}
