package api

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// ListLeases is GET /leases.
func (h *handlers) ListLeases(ctx context.Context, r openapi.ListLeasesRequestObject) (openapi.ListLeasesResponseObject, error) {
	leases, next, err := pageOf(h.Server, r.Params.Cursor, r.Params.Limit, func(after berth.LeaseKey, limit int) ([]berth.HeldLease, error) {
		if err := checkKey(given(r.Params.Cursor), after.HostID, after.AttemptID); err != nil {
			return nil, err
		}

		return h.deps.Store.ListLeases(ctx, after, limit)
	}, berth.HeldLease.Key)

	return openapi.ListLeases200JSONResponse{Data: all(leases, toLease), NextCursor: next}, err
}

// checkKey refuses a cursor whose ids are none.
func checkKey(cursor string, ids ...string) error {
	for _, id := range ids {
		if cursor != "" && !fullID.MatchString(id) {
			return berth.Errorf(berth.KindInvalid, "%q is no cursor of this list; send next_cursor of the page before", cursor)
		}
	}

	return nil
}

func toLease(l berth.HeldLease) openapi.Lease {
	return openapi.Lease{
		AttemptID: l.AttemptID, AttemptState: openapi.AttemptState(l.AttemptState), Number: l.Number, Stage: l.Stage, Purpose: string(l.Purpose),
		SweepID: l.SweepID, SweepName: l.SweepName, Trial: l.TrialNumber, HostID: l.HostID, HostName: l.HostName, DeviceID: l.DeviceID,
		Demand: toDemand(l.Demand), ActivityMilli: l.Activity, State: openapi.LeaseState(l.State), Since: l.Since,
		MeasuredBytes: l.MeasuredBytes, MeasuredDeviceBytes: l.MeasuredDeviceBytes, MeasuredAt: l.MeasuredAt,
	}
}

// ListQueue is GET /queue.
func (h *handlers) ListQueue(ctx context.Context, r openapi.ListQueueRequestObject) (openapi.ListQueueResponseObject, error) {
	total := 0

	queue, next, err := pageOf(h.Server, r.Params.Cursor, r.Params.Limit, func(after berth.QueueKey, limit int) (queue []berth.QueuedRequest, err error) {
		if err := checkKey(given(r.Params.Cursor), after.AttemptID); err != nil {
			return nil, err
		}

		queue, total, err = h.deps.Store.ListQueue(ctx, after, limit)

		return queue, err
	}, berth.QueuedRequest.Key)

	return openapi.ListQueue200JSONResponse{Data: all(queue, toQueued), Total: total, NextCursor: next}, err
}

func toQueued(q berth.QueuedRequest) openapi.QueuedAttempt {
	return openapi.QueuedAttempt{
		Position: q.Position, AttemptID: q.AttemptID, Number: q.Number, Stage: q.Stage, Purpose: string(q.Purpose),
		SweepID: q.SweepID, SweepName: q.SweepName, SweepState: openapi.SweepState(q.SweepState), Trial: q.TrialNumber,
		Since: q.Since, NotBefore: q.NotBefore, Waiting: all(q.Reasons, toRejection),
		KeptHost: toKeptHost(q.Kept), BlockerEndsAt: q.BlockerEndsAt,
	}
}

func toKeptHost(k *berth.KeptHost) *openapi.KeptHost {
	if k == nil {
		return nil
	}

	return &openapi.KeptHost{ID: k.HostID, Name: k.HostName, DeviceID: k.DeviceID, Since: k.Since}
}
