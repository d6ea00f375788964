package postgres

import (
	"context"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
)

// retainCheckpoints is how many checkpoints one step deletes, each with up to 10,000 entries.
const retainCheckpoints = 20

// SetHostCheckpoints notes whether a host's worker stores checkpoints. If it does,
// attempts on other hosts wait a while for the host's checkpoints.
func (s *Store) SetHostCheckpoints(ctx context.Context, hostID string, stores bool) error {
	return translate(s.q.SetHostCheckpoints(ctx, s.pool, stores, hostID), "noting whether host "+hostID+" stores checkpoints")
}

// EarlierCheckpoints returns the checkpoints of the attempts before this one,
// newest first, without short probes.
func (s *Store) EarlierCheckpoints(ctx context.Context, attemptID string) ([]berth.EarlierCheckpoint, error) {
	rows, err := s.q.ListEarlierCheckpoints(ctx, s.pool, berth.CheckpointSilence, attemptID)
	if err != nil {
		return nil, translate(err, "looking for checkpoints before attempt "+attemptID)
	}

	return convertAll(rows, func(row dbsqlc.ListEarlierCheckpointsRow) (berth.EarlierCheckpoint, error) {
		e := berth.EarlierCheckpoint{
			AttemptID: row.ID, Number: int(row.Number), HostID: row.HostID, Host: row.HostName, Ran: row.Ran, Took: time.Duration(row.TookSeconds * float64(time.Second)),
			Left: row.CheckpointLeft, Coming: row.Coming, GivenUp: row.GivenUp, Problem: row.CheckpointProblem,
		}
		if row.CheckpointID != "" {
			e.Stored = &berth.StoredCheckpoint{ID: row.CheckpointID, Bytes: row.Bytes, StoredAt: row.StoredAt.UTC()}
		}

		return e, nil
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

	rows, err := s.q.CheckpointsToStore(ctx, s.pool, hostID, int32Of(limit))
	if err != nil {
		return nil, translate(err, "looking for checkpoints to store of host "+hostID)
	}

	return convertAll(rows, func(row dbsqlc.CheckpointsToStoreRow) (berth.AttemptCheckpoint, error) {
		return berth.AttemptCheckpoint{AttemptID: row.ID, TrialID: row.TrialID, Token: row.Token}, nil
	})
}

// SettleCheckpoint notes that the checkpoint of an ended attempt is stored, or with
// a problem why it will not be. It does not change a settled one.
func (s *Store) SettleCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, problem string) error {
	return translate(s.q.SettleCheckpoint(ctx, s.pool, &dbsqlc.SettleCheckpointParams{ID: of.AttemptID, Token: of.Token, Problem: problem}),
		"settling the checkpoint of attempt "+of.AttemptID)
}

// BeginCheckpoint names the objects of a checkpoint before they are stored, and drops the unfinished
// checkpoints of the attempt and of ended attempts before it. It returns the objects that these named.
// Errors: fenced when the attempt is not its host's any more, or its trial is over.
func (s *Store) BeginCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint, entries []berth.CheckpointEntry) (dropped []berth.Digest, err error) {
	params := &dbsqlc.NameCheckpointParams{ID: id}
	bytes := int64(0)

	for _, e := range entries {
		digest := []byte{}
		if fs.FileMode(e.Mode).IsRegular() {
			digest = e.Digest[:]
		}

		params.Paths, params.Modes, params.Changed = append(params.Paths, e.Path), append(params.Modes, int64(e.Mode)), append(params.Changed, e.Changed.UnixNano())
		params.Uids, params.Gids = append(params.Uids, int32Of(e.UID)), append(params.Gids, int32Of(e.GID))
		params.Sizes, params.Digests, params.Targets = append(params.Sizes, e.Bytes), append(params.Digests, digest), append(params.Targets, e.Target)
		bytes += e.Bytes
	}

	err = s.inTx(ctx, "naming a checkpoint of attempt "+of.AttemptID, func(tx pgx.Tx) error {
		if err := s.q.ShareArtifacts(ctx, tx); err != nil {
			return err
		}

		rows, err := s.q.BeginCheckpoint(ctx, tx, &dbsqlc.BeginCheckpointParams{ID: id, AttemptID: of.AttemptID, Token: of.Token, Bytes: bytes})
		if err := fencedError(rows, err, of.AttemptID, of.Token); err != nil {
			return err
		}

		if err := s.q.NameCheckpoint(ctx, tx, params); err != nil {
			return err
		}

		if err := s.q.ForgetUnnamed(ctx, tx, params.Digests); err != nil {
			return err
		}

		half, err := s.q.HalfCheckpoints(ctx, tx, of.AttemptID, id)
		if err != nil {
			return err
		}

		dropped, err = s.dropCheckpoints(ctx, tx, half)

		return err
	})

	return dropped, err
}

// FinishCheckpoint notes that a checkpoint is whole in the store. It keeps the trial's
// newest one, and the ones that later attempts have begun, and returns the objects that
// the others named. Errors: fenced.
func (s *Store) FinishCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint) (dropped []berth.Digest, err error) {
	err = s.inTx(ctx, "finishing a checkpoint of attempt "+of.AttemptID, func(tx pgx.Tx) error {
		trials, err := s.q.FinishCheckpoint(ctx, tx, id, of.Token)
		if err := fencedError(int64(len(trials)), err, of.AttemptID, of.Token); err != nil {
			return err
		}

		old, err := s.q.SupersededCheckpoints(ctx, tx, trials[0])
		if err != nil {
			return err
		}

		dropped, err = s.dropCheckpoints(ctx, tx, old)

		return err
	})

	return dropped, err
}

func (s *Store) dropCheckpoints(ctx context.Context, tx pgx.Tx, ids []string) ([]berth.Digest, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	rows, err := s.q.DropCheckpoints(ctx, tx, ids)
	if err != nil {
		return nil, err
	}

	return convertAll(rows, func(row []byte) (berth.Digest, error) { return berth.Digest(row), nil })
}

// ListCheckpoint reads the entries of a whole checkpoint by path; a directory comes
// before its entries. Errors: not_found when it is superseded.
func (s *Store) ListCheckpoint(ctx context.Context, id string) ([]berth.CheckpointEntry, error) {
	rows, err := s.q.ListCheckpoint(ctx, s.pool, id)
	if err != nil {
		return nil, translate(err, "reading checkpoint "+id)
	}

	if len(rows) == 0 {
		return nil, berth.Errorf(berth.KindNotFound, "reading checkpoint %s: it is not in the store any more", id)
	}

	return convertAll(rows, func(row dbsqlc.ListCheckpointRow) (berth.CheckpointEntry, error) {
		e := berth.CheckpointEntry{
			Path: row.Path, Mode: uint32(row.Mode), UID: int(row.Uid), GID: int(row.Gid), //nolint:gosec // G115: as BeginCheckpoint wrote it
			Changed: time.Unix(0, row.ChangedNs), Bytes: row.Bytes, Target: row.Target,
		}
		if len(row.Sha256) == len(e.Digest) {
			e.Digest = berth.Digest(row.Sha256)
		}

		return e, nil
	})
}

// pruneCheckpoints deletes the checkpoints of finished trials.
func (s *Store) pruneCheckpoints(ctx context.Context, _ berth.Retention, _ look) (bool, error) {
	rows, err := s.q.DeleteOverCheckpoints(ctx, s.pool, retainCheckpoints)

	return rows > 0, translate(err, "deleting checkpoints of trials that are over")
}
