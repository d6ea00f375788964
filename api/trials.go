package api

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// ListTrials is GET /sweeps/{id}/trials.
func (h *handlers) ListTrials(ctx context.Context, r openapi.ListTrialsRequestObject) (openapi.ListTrialsResponseObject, error) {
	limit := h.pageSize(given(r.Params.Limit))

	sweepID, err := h.sweepID(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	query := berth.TrialQuery{
		TrialFilter: berth.TrialFilter{
			States: as[berth.TrialState](given(r.Params.State)), ValueMin: r.Params.ValueMin, ValueMax: r.Params.ValueMax,
			Stage: given(r.Params.Stage),
		},
		Sort: berth.ParseSort(string(cmp.Or(given(r.Params.Sort), openapi.TrialSortNumber))), Limit: limit,
		Metrics: r.Params.Metric,
	}
	if err := checkFilter(query.TrialFilter); err != nil {
		return nil, err
	}

	key := listKey("trials", sweepID, query.States, query.ValueMin, query.ValueMax, query.Stage, query.Sort)

	after, total, err := readListCursor(given(r.Params.Cursor), key)
	if err != nil {
		return nil, err
	}

	query.After, query.Count = after, after == nil

	page, err := h.deps.Store.PageTrials(ctx, sweepID, query)
	if err != nil {
		return nil, err
	}

	if len(page.Rows) == 0 { // which is rare: only then the sweep may not be there
		if _, err := h.sweep(ctx, sweepID); err != nil {
			return nil, err
		}
	}

	total = cmp.Or(page.Total, total)

	return openapi.ListTrials200JSONResponse{
		Data: all(page.Rows, h.toListedTrial), NextCursor: nextCursor(page.Next, key, total), Total: total,
	}, nil
}

// checkFilter refuses a lower bound above the upper one, bounds that are not finite, and a stage that
// is no beginning of a key.
func checkFilter(q berth.TrialFilter) error {
	for name, bound := range map[string]*float64{"value_min": q.ValueMin, "value_max": q.ValueMax} {
		if bound != nil && (math.IsNaN(*bound) || math.IsInf(*bound, 0)) {
			return badParameter(name, "send a number; leave the parameter out for no bound")
		}
	}

	if strings.Trim(q.Stage, "0123456789abcdef") != "" {
		return badParameter("stage", "send the key of a stage, or its first digits, such as 3f2a91c0")
	}

	if q.ValueMin != nil && q.ValueMax != nil && *q.ValueMin > *q.ValueMax {
		return badParameter("value_min", fmt.Sprintf("%v is more than value_max, which is %v", *q.ValueMin, *q.ValueMax))
	}

	return nil
}

// ListFailures is GET /sweeps/{id}/failures.
func (h *handlers) ListFailures(ctx context.Context, r openapi.ListFailuresRequestObject) (openapi.ListFailuresResponseObject, error) {
	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	reasons, err := h.deps.Store.Failures(ctx, sweep.ID)

	return openapi.ListFailures200JSONResponse{Data: all(reasons, func(f berth.FailureReason) openapi.FailureReason {
		return openapi.FailureReason{
			State: openapi.TrialState(f.State), FailureKind: string(f.Kind), Message: f.Message, Trials: f.Trials, First: f.First,
		}
	})}, err
}

// GetTrial is GET /sweeps/{id}/trials/{number}.
func (h *handlers) GetTrial(ctx context.Context, r openapi.GetTrialRequestObject) (openapi.GetTrialResponseObject, error) {
	trial, err := h.trial(ctx, r.ID, r.Number)
	if err != nil {
		return nil, err
	}

	rungs, err := h.deps.Store.ListRungs(ctx, trial.ID)
	out := h.toTrial(trial)

	if len(rungs) > 0 {
		out.Rungs = all(rungs, toRung)
	}

	return openapi.GetTrial200JSONResponse(out), err
}

// UpdateTrial is PATCH /sweeps/{id}/trials/{number}.
func (h *handlers) UpdateTrial(ctx context.Context, r openapi.UpdateTrialRequestObject) (openapi.UpdateTrialResponseObject, error) {
	trial, err := h.trial(ctx, r.ID, r.Number)
	if err != nil {
		return nil, err
	}

	if err := h.deps.Store.SetTrialNote(ctx, trial.SweepID, trial.Number, r.Body.Note, r.Body.NoteWas); err != nil {
		return nil, err
	}

	trial.Note = r.Body.Note

	return openapi.UpdateTrial200JSONResponse(h.toTrial(trial)), nil
}

func (h *handlers) trial(ctx context.Context, id string, number int) (berth.Trial, error) {
	sweepID, err := h.sweepID(ctx, id)
	if err != nil {
		return berth.Trial{}, err
	}

	trial, err := h.deps.Store.GetTrial(ctx, sweepID, number)
	if err != nil && berth.KindOf(err) == berth.KindNotFound {
		if _, missing := h.sweep(ctx, sweepID); missing != nil {
			return trial, missing
		}
	}

	return trial, err
}

// ListTrialAttempts is GET /sweeps/{id}/trials/{number}/attempts.
func (h *handlers) ListTrialAttempts(ctx context.Context, r openapi.ListTrialAttemptsRequestObject) (openapi.ListTrialAttemptsResponseObject, error) {
	trial, err := h.trial(ctx, r.ID, r.Number)
	if err != nil {
		return nil, err
	}

	attempts, err := h.deps.Store.ListAttempts(ctx, trial.ID)

	return openapi.ListTrialAttempts200JSONResponse{Data: all(attempts, func(a berth.Attempt) openapi.Attempt {
		return toSweepAttempt(berth.SweepAttempt{Attempt: a, TrialNumber: trial.Number})
	})}, err
}

func toSweepAttempt(a berth.SweepAttempt) openapi.Attempt {
	out := toAttempt(a.Attempt)
	out.TrialNumber, out.ShapeKey = a.TrialNumber, a.ShapeKey

	return out
}

// attemptCursor is where a page of a sweep's attempts ended.
type attemptCursor struct {
	Trial  int `json:"t"`
	Number int `json:"n"`
}

// ListSweepAttempts is GET /sweeps/{id}/attempts.
func (h *handlers) ListSweepAttempts(ctx context.Context, r openapi.ListSweepAttemptsRequestObject) (openapi.ListSweepAttemptsResponseObject, error) {
	sweepID, err := h.sweepID(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	attempts, next, err := pageOf(h.Server, r.Params.Cursor, r.Params.Limit, func(after attemptCursor, limit int) ([]berth.SweepAttempt, error) {
		return h.deps.Store.ListSweepAttempts(ctx, sweepID, after.Trial, after.Number, limit)
	}, func(a berth.SweepAttempt) attemptCursor { return attemptCursor{Trial: a.TrialNumber, Number: a.Number} })

	if err == nil && len(attempts) == 0 { // which is rare: only then the sweep may not be there
		_, err = h.sweep(ctx, sweepID)
	}

	return openapi.ListSweepAttempts200JSONResponse{Data: all(attempts, toSweepAttempt), NextCursor: next}, err
}

// attempt reads an attempt. Errors: not_found, also for a malformed id.
func (s *Server) attempt(ctx context.Context, id string) (berth.Attempt, error) {
	missing := berth.Errorf(berth.KindNotFound, "there is no attempt %q; give its whole id", id)

	if !fullID.MatchString(strings.ToLower(id)) {
		return berth.Attempt{}, missing
	}

	attempt, err := s.deps.Store.GetAttempt(ctx, strings.ToLower(id))
	if err != nil && berth.KindOf(err) == berth.KindNotFound {
		return attempt, missing
	}

	return attempt, err
}

// GetAttempt is GET /attempts/{id}.
func (h *handlers) GetAttempt(ctx context.Context, r openapi.GetAttemptRequestObject) (openapi.GetAttemptResponseObject, error) {
	attempt, err := h.attempt(ctx, r.ID)

	return openapi.GetAttempt200JSONResponse(toAttempt(attempt)), err
}

// defaultMetrics is how many points are listed unless the caller says.
const defaultMetrics = 10_000

// ListMetrics is GET /attempts/{id}/metrics.
func (h *handlers) ListMetrics(ctx context.Context, r openapi.ListMetricsRequestObject) (openapi.ListMetricsResponseObject, error) {
	attempt, err := h.attempt(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	points, err := h.deps.Store.ListMetrics(ctx, attempt.ID, given(r.Params.Name), cmp.Or(given(r.Params.Limit), defaultMetrics))

	return openapi.ListMetrics200JSONResponse{Data: all(points, toMetric)}, err
}
