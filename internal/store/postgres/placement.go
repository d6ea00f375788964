package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// RequestPlacement asks for a place and returns the state of the request, which
// may be the answer to an earlier call. When the attempt before it was
// abandoned and its host answers again, that attempt is the answer.
func (s *Store) RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error) {
	var lastOOM json.RawMessage
	if r.Last != nil {
		lastOOM = encode(r.Last)
	}

	err := s.inTx(ctx, "requesting a place for attempt "+r.AttemptID, func(tx pgx.Tx) error {
		rows, err := s.q.InsertPlacementRequest(ctx, tx, &dbsqlc.InsertPlacementRequestParams{
			AttemptID: r.AttemptID, SweepID: r.SweepID, TrialID: r.TrialID, WorkflowID: r.WorkflowID,
			Number: r.Number, Stage: r.Stage, Purpose: string(r.Purpose), ShapeKey: r.ShapeKey,
			MemoryBytes: r.Demand.MemoryBytes, CPUMilli: r.Demand.CPUMilli, DeviceBytes: r.Demand.DeviceBytes,
			Contexts: contexts(r.Demand), Exclusive: r.Demand.Exclusive, ExclusiveDevice: r.Demand.ExclusiveDevice,
			LastOOM: lastOOM, ExpectedNs: r.Expected.Nanoseconds(), Short: r.Short,
		})
		if err != nil || rows == 0 {
			return err
		}

		open, err := s.q.SetTrialState(ctx, tx, &dbsqlc.SetTrialStateParams{ID: r.TrialID, State: berth.TrialWaiting})
		if err != nil {
			return err
		}

		if open == 0 {
			return errTrialEnded
		}

		if err := s.q.FenceEarlierAttempts(ctx, tx, &dbsqlc.FenceEarlierAttemptsParams{
			TrialID: r.TrialID, Number: r.Number, Message: "its trial went on without it",
		}); err != nil {
			return err
		}

		if err := s.q.WithdrawEarlierRequests(ctx, tx, r.TrialID, r.Number); err != nil {
			return err
		}

		if err := s.reviveAttempts(ctx, tx, noID, r.TrialID); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{
			Kind: "trial.state", SweepID: r.SweepID, Subject: r.TrialID, Data: berth.TrialWaiting,
		}, channelPlacer)
	})
	if errors.Is(err, errTrialEnded) {
		return berth.PlacementStatus{AttemptID: r.AttemptID, State: berth.RequestWithdrawn}, nil
	}

	if err != nil {
		return berth.PlacementStatus{}, err
	}

	return s.PlacementStatus(ctx, r.AttemptID)
}

// ResizeRequest changes the demand of a request that still waits, and returns
// the state of the request. Errors: not_found.
func (s *Store) ResizeRequest(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error) {
	err := s.inTx(ctx, "resizing the request of attempt "+r.AttemptID, func(tx pgx.Tx) error {
		rows, err := s.q.ResizeRequest(ctx, tx, &dbsqlc.ResizeRequestParams{
			AttemptID: r.AttemptID, MemoryBytes: r.Demand.MemoryBytes, CPUMilli: r.Demand.CPUMilli,
			DeviceBytes: r.Demand.DeviceBytes, Contexts: contexts(r.Demand), Exclusive: r.Demand.Exclusive,
			ExclusiveDevice: r.Demand.ExclusiveDevice, ExpectedNs: r.Expected.Nanoseconds(), Purpose: r.Purpose, Short: r.Short,
		})
		if err != nil || rows == 0 {
			return err
		}

		return wake(ctx, tx, channelPlacer)
	})
	if err != nil {
		return berth.PlacementStatus{}, err
	}

	return s.PlacementStatus(ctx, r.AttemptID)
}

// contexts is how many contexts packing books for a demand.
func contexts(d berth.Demand) int {
	if d.DeviceBytes > 0 {
		return max(d.Contexts, 1)
	}

	return d.Contexts
}

// errTrialEnded undoes a request that came too late.
var errTrialEnded = errors.New("the trial has ended")

// PlacementStatus returns the state of a request. Its attempt is an earlier one
// when that was revived. Errors: not_found.
func (s *Store) PlacementStatus(ctx context.Context, attemptID string) (berth.PlacementStatus, error) {
	row, err := s.q.GetPlacementRequest(ctx, s.pool, attemptID)
	if err != nil {
		return berth.PlacementStatus{}, translate(err, "reading placement of attempt "+attemptID)
	}

	status := berth.PlacementStatus{AttemptID: attemptID, State: row.State}

	for _, reason := range toReasons(row.Reasons) {
		status.Reasons = append(status.Reasons, reason.Reason)
	}

	if status.State != berth.RequestPlaced {
		return status, nil
	}

	status.Short = row.Short

	if row.Revives != nil {
		status.AttemptID = *row.Revives

		revived, err := s.q.GetPlacementRequest(ctx, s.pool, status.AttemptID)
		if err != nil {
			return status, translate(err, "reading the request of attempt "+status.AttemptID)
		}

		status.Short = revived.Short
	}

	attempt, err := s.q.GetAttempt(ctx, s.pool, status.AttemptID)
	if err != nil {
		return status, translate(err, "reading attempt "+status.AttemptID)
	}

	a := toAttempt(attempt)
	status.HostID, status.DeviceID, status.Token, status.Demand = a.HostID, a.DeviceID, a.Token, a.Demand
	status.HostName, err = s.q.GetHostName(ctx, s.pool, a.HostID)

	return status, translate(err, "reading host "+a.HostID)
}

// WithdrawRequest takes back a request that still waits; a request that was
// placed in the meantime stays placed. It returns the request's present state.
func (s *Store) WithdrawRequest(ctx context.Context, attemptID string) (berth.PlacementStatus, error) {
	if _, err := s.q.WithdrawRequest(ctx, s.pool, attemptID); err != nil {
		return berth.PlacementStatus{}, translate(err, "withdrawing attempt "+attemptID)
	}

	status, err := s.PlacementStatus(ctx, attemptID)
	if berth.KindOf(err) == berth.KindNotFound { // it was never stored
		return berth.PlacementStatus{AttemptID: attemptID, State: berth.RequestWithdrawn}, nil
	}

	return status, err
}

// Place turns waiting requests into attempts with leases, books their hosts and
// devices, and puts the news for their workflows into the outbox: all or
// nothing. It returns the placed attempts. It leaves out requests that no
// longer wait, and requests whose sweep, host or GPU a person has paused or
// cordoned since. Errors: exhausted when a CHECK refused the booking, because
// the decision was made on numbers that have changed; conflict when a request
// cannot be stored as an attempt.
func (s *Store) Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error) {
	params := &dbsqlc.PlaceRequestsParams{Term: berth.LeaseTerm}
	for attemptID, p := range decisions {
		params.AttemptIDs = append(params.AttemptIDs, attemptID)
		params.HostIDs = append(params.HostIDs, p.HostID)
		params.DeviceIDs = append(params.DeviceIDs, p.DeviceID)
		params.DeviceClasses = append(params.DeviceClasses, string(cmp.Or(p.Class, berth.ClassCPU)))
		params.Modes = append(params.Modes, string(p.Class.Mode()))
		params.MemoryBytes = append(params.MemoryBytes, p.Demand.MemoryBytes)
		params.CPUMilli = append(params.CPUMilli, p.Demand.CPUMilli)
		params.DeviceBytes = append(params.DeviceBytes, p.Demand.DeviceBytes)
		params.Contexts = append(params.Contexts, contexts(p.Demand))
		params.Exclusive = append(params.Exclusive, p.Demand.Exclusive)
		params.ExclusiveDevice = append(params.ExclusiveDevice, p.Demand.ExclusiveDevice)
		params.DeviceActivity = append(params.DeviceActivity, int(milliOf(p.Demand.DeviceActivity)))
		params.Mixes = append(params.Mixes, p.Mix.Key)
		params.MixOwns = append(params.MixOwns, p.Mix.Own)
		params.SpillBytes = append(params.SpillBytes, p.Demand.SpillBytes)
	}

	var placed []string

	err := s.inTx(ctx, "placing attempts", func(tx pgx.Tx) error {
		rows, err := s.q.PlaceRequests(ctx, tx, params)
		if err != nil {
			return err
		}

		for _, row := range rows {
			placed = append(placed, row.AttemptID)
		}

		if err := wake(ctx, tx, channelEvents); err != nil {
			return err
		}

		return wake(ctx, tx, channelOutbox)
	})
	return placed, bookingError(err, "placing attempts")
}

// bookingError tells an error about the rows of a statement from one about the
// database. Errors: exhausted for the capacity of a host or device, conflict
// for any other row; the rest as it is.
func bookingError(err error, doing string) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)

	switch {
	case !ok:
		return err
	case pg.Code == codeCheckViolation && (pg.TableName == "hosts" || pg.TableName == "devices"):
		return berth.Errorf(berth.KindExhausted, "%s: the database refused to book more than there is: %w", doing, pg)
	case pg.Code[:2] == classData || pg.Code[:2] == classIntegrity:
		return berth.Errorf(berth.KindConflict, "%s: the ledger refuses a request: %w", doing, pg)
	default:
		return err
	}
}

// SetAside keeps a request that the ledger refused out of the queue for a
// while, longer each time, and stores why.
func (s *Store) SetAside(ctx context.Context, attemptID, why string) error {
	reasons := []berth.Rejection{{Dimension: berth.DimensionTrial, Reason: why}}

	return translate(s.q.SetRequestAside(ctx, s.pool, &dbsqlc.SetRequestAsideParams{
		AttemptID: attemptID, Refusal: why, Reasons: encode(reasons),
	}), "setting aside attempt "+attemptID)
}

// RefuseRequest ends a request that no machine could ever hold. Errors: conflict
// when the request cannot be stored like that.
func (s *Store) RefuseRequest(ctx context.Context, attemptID string, reasons []berth.Rejection) error {
	err := s.inTx(ctx, "refusing attempt "+attemptID, func(tx pgx.Tx) error {
		rows, err := s.q.MarkImpossible(ctx, tx, encode(reasons), attemptID)
		if err != nil || rows == 0 {
			return err
		}

		row, err := s.q.GetPlacementRequest(ctx, tx, attemptID)
		if err != nil {
			return err
		}

		return s.tellPlaced(ctx, tx, row, berth.TrialWaiting)
	})

	return bookingError(err, "refusing attempt "+attemptID)
}

func (s *Store) tellPlaced(ctx context.Context, tx pgx.Tx, r dbsqlc.PlacementRequest, state berth.TrialState) error {
	if err := s.q.InsertOutbox(ctx, tx, &dbsqlc.InsertOutboxParams{
		Kind: berth.OutboxPlaced, WorkflowID: r.WorkflowID, Payload: encode(map[string]string{"attempt_id": r.AttemptID}),
	}); err != nil {
		return err
	}

	return s.notify(ctx, tx, berth.Event{Kind: "trial.state", SweepID: r.SweepID, Subject: r.TrialID, Data: state}, channelOutbox)
}

// HoldRequests stores why requests wait that Queue leaves out: their sweep takes no
// trials, or its earlier ones go first.
func (s *Store) HoldRequests(ctx context.Context) error {
	return translate(s.q.HoldRequests(ctx, s.pool), "storing why requests are not looked at")
}

// StoreReasons writes why requests still wait and the capacity kept free for
// them, by attempt, all or nothing. Errors: conflict when one of them cannot be
// stored.
func (s *Store) StoreReasons(ctx context.Context, waits map[string]berth.Wait) error {
	params := &dbsqlc.StoreReasonsParams{}

	for id, w := range waits {
		params.AttemptIDs = append(params.AttemptIDs, id)
		params.AllReasons = append(params.AllReasons, encode(w.Reasons))
		params.KeptHosts = append(params.KeptHosts, w.Kept.HostID)
		params.KeptDevices = append(params.KeptDevices, w.Kept.DeviceID)
	}

	return bookingError(translate(s.q.StoreReasons(ctx, s.pool, params), "storing reasons"), "storing reasons")
}
