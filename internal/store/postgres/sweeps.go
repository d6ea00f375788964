package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// CreateSweep stores a sweep and asks for its workflow in one transaction. The
// returned id is the sweep's own, or that of the sweep an earlier call with
// the same idempotency key made; created tells which. Errors: invalid when a secret
// that it mounts is not stored any more.
func (s *Store) CreateSweep(ctx context.Context, n berth.NewSweep) (id string, created bool, err error) {
	err = s.inTx(ctx, "storing sweep", func(tx pgx.Tx) error {
		id, created = n.ID, true

		if n.Key != "" {
			prior, err := s.claimKey(ctx, tx, n)
			if err != nil {
				return err
			}

			if prior != "" {
				id, created = prior, false

				return nil
			}
		}

		if err := s.keepSecrets(ctx, tx, n.Spec.Secrets); err != nil {
			return err
		}

		if err := s.q.InsertSweep(ctx, tx, &dbsqlc.InsertSweepParams{
			ID: n.ID, Name: n.Spec.Name, Spec: n.Spec.Plan(), ImageDigest: n.ImageDigest,
			MaxParallel: int(n.Spec.Limits.MaxParallel), Planned: n.Planned, CreatedBy: n.CreatedBy,
		}); err != nil {
			return err
		}

		if err := s.insertFile(ctx, tx, n); err != nil {
			return err
		}

		for i, from := range n.From {
			if err := s.q.CopyPriors(ctx, tx, &dbsqlc.CopyPriorsParams{SweepID: n.ID, Earlier: i, FromSweep: from}); err != nil {
				return err
			}
		}

		if n.PriorsOf != "" {
			if err := s.q.ClonePriors(ctx, tx, n.ID, n.PriorsOf); err != nil {
				return err
			}
		}

		if err := s.q.InsertOutbox(ctx, tx, &dbsqlc.InsertOutboxParams{
			Kind: berth.OutboxStartSweep, WorkflowID: sweepWorkflow(n.ID), Payload: encode(map[string]string{"sweep_id": n.ID}),
		}); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.state", SweepID: n.ID, Subject: n.ID, Data: berth.SweepPending}, channelOutbox)
	})

	return id, created, err
}

// insertFile stores a sweep's file whole, for display, and its listed
// assignments, for the search.
func (s *Store) insertFile(ctx context.Context, tx pgx.Tx, n berth.NewSweep) error {
	if err := s.q.InsertSweepFile(ctx, tx, n.ID, n.Spec); err != nil || len(n.Spec.Enqueue) == 0 {
		return err
	}

	searcher, err := search.New(n.Spec)
	if err != nil {
		return err
	}

	entries := make([][]byte, 0, len(n.Spec.Enqueue))
	for _, a := range searcher.Enqueued() {
		entries = append(entries, encode(a))
	}

	return s.q.InsertSweepEntries(ctx, tx, n.ID, entries)
}

// sweepWorkflow names a sweep's workflow, as workflows.SweepWorkflowID does.
func sweepWorkflow(sweepID string) string { return "sweep-" + sweepID }

// claimKey takes the idempotency key, or returns the sweep that has it.
func (s *Store) claimKey(ctx context.Context, tx pgx.Tx, n berth.NewSweep) (prior string, err error) {
	rows, err := s.q.InsertIdempotencyKey(ctx, tx, &dbsqlc.InsertIdempotencyKeyParams{
		Principal: n.CreatedBy, Route: n.Route, Key: n.Key, BodyHash: n.BodyHash, SweepID: n.ID,
	})
	if err != nil || rows == 1 {
		return "", err
	}

	return s.keyedSweep(ctx, tx, n.SubmissionKey())
}

// SubmittedSweep is the sweep that a call with this key made; empty = none. Errors:
// conflict when that call had another body.
func (s *Store) SubmittedSweep(ctx context.Context, k berth.SubmissionKey) (id string, err error) {
	id, err = s.keyedSweep(ctx, s.pool, k)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}

	return id, translate(err, "looking up an idempotency key")
}

func (s *Store) keyedSweep(ctx context.Context, db dbsqlc.DBTX, k berth.SubmissionKey) (id string, err error) {
	row, err := s.q.GetIdempotencyKey(ctx, db, &dbsqlc.GetIdempotencyKeyParams{Principal: k.Person, Route: k.Route, Key: k.Key})
	if err != nil {
		return "", err
	}

	if !bytes.Equal(row.BodyHash, k.BodyHash) {
		return "", berth.Errorf(berth.KindConflict,
			"Idempotency-Key %q was used for another body; use a new key for a new sweep", k.Key)
	}

	return row.SweepID, nil
}

// GetSweep returns a sweep with its counts and its whole file. Errors: not_found.
func (s *Store) GetSweep(ctx context.Context, id string) (berth.Sweep, error) {
	sweep, err := s.countedSweep(ctx, id)
	if err != nil {
		return sweep, err
	}

	sweep.Spec, err = s.q.GetSweepFile(ctx, s.pool, id)

	return sweep, translate(err, "reading the file of sweep "+id)
}

func (s *Store) countedSweep(ctx context.Context, id string) (berth.Sweep, error) {
	sweep, err := s.SweepRecord(ctx, id)
	if err != nil {
		return berth.Sweep{}, err
	}

	sweeps, err := s.withCounts(ctx, s.pool, []berth.Sweep{sweep})
	if err != nil {
		return berth.Sweep{}, err
	}

	return sweeps[0], nil
}

// SweepRecord returns a sweep without its counts, which take longer the more
// trials it has, and with the plan of its file (berth.Spec.Plan). Errors: not_found.
func (s *Store) SweepRecord(ctx context.Context, id string) (berth.Sweep, error) {
	row, err := s.q.GetSweep(ctx, s.pool, id)

	return toSweep(row), translate(err, "reading sweep "+id)
}

// BeginSweepRun notes which run of its workflow carries a sweep on, moves a
// pending one to running, and returns it without its counts. From its return
// on, the ends of trials that other runs started come by the outbox.
// Errors: not_found.
func (s *Store) BeginSweepRun(ctx context.Context, id, runID string) (berth.Sweep, error) {
	var sweep berth.Sweep

	err := s.inTx(ctx, "beginning a run of sweep "+id, func(tx pgx.Tx) error {
		row, err := s.q.BeginSweepRun(ctx, tx, runID, id)
		if err != nil {
			return err
		}

		sweep = toSweep(row)

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.state", SweepID: id, Subject: id, Data: sweep.State}, channelPlacer)
	})

	return sweep, err
}

// FollowSweepRun notes the run that carries a sweep on when it is not the known
// run, because this database was restored from an older copy. It then makes the
// sweep look up the trials that ended in between. It reports whether it did:
// another run may have begun since known was read.
func (s *Store) FollowSweepRun(ctx context.Context, id, known, runID string) (followed bool, err error) {
	err = s.inTx(ctx, "following the run of sweep "+id, func(tx pgx.Tx) error {
		state, err := s.q.FollowSweepRun(ctx, tx, &dbsqlc.FollowSweepRunParams{ID: id, Known: known, RunID: runID})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}

		if err != nil {
			return err
		}

		followed = true

		if err := s.q.InsertOutbox(ctx, tx, &dbsqlc.InsertOutboxParams{
			Kind: berth.OutboxTrialFinished, WorkflowID: sweepWorkflow(id), Payload: encode(berth.TrialEnd{}),
		}); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.state", SweepID: id, Subject: id, Data: state}, channelPlacer, channelOutbox)
	})

	return followed, err
}

// FindSweep returns the id of the one sweep that has this name, or an id that starts so.
// Errors: not_found; conflict when several do.
func (s *Store) FindSweep(ctx context.Context, ref string) (string, error) {
	ids, err := s.q.FindSweeps(ctx, s.pool, ref)
	if err != nil {
		return "", translate(err, "finding sweep")
	}

	switch len(ids) {
	case 0:
		return "", berth.Errorf(berth.KindNotFound, "no sweep has the name %q, or an id that starts so", ref)
	case 1:
		return ids[0], nil
	default:
		return "", berth.Errorf(berth.KindConflict, "several sweeps have the name %q, or an id that starts so; give more of the id", ref)
	}
}

// ListSweepRecords returns sweeps newest first, after the given one: the zero
// time starts at the newest. An empty states means all. They are without their
// counts, which take longer the more trials the sweeps have, and with the plans of
// their files.
func (s *Store) ListSweepRecords(ctx context.Context, states []string, before time.Time, beforeID string, limit int) ([]berth.Sweep, error) {
	if before.IsZero() {
		before, beforeID = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff"
	}

	rows, err := s.q.ListSweeps(ctx, s.pool, &dbsqlc.ListSweepsParams{
		BeforeTime: before, BeforeID: beforeID, States: append([]string{}, states...), MaxRows: limit,
	})

	return collect(rows, err, "listing sweeps", toSweep)
}

func (s *Store) withCounts(ctx context.Context, db dbsqlc.DBTX, sweeps []berth.Sweep) ([]berth.Sweep, error) {
	if len(sweeps) == 0 {
		return sweeps, nil
	}

	ids := make([]string, len(sweeps))
	index := make(map[string]*berth.Sweep, len(sweeps))

	for i := range sweeps {
		ids[i] = sweeps[i].ID
		index[sweeps[i].ID] = &sweeps[i]
	}

	counts, err := s.q.CountTrials(ctx, db, ids)
	if err != nil {
		return nil, translate(err, "counting trials")
	}

	for _, c := range counts {
		count(&index[c.SweepID].Counts, c.State, c.Trials)
	}

	retries, err := s.q.CountOOMRetries(ctx, s.pool, ids)
	if err != nil {
		return nil, translate(err, "counting out-of-memory retries")
	}

	for _, r := range retries {
		index[r.SweepID].Counts.OOMRetries = r.Retries
	}

	best, err := s.q.BestTrials(ctx, s.pool, ids)
	if err != nil {
		return nil, translate(err, "finding best trials")
	}

	for _, b := range best {
		index[b.SweepID].BestTrial = b.Number
		index[b.SweepID].BestValue = b.Value
	}

	return sweeps, nil
}

func count(c *berth.Counts, state berth.TrialState, n int) {
	c.Total += n

	switch state {
	case berth.TrialRunning:
		c.Running += n
	case berth.TrialSucceeded:
		c.Succeeded += n
	case berth.TrialFailed:
		c.Failed += n
	case berth.TrialInfeasible:
		c.Infeasible += n
	case berth.TrialCanceled:
		c.Canceled += n
	case berth.TrialPruned:
		c.Pruned += n
	case berth.TrialPending, berth.TrialProbing, berth.TrialWaiting:
		c.Waiting += n
	}
}

// SetSweepState moves a sweep on. A sweep that has ended stays as it is, and
// changed is false.
func (s *Store) SetSweepState(ctx context.Context, id string, state berth.SweepState, reason string) (changed bool, err error) {
	err = s.inTx(ctx, "setting state of sweep "+id, func(tx pgx.Tx) error {
		rows, err := s.q.SetSweepState(ctx, tx, &dbsqlc.SetSweepStateParams{ID: id, State: state, Reason: reason})
		if err != nil || rows == 0 {
			return err
		}

		changed = true

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.state", SweepID: id, Subject: id, Data: state}, channelPlacer)
	})

	return changed, err
}

// SetMaxParallel changes a sweep's limit for the placer; 0 = no limit.
func (s *Store) SetMaxParallel(ctx context.Context, id string, n int) error {
	return s.inTx(ctx, "setting max_parallel of sweep "+id, func(tx pgx.Tx) error {
		rows, err := s.q.SetSweepMaxParallel(ctx, tx, n, id)
		if err := must(rows, err, "setting max_parallel", "sweep "+id+" has ended or does not exist"); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.max_parallel", SweepID: id, Subject: id, Data: n}, channelPlacer)
	})
}

// SetSweepNote changes what a person noted of a sweep. was is the note that the person saw;
// nil = whatever is there. Errors: not_found, and conflict where another note is there.
func (s *Store) SetSweepNote(ctx context.Context, id, note string, was *string) error {
	return s.inTx(ctx, "noting of sweep "+id, func(tx pgx.Tx) error {
		rows, err := s.q.SetSweepNote(ctx, tx, &dbsqlc.SetSweepNoteParams{ID: id, Note: note, Was: was})
		if err := noted(rows, err, was); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{Kind: "sweep.note", SweepID: id, Subject: id})
	})
}

func noted(rows int64, err error, was *string) error {
	if err == nil && rows == 0 && was != nil {
		return berth.Errorf(berth.KindConflict, "another person changed the note in the meantime; load the page again to see it")
	}

	return must(rows, err, "noting", "it does not exist")
}

// FirstTrialRan is when a sweep's first trial got its place; zero while none has.
func (s *Store) FirstTrialRan(ctx context.Context, id string) (time.Time, error) {
	began, err := s.q.FirstTrialRan(ctx, s.pool, id)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && began == nil {
		return time.Time{}, nil
	}

	if err != nil {
		return time.Time{}, translate(err, "reading when sweep "+id+" began to run")
	}

	return *began, nil
}

// OpenSweeps counts the sweeps a person made that have not ended.
func (s *Store) OpenSweeps(ctx context.Context, person string) (int, error) {
	open, err := s.q.OpenSweeps(ctx, s.pool, person)

	return open, translate(err, "counting open sweeps")
}
