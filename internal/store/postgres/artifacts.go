package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// StoreMarked reports whether a store of artifacts has had this installation's mark.
func (s *Store) StoreMarked(ctx context.Context, store string) (bool, error) {
	marked, err := s.q.StoreMarked(ctx, s.pool, store)

	return marked, translate(err, "looking whether the store "+store+" was in use")
}

// NoteStoreMark notes that a store of artifacts has this installation's mark.
func (s *Store) NoteStoreMark(ctx context.Context, store string) error {
	return translate(s.q.NoteStoreMark(ctx, s.pool, store), "noting that the store "+store+" is in use")
}

// SetHostStores notes whether a host's worker stores files. If it does,
// retention removes the host's files only after they are stored.
func (s *Store) SetHostStores(ctx context.Context, hostID string, stores bool) error {
	return translate(s.q.SetHostStores(ctx, s.pool, stores, hostID), "noting whether host "+hostID+" stores files")
}

// FilesToStore are attempts of a host that have ended and whose files are to be
// stored now, at most limit.
func (s *Store) FilesToStore(ctx context.Context, hostID string, limit int) ([]berth.UnstoredAttempt, error) {
	rows, err := s.q.FilesToStore(ctx, s.pool, hostID, limit)

	return collect(rows, err, "looking for files to store of host "+hostID, func(row dbsqlc.FilesToStoreRow) berth.UnstoredAttempt { return berth.UnstoredAttempt(row) })
}

// ClaimFiles names files of an attempt before they are stored. From then on
// RemoveObjects leaves their objects alone. Errors: not_found when the files are
// not wanted any more.
func (s *Store) ClaimFiles(ctx context.Context, attemptID string, files []berth.Artifact) error {
	if len(files) == 0 {
		return nil
	}

	params := &dbsqlc.ClaimFilesParams{AttemptID: attemptID}
	for _, f := range files {
		params.Paths, params.Sizes, params.Digests = append(params.Paths, f.Path), append(params.Sizes, f.Bytes), append(params.Digests, f.Digest[:])
	}

	return s.inTx(ctx, "naming files of attempt "+attemptID, func(tx pgx.Tx) error {
		if err := s.q.ShareArtifacts(ctx, tx); err != nil {
			return err
		}

		rows, err := s.q.ClaimFiles(ctx, tx, params)
		if err := must(rows, err, "naming them", "the files of the attempt are not wanted any more"); err != nil {
			return err
		}

		return s.q.ForgetUnnamed(ctx, tx, params.Digests)
	})
}

// FilesStored notes that the objects of these files are in the store.
func (s *Store) FilesStored(ctx context.Context, attemptID string, paths []string) error {
	return translate(s.q.FilesStored(ctx, s.pool, attemptID, paths), "noting stored files of attempt "+attemptID)
}

// SettleFiles stores the final state of an attempt's files. It does not change
// a settled one.
func (s *Store) SettleFiles(ctx context.Context, attemptID string, o berth.FileOutcome) error {
	left := &dbsqlc.InsertLeftOutParams{AttemptID: attemptID}
	for i, l := range o.Reasons {
		left.Numbers, left.Paths, left.Reasons = append(left.Numbers, i+1), append(left.Paths, l.Path), append(left.Reasons, l.Reason)
	}

	return s.inTx(ctx, "settling the files of attempt "+attemptID, func(tx pgx.Tx) error {
		rows, err := s.q.SettleFiles(ctx, tx, &dbsqlc.SettleFilesParams{
			ID: attemptID, State: o.State, Problem: o.Problem, LeftOut: o.LeftOut,
		})
		if err != nil || rows == 0 {
			return err
		}

		if err := s.q.DropClaims(ctx, tx, attemptID); err != nil || len(left.Paths) == 0 {
			return err
		}

		return s.q.InsertLeftOut(ctx, tx, left)
	})
}

// NoteFiles says why the files of an attempt are not stored yet.
func (s *Store) NoteFiles(ctx context.Context, attemptID, problem string) error {
	return translate(s.q.NoteFiles(ctx, s.pool, problem, attemptID), "noting why files of attempt "+attemptID+" wait")
}

// DeferFiles says why the files of an attempt could not be stored, and has them
// tried again later, each time twice as late.
func (s *Store) DeferFiles(ctx context.Context, attemptID, problem string) error {
	return translate(s.q.DeferFiles(ctx, s.pool, problem, attemptID), "deferring the files of attempt "+attemptID)
}

// LongUnnamed notes which of the digests no row names. It returns the digests
// noted longer than the grace ago and not named since.
func (s *Store) LongUnnamed(ctx context.Context, digests []berth.Digest, grace time.Duration) ([]berth.Digest, error) {
	all := bytesOf(digests)
	if err := s.q.NoteUnnamed(ctx, s.pool, all); err != nil {
		return nil, translate(err, "noting objects that no row names")
	}

	rows, err := s.q.LongUnnamed(ctx, s.pool, all, grace)

	return collect(rows, err, "looking for objects that no row names", toDigest)
}

func bytesOf(digests []berth.Digest) [][]byte {
	return convertAll(digests, func(d berth.Digest) []byte { return d[:] })
}

func toDigest(stored []byte) berth.Digest { return berth.Digest(stored) }

// RemoveObjects calls remove with the digests that no row names. No writer can
// name one of them until remove returns, so remove must be quick.
func (s *Store) RemoveObjects(ctx context.Context, digests []berth.Digest, remove func(unnamed []berth.Digest) error) error {
	all := bytesOf(digests)

	if unnamed, err := s.q.UnnamedObjects(ctx, s.pool, all); err != nil || len(unnamed) == 0 { // nearly always: no lock is needed
		return translate(err, "looking for objects that no row names")
	}

	return s.inTx(ctx, "removing objects that no row names", func(tx pgx.Tx) error {
		if err := s.q.LockArtifacts(ctx, tx); err != nil {
			return err
		}

		rows, err := s.q.UnnamedObjects(ctx, tx, all)
		if err != nil || len(rows) == 0 {
			return err
		}

		if err := remove(convertAll(rows, toDigest)); err != nil {
			return err
		}

		return s.q.ForgetUnnamed(ctx, tx, rows)
	})
}

// FindTrial reads a trial by its id. Errors: not_found.
func (s *Store) FindTrial(ctx context.Context, id string) (berth.Trial, error) {
	row, err := s.q.FindTrial(ctx, s.pool, id)
	if err != nil {
		return berth.Trial{}, translate(err, "reading trial "+id)
	}

	return berth.Trial{ID: id, SweepID: row.SweepID, Number: row.Number}, nil
}

// FileSet returns the state of the files of one attempt: of this number, or
// with 0 the trial's last attempt. Errors: not_found.
func (s *Store) FileSet(ctx context.Context, trialID string, number int) (berth.FileSet, error) {
	row, err := s.q.FileAttempt(ctx, s.pool, trialID, number)
	if err != nil {
		return berth.FileSet{}, translate(err, "reading files of trial "+trialID)
	}

	set := berth.FileSet{
		AttemptID: row.ID, Attempt: row.Number, State: row.FilesState, Problem: row.FilesProblem,
		Files: row.Files, Bytes: row.Bytes, LeftOut: row.FilesLeftOut,
	}

	if set.State == berth.FilesPending {
		switch {
		case !row.StoresFiles:
			set.State, set.Problem = berth.FilesOff, berth.NoArtifacts
		case row.State == berth.AttemptAbandoned:
			set.State, set.Problem = berth.FilesLost, "its host was lost before it ended; files of a newer attempt count"
		}
	}

	if set.LeftOut == 0 {
		return set, nil
	}

	left, err := s.q.ListLeftOut(ctx, s.pool, row.ID)
	set.Reasons = convertAll(left, func(row dbsqlc.ListLeftOutRow) berth.LeftOut { return berth.LeftOut(row) })

	return set, translate(err, "reading which files were left out of attempt "+row.ID)
}

// ListFiles reads stored files of an attempt by path, after the given one.
func (s *Store) ListFiles(ctx context.Context, attemptID, after string, limit int) ([]berth.Artifact, error) {
	rows, err := s.q.ListFiles(ctx, s.pool, &dbsqlc.ListFilesParams{AttemptID: attemptID, After: after, MaxRows: limit})

	return collect(rows, err, "listing files of attempt "+attemptID, func(row dbsqlc.ListFilesRow) berth.Artifact { return toArtifact(dbsqlc.GetFileRow(row)) })
}

// GetFile reads one stored file of an attempt. Errors: not_found.
func (s *Store) GetFile(ctx context.Context, attemptID, path string) (berth.Artifact, error) {
	row, err := s.q.GetFile(ctx, s.pool, attemptID, path)
	if err != nil {
		return berth.Artifact{}, translate(err, "reading a file of attempt "+attemptID)
	}

	return toArtifact(row), nil
}

func toArtifact(row dbsqlc.GetFileRow) berth.Artifact {
	return berth.Artifact{Path: row.Path, Bytes: row.Bytes, Digest: berth.Digest(row.Sha256), StoredAt: row.StoredAt}
}

// waitingFiles are the attempts whose files wait for the store, by host.
func (s *Store) waitingFiles(ctx context.Context) ([]berth.WaitingFiles, error) {
	rows, err := s.q.WaitingFiles(ctx, s.pool)

	return collect(rows, err, "looking for files that wait for the store", func(row dbsqlc.WaitingFilesRow) berth.WaitingFiles { return berth.WaitingFiles(row) })
}
