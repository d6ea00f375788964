package api

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// maxRerun is how many trials one rerun takes: as many as a sweep file may
// enqueue.
const maxRerun = 10_000

// CloneSweep is POST /sweeps/{id}/clone.
func (h *handlers) CloneSweep(ctx context.Context, r openapi.CloneSweepRequestObject) (openapi.CloneSweepResponseObject, error) {
	old, err := h.readSweep(ctx, r.ID, h.deps.Store.GetSweep)
	if err != nil {
		return nil, err
	}

	sweep, created, err := h.submitCopy(ctx, old, old.ID, "clone", given(r.Params.IdempotencyKey), r.Body, func() (berth.Spec, error) { return old.Spec.AsWritten(), nil })
	if created {
		return openapi.CloneSweep201JSONResponse{NewSweepJSONResponse: newSweep(sweep)}, err
	}

	return openapi.CloneSweep200JSONResponse{SweepJSONResponse: openapi.SweepJSONResponse(sweep)}, err
}

// RerunFailedTrials is POST /sweeps/{id}/rerun-failed.
func (h *handlers) RerunFailedTrials(ctx context.Context, r openapi.RerunFailedTrialsRequestObject) (openapi.RerunFailedTrialsResponseObject, error) {
	old, err := h.readSweep(ctx, r.ID, h.deps.Store.GetSweep)
	if err != nil {
		return nil, err
	}

	sweep, created, err := h.submitCopy(ctx, old, "", "rerun-failed", given(r.Params.IdempotencyKey), r.Body, func() (berth.Spec, error) {
		return h.failedOnly(ctx, old)
	})
	if created {
		return openapi.RerunFailedTrials201JSONResponse{NewSweepJSONResponse: newSweep(sweep)}, err
	}

	return openapi.RerunFailedTrials200JSONResponse{SweepJSONResponse: openapi.SweepJSONResponse(sweep)}, err
}

// failedOnly is a sweep's spec for the trials that failed until now. Errors: conflict
// when none failed, or too many.
func (h *handlers) failedOnly(ctx context.Context, old berth.Sweep) (berth.Spec, error) {
	trials, err := h.deps.Store.ListTrials(ctx, old.ID, []string{
		string(berth.TrialFailed), string(berth.TrialInfeasible), string(berth.TrialCanceled),
	}, 0, maxRerun+1)

	switch {
	case err != nil:
		return berth.Spec{}, err
	case len(trials) == 0:
		return berth.Spec{}, berth.Errorf(berth.KindConflict, "sweep %s has no failed, infeasible or canceled trial to run again", old.ID)
	case len(trials) > maxRerun:
		return berth.Spec{}, berth.Errorf(berth.KindConflict, "more than %d trials failed; correct the cause and clone the sweep instead", maxRerun)
	default:
		return onlyTrials(old.Spec.AsWritten(), trials), nil
	}
}

func newSweep(sweep openapi.Sweep) openapi.NewSweepJSONResponse {
	return openapi.NewSweepJSONResponse{Body: sweep, Headers: openapi.NewSweepResponseHeaders{Location: location(sweep.ID)}}
}

// onlyTrials is a spec that tries exactly the values of these trials.
func onlyTrials(s berth.Spec, trials []berth.Trial) berth.Spec {
	s.Search = berth.SearchSpec{Algorithm: berth.SearchList, Seed: s.Search.Seed}
	s.Limits.MaxTrials = 0
	s.Enqueue = make([]berth.Assignment, len(trials))
	parameters := make([]berth.Parameter, len(s.Parameters))

	for i, p := range s.Parameters {
		p.Count = 0 // is about grids only
		parameters[i] = p
	}

	s.Parameters = parameters

	for i, t := range trials {
		s.Enqueue[i] = berth.Assignment{}

		for _, p := range s.Parameters {
			if v, active := t.Params[p.Name]; active && p.Searched() {
				s.Enqueue[i][p.Name] = v
			}
		}
	}

	return s
}

// submitCopy submits a spec made from another sweep's. An idempotency key stands
// for the caller's body: the same call may make another spec by now. A search learns from
// what the learned sweep's did, although that may be deleted, or its name another's; empty =
// from what its own spec names.
func (h *handlers) submitCopy(
	ctx context.Context, old berth.Sweep, learned, verb, key string, change *openapi.SweepCopy, copied func() (berth.Spec, error),
) (openapi.Sweep, bool, error) {
	sent := cmp.Or(change, &openapi.SweepCopy{})

	body, err := json.Marshal(sent)
	if err != nil {
		return openapi.Sweep{}, false, berth.Errorf(berth.KindInternal, "marshaling the change of sweep %s: %w", old.ID, err)
	}

	return h.submit(ctx, submission{
		spec: func() (berth.Spec, error) { return readCopy(copied, sent.Name) }, learned: learned,
		route: "POST " + location(old.ID) + "/" + verb, key: key, body: body,
	})
}

// readCopy reads a copied spec like any other: the rules may be stricter than when that
// was submitted.
func readCopy(copied func() (berth.Spec, error), name string) (berth.Spec, error) {
	s, err := copied()
	if err != nil {
		return berth.Spec{}, err
	}

	s.Name = cmp.Or(name, s.Name)

	body, err := json.Marshal(s)
	if err != nil {
		return berth.Spec{}, berth.Errorf(berth.KindInternal, "marshaling the spec of %q: %w", s.Name, err)
	}

	return spec.Decode(body, "application/json")
}
