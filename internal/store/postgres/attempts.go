package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// Assignee returns everything a host needs to run an attempt. Errors: not_found.
func (s *Store) Assignee(ctx context.Context, attemptID string) (berth.Assignee, error) {
	row, err := s.q.GetAssignee(ctx, s.pool, attemptID)
	if err != nil {
		return berth.Assignee{}, translate(err, "reading attempt "+attemptID)
	}

	end, err := s.q.LogEnd(ctx, s.pool, attemptID)
	if err != nil {
		return berth.Assignee{}, translate(err, "reading log of attempt "+attemptID)
	}

	who := berth.Assignee{
		Attempt:     toAttempt(row.Attempt),
		LeaseID:     row.LeaseID,
		SweepID:     row.SweepID,
		ImageDigest: row.ImageDigest,
		Trial: berth.Trial{
			ID: row.Attempt.TrialID, SweepID: row.SweepID, Number: row.TrialNumber, Params: row.Params, ShapeKey: row.ShapeKey,
			State: row.TrialState,
		},
		Spec:      row.Spec,
		LogOffset: end,
		CardBytes: row.CardBytes,
		Measures:  row.Measures,
		Earlier:   row.Earlier,
	}

	return who, s.addStages(ctx, &who, row.StageKeys)
}

// AttemptRunning records the container of an attempt. Errors: fenced when the
// token is not the current one or the attempt has ended.
func (s *Store) AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error {
	rows, err := s.q.MarkAttemptRunning(ctx, s.pool, &dbsqlc.MarkAttemptRunningParams{
		ID: attemptID, Token: token, ContainerID: containerID, StartedAt: &startedAt,
	})

	return fencedError(rows, err, attemptID, token)
}

// MeasureRunning stores the use that an attempt on a GPU was measured to have until now;
// the attempt goes on. Its lease then holds as much as siblings reserve by that, but never
// more than most, its container's limit. It returns the lease's memory on the GPU. Errors:
// fenced.
func (s *Store) MeasureRunning(ctx context.Context, attemptID string, token int64, u berth.Usage, most int64) (bytes int64, err error) {
	err = s.inTx(ctx, "measuring attempt "+attemptID, func(tx pgx.Tx) error {
		row, err := s.q.GetRunning(ctx, tx, attemptID, token)
		if errors.Is(err, pgx.ErrNoRows) {
			return fencedError(0, nil, attemptID, token)
		}

		if err != nil {
			return err
		}

		if _, err := s.q.LockFamily(ctx, tx, row.ShapeKey); err != nil {
			return err
		}

		known, err := s.footprintsOf(ctx, tx, []string{row.ShapeKey})
		if err != nil {
			return err
		}

		f := memory.ObserveRunning(known[row.ShapeKey].Of(row.DeviceClass), row.ShapeKey, u)
		if err := s.storeFootprint(ctx, tx, f, row.DeviceClass); err != nil {
			return err
		}

		bytes, err = s.q.ResizeLease(ctx, tx, attemptID, min(memory.ReserveDevice(f), most))
		if errors.Is(err, pgx.ErrNoRows) { // it has the GPU alone
			bytes, err = most, nil
		}

		if err != nil {
			return err
		}

		return wake(ctx, tx, channelPlacer)
	})

	return bytes, err
}

// NoteWait stores why an attempt has no container yet, in plain words; empty =
// it no longer waits. Errors: fenced.
func (s *Store) NoteWait(ctx context.Context, attemptID string, token int64, text string) error {
	ours, err := s.q.NoteWait(ctx, s.pool, &dbsqlc.NoteWaitParams{ID: attemptID, Token: token, Message: text})
	if err != nil || !ours {
		return fencedError(0, err, attemptID, token)
	}

	return nil
}

// FinishAttempt commits an attempt's result, frees its lease and teaches the
// footprint of its shape, all in one transaction. Repeating it with the same
// token is harmless. Errors: fenced.
func (s *Store) FinishAttempt(ctx context.Context, r berth.Result) error {
	return s.inTx(ctx, "finishing attempt "+r.AttemptID, func(tx pgx.Tx) error {
		o := r.Outcome
		params := &dbsqlc.FinishAttemptParams{
			ID: r.AttemptID, Token: r.Token, ContainerID: r.ContainerID, FailureKind: o.Kind, Message: o.Message, ExitCode: o.ExitCode, Value: o.Value, Results: o.Results,
			MemoryPeakBytes: o.Usage.MemoryPeakBytes, DevicePeakBytes: o.Usage.DevicePeakBytes,
			CPUNs: int64(o.Usage.CPU), WallNs: int64(o.Usage.Wall), Samples: o.Usage.Samples, OOMKills: o.Usage.OOMKills,
			UnseenNs:           int64(o.Usage.Unseen),
			FrameworkPeakBytes: o.Usage.FrameworkPeakBytes, MetricSource: o.MetricSource, CheckpointLeft: r.Checkpoint,
			CPUPeriods: o.Usage.CPUPeriods, CPUThrottled: min(o.Usage.CPUThrottled, o.Usage.CPUPeriods),

			Steps: o.Usage.Steps, StepNs: int64(o.Usage.StepTime), StartPeakBytes: o.Usage.DevicePhases.StartBytes,
			TrainingPeakBytes: o.Usage.DevicePhases.TrainingBytes, ValidationPeakBytes: o.Usage.DevicePhases.ValidationBytes,

			DeviceSMMilli:     milliOf(o.Usage.DeviceActivity.SMMilli),
			DeviceDRAMMilli:   milliOf(o.Usage.DeviceActivity.DRAMMilli),
			DeviceTensorMilli: milliOf(o.Usage.DeviceActivity.TensorMilli),
			DeviceActiveNs:    int64(o.Usage.DeviceActive),
			DeviceUnknownNs:   int64(o.Usage.DeviceUnknown),
			DeviceFault:       o.DeviceFault,

			FinishedAt: &o.FinishedAt, Datasets: r.Datasets, FirstFit: o.FirstFit,
		}

		if r.Datasets == nil {
			params.Datasets = map[string]string{}
		}

		if o.Results == nil {
			params.Results = berth.Results{}
		}

		if !o.StartedAt.IsZero() {
			params.StartedAt = &o.StartedAt
		}

		row, err := s.q.FinishAttempt(ctx, tx, params)
		if errors.Is(err, pgx.ErrNoRows) {
			return s.finishedBefore(ctx, tx, r)
		}

		if err != nil {
			return err
		}

		if r.StageKey != "" {
			if err := s.putStageOutput(ctx, tx, r); err != nil {
				return err
			}
		}

		// Before the lease, as requests come before hosts.
		if err := s.mergeFootprint(ctx, tx, r, row.DeviceClass); err != nil {
			return err
		}

		if err := s.addPace(ctx, tx, r.AttemptID); err != nil {
			return err
		}

		if err := s.q.ReleaseLease(ctx, tx, r.AttemptID, r.Proof); err != nil {
			return err
		}

		if err := s.noteStart(ctx, tx, r, row.Began); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{
			Kind: "attempt.finished", SweepID: r.SweepID, Subject: r.AttemptID, Data: o.Kind,
		}, channelPlacer)
	})
}

// noteStart counts the attempt for its host when the container began and no
// earlier result said so. It counts it against the host when the container could
// not start through no fault of the trial. The host's row is locked, because the
// lease was released.
func (s *Store) noteStart(ctx context.Context, tx pgx.Tx, r berth.Result, began bool) error {
	switch {
	case began:
		return s.q.NoteStart(ctx, tx, r.AttemptID)
	case r.Outcome.Kind != berth.FailureInfra || r.InputMissing:
		return nil
	}

	if r.ImageMissing { // which counts for the sweep alone
		if err := s.q.ForgetMissingImages(ctx, tx, &dbsqlc.ForgetMissingImagesParams{
			AttemptID: r.AttemptID, Within: berth.HostCordonWindow, Kept: berth.MissingImageKept,
		}); err != nil {
			return err
		}

		return s.q.NoteMissingImage(ctx, tx, &dbsqlc.NoteMissingImageParams{
			AttemptID: r.AttemptID, Reason: r.Outcome.Message, CordonAfter: berth.HostCordonAfter,
		})
	}

	return s.q.NoteFailedStart(ctx, tx, &dbsqlc.NoteFailedStartParams{
		AttemptID: r.AttemptID, Reason: r.Outcome.Message, CordonAfter: berth.HostCordonAfter, Within: berth.HostCordonWindow,
	})
}

// finishedBefore tells a repeated commit, which is fine, from a fenced one.
func (s *Store) finishedBefore(ctx context.Context, tx pgx.Tx, r berth.Result) error {
	row, err := s.q.GetAttempt(ctx, tx, r.AttemptID)
	if err != nil {
		return err
	}

	if row.State == berth.AttemptFinished && row.Token == r.Token {
		return nil
	}

	return fencedError(0, nil, r.AttemptID, r.Token)
}

func fencedError(rows int64, err error, attemptID string, token int64) error {
	if err != nil {
		return translate(err, "writing attempt "+attemptID)
	}

	if rows == 0 {
		return berth.Errorf(berth.KindFenced, "attempt %s is not ours any more: token %d is not the current one", attemptID, token)
	}

	return nil
}

// mergeFootprint merges the attempt's usage into the footprint of its shape on the
// attempt's device class. The placer sizes waiting requests by it.
func (s *Store) mergeFootprint(ctx context.Context, tx pgx.Tx, r berth.Result, class berth.DeviceClass) error {
	locked, err := s.q.LockFamily(ctx, tx, r.ShapeKey)
	if err != nil {
		return err
	}

	known, err := s.footprintsOf(ctx, tx, []string{r.ShapeKey})
	if err != nil {
		return err
	}

	if err := s.learn(ctx, tx, r, known[r.ShapeKey], class); err != nil {
		return err
	}

	if u := r.Outcome.Usage; class != berth.ClassCPU && u.DeviceMeasured() && u.DevicePeakBytes == 0 {
		r.Reserved.DeviceBytes = 0 // it ran on cores, whatever it had booked

		if err := s.learn(ctx, tx, r, known[r.ShapeKey], berth.ClassCPU); err != nil {
			return err
		}
	}

	return s.predictFamilies(ctx, tx, locked)
}

// learn merges the attempt's usage into the footprint of one class.
func (s *Store) learn(ctx context.Context, tx pgx.Tx, r berth.Result, known berth.Footprints, class berth.DeviceClass) error {
	f, ok := memory.Observe(known.Of(class), r.ShapeKey, r.Source, r.Outcome.Kind, r.Outcome.Usage, r.Reserved)
	if !ok {
		return nil
	}

	return s.storeFootprint(ctx, tx, f, class)
}

func (s *Store) storeFootprint(ctx context.Context, tx pgx.Tx, f berth.Footprint, class berth.DeviceClass) error {
	return s.q.UpsertFootprint(ctx, tx, &dbsqlc.UpsertFootprintParams{
		ShapeKey: f.ShapeKey, DeviceClass: class, Source: f.Source, Samples: f.Samples,
		MemoryPeakBytes: f.MemoryPeakBytes, MemoryFloorBytes: f.MemoryFloorBytes, FloorPassed: f.FloorPassed,
		DevicePeakBytes: f.DevicePeakBytes, DeviceFloorBytes: f.DeviceFloorBytes, DevicePassed: f.DevicePassed,
		DeviceSMMilli: milliOf(f.DeviceActivity.SMMilli), DeviceDRAMMilli: milliOf(f.DeviceActivity.DRAMMilli),
		DeviceTensorMilli: milliOf(f.DeviceActivity.TensorMilli),
		CPUMilli:          f.CPUMilli, DurationNs: int64(f.Duration),
	})
}

// Footprints returns the footprints of several shapes, by key. Unmeasured
// shapes are missing.
func (s *Store) Footprints(ctx context.Context, shapeKeys []string) (map[string]berth.Footprints, error) {
	known, err := s.footprintsOf(ctx, s.pool, shapeKeys)

	return known, translate(err, "reading footprints")
}

func (s *Store) footprintsOf(ctx context.Context, db dbsqlc.DBTX, shapeKeys []string) (map[string]berth.Footprints, error) {
	rows, err := s.q.FootprintsOfShapes(ctx, db, append([]string{}, shapeKeys...)) // NULL is not the empty list

	return toFootprints(rows), err
}

// GetAttempt returns an attempt. Errors: not_found.
func (s *Store) GetAttempt(ctx context.Context, id string) (berth.Attempt, error) {
	row, err := s.q.GetAttempt(ctx, s.pool, id)

	return toAttempt(row), translate(err, "reading attempt "+id)
}

// ListAttempts returns a trial's attempts, first to last.
func (s *Store) ListAttempts(ctx context.Context, trialID string) ([]berth.Attempt, error) {
	rows, err := s.q.ListAttempts(ctx, s.pool, trialID)

	return collect(rows, err, "listing attempts of trial "+trialID, toAttempt)
}

// ListSweepAttempts returns a sweep's attempts by trial and number, after the
// given one.
func (s *Store) ListSweepAttempts(ctx context.Context, sweepID string, afterTrial, afterNumber, limit int) ([]berth.SweepAttempt, error) {
	rows, err := s.q.ListSweepAttempts(ctx, s.pool, &dbsqlc.ListSweepAttemptsParams{
		SweepID: sweepID, AfterTrial: afterTrial, AfterNumber: afterNumber, MaxRows: limit,
	})

	return collect(rows, err, "listing attempts of sweep "+sweepID, func(row dbsqlc.ListSweepAttemptsRow) berth.SweepAttempt {
		return berth.SweepAttempt{Attempt: toAttempt(row.Attempt), TrialNumber: row.TrialNumber}
	})
}

// AbandonAttempt fences an attempt whose host was lost: its token changes, so
// that the old host's writes are refused. Its lease stays booked until there
// is proof that its memory is free (rule R3). One that has ended stays as it is.
func (s *Store) AbandonAttempt(ctx context.Context, attemptID, message string) error {
	return s.abandon(ctx, attemptID, message, false)
}

// RefuseAttempt is AbandonAttempt for good: the attempt does not go back to its
// host, which answers but cannot run it.
func (s *Store) RefuseAttempt(ctx context.Context, attemptID, message string) error {
	return s.abandon(ctx, attemptID, message, true)
}

func (s *Store) abandon(ctx context.Context, attemptID, message string, refused bool) error {
	_, err := s.q.AbandonAttempt(ctx, s.pool, &dbsqlc.AbandonAttemptParams{
		ID: attemptID, FailureKind: berth.FailureInfra, Message: message, Refused: refused,
	})

	return translate(err, "abandoning attempt "+attemptID)
}
