package api

import (
	"context"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/workflows"
)

// A sweep is accepted before its workflow runs: a person who pauses it at once
// waits this long for it.
const (
	startPatience = 5 * time.Second
	startRetry    = 100 * time.Millisecond
)

// PauseSweep is POST /sweeps/{id}/pause.
func (h *handlers) PauseSweep(ctx context.Context, r openapi.PauseSweepRequestObject) (openapi.PauseSweepResponseObject, error) {
	sweep, err := h.update(ctx, r.ID, workflows.UpdatePause)

	return openapi.PauseSweep200JSONResponse{SweepJSONResponse: sweep}, err
}

// ResumeSweep is POST /sweeps/{id}/resume.
func (h *handlers) ResumeSweep(ctx context.Context, r openapi.ResumeSweepRequestObject) (openapi.ResumeSweepResponseObject, error) {
	sweep, err := h.update(ctx, r.ID, workflows.UpdateResume)

	return openapi.ResumeSweep200JSONResponse{SweepJSONResponse: sweep}, err
}

// StopSweep is POST /sweeps/{id}/stop.
func (h *handlers) StopSweep(ctx context.Context, r openapi.StopSweepRequestObject) (openapi.StopSweepResponseObject, error) {
	sweep, err := h.update(ctx, r.ID, workflows.UpdateStop)

	return openapi.StopSweep200JSONResponse{SweepJSONResponse: sweep}, err
}

// UpdateSweep is PATCH /sweeps/{id}.
func (h *handlers) UpdateSweep(ctx context.Context, r openapi.UpdateSweepRequestObject) (openapi.UpdateSweepResponseObject, error) {
	if r.Body.MaxParallel != nil {
		sweep, err := h.update(ctx, r.ID, workflows.UpdateSetMaxParallel, *r.Body.MaxParallel)
		if err != nil || r.Body.Note == nil {
			return openapi.UpdateSweep200JSONResponse{SweepJSONResponse: sweep}, err
		}
	}

	sweep, err := h.sweep(ctx, r.ID)
	if err == nil && r.Body.Note != nil {
		err = h.deps.Store.SetSweepNote(ctx, sweep.ID, *r.Body.Note, r.Body.NoteWas)
	}

	if err != nil {
		return nil, err
	}

	answer, err := h.answerSweep(ctx, sweep.ID)

	return openapi.UpdateSweep200JSONResponse{SweepJSONResponse: answer}, err
}

// CancelSweep is POST /sweeps/{id}/cancel.
func (h *handlers) CancelSweep(ctx context.Context, r openapi.CancelSweepRequestObject) (openapi.CancelSweepResponseObject, error) {
	sweep, err := h.steer(ctx, r.ID, "cancel", func(id string) error { return h.deps.Temporal.Cancel(ctx, id) })
	if !berth.SweepState(sweep.State).Terminal() {
		sweep.State = openapi.SweepStateCanceling // its workflow reports it in a moment
	}

	return openapi.CancelSweep202JSONResponse(sweep), err
}

func (h *handlers) update(ctx context.Context, id, update string, args ...any) (openapi.SweepJSONResponse, error) {
	return h.steer(ctx, id, update, func(id string) error {
		_, err := h.deps.Temporal.Update(ctx, id, update, args...)

		return err
	})
}

// steer sends a command to a sweep's workflow and answers with the sweep after
// it. It waits for a workflow that has not started yet; an ended one is a
// conflict.
func (h *handlers) steer(ctx context.Context, id, what string, tell func(id string) error) (openapi.SweepJSONResponse, error) {
	none := openapi.SweepJSONResponse{}
	what = strings.ReplaceAll(what, "_", " ") // for people

	for deadline := time.Now().Add(startPatience); ; {
		sweep, err := h.sweep(ctx, id)
		if err != nil {
			return none, err
		}

		if sweep.State.Terminal() {
			return none, berth.Errorf(berth.KindConflict, "cannot %s: the sweep has ended (%s)", what, sweep.State)
		}

		err = tell(sweep.ID)
		if err == nil {
			return h.answerSweep(ctx, sweep.ID)
		}

		if berth.KindOf(err) != berth.KindNotFound {
			return none, err
		}

		if time.Now().After(deadline) {
			return none, berth.Errorf(berth.KindConflict, "cannot %s: the sweep is %s and its workflow does not run; try again in a moment", what, sweep.State)
		}

		select {
		case <-ctx.Done():
			return none, berth.Errorf(berth.KindUnavailable, "waiting for the workflow of sweep %s: %w", sweep.ID, ctx.Err())
		case <-time.After(startRetry):
		}
	}
}

// answerSweep is a sweep as it is now, with its spec.
func (h *handlers) answerSweep(ctx context.Context, id string) (openapi.SweepJSONResponse, error) {
	sweep, err := h.readSweep(ctx, id, h.deps.Store.GetSweep)
	if err != nil {
		return openapi.SweepJSONResponse{}, err
	}

	out, err := h.toSweep(sweep, true)

	return openapi.SweepJSONResponse(out), err
}
