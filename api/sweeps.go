package api

import (
	"cmp"
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/report"
)

var fullID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// sweepID is the id of the sweep with this name, or whose id begins so. Errors: not_found, conflict.
func (s *Server) sweepID(ctx context.Context, ref string) (string, error) {
	if id := strings.ToLower(ref); fullID.MatchString(id) {
		return id, nil
	}

	return s.deps.Store.FindSweep(ctx, ref)
}

// sweep reads a sweep without its counts, which take longer the more trials it
// has. Errors: not_found, conflict.
func (s *Server) sweep(ctx context.Context, id string) (berth.Sweep, error) {
	return s.readSweep(ctx, id, s.deps.Store.SweepRecord)
}

func (s *Server) readSweep(ctx context.Context, id string, read func(context.Context, string) (berth.Sweep, error)) (berth.Sweep, error) {
	full, err := s.sweepID(ctx, id)
	if err != nil {
		return berth.Sweep{}, err
	}

	sweep, err := read(ctx, full)
	if berth.KindOf(err) == berth.KindNotFound && err != nil {
		return sweep, berth.Errorf(berth.KindNotFound, "there is no sweep %s", full)
	}

	return sweep, err
}

// ListSweeps is GET /sweeps.
func (h *handlers) ListSweeps(ctx context.Context, r openapi.ListSweepsRequestObject) (openapi.ListSweepsResponseObject, error) {
	limit := h.pageSize(given(r.Params.Limit))

	query := berth.SweepQuery{
		States: as[berth.SweepState](given(r.Params.State)), Name: given(r.Params.Name), CreatedBy: given(r.Params.CreatedBy),
		Sort: berth.ParseSort(string(cmp.Or(given(r.Params.Sort), openapi.SweepSortCreatedAtDescending))), Limit: limit,
	}
	key := listKey("sweeps", query.States, query.Name, query.CreatedBy, query.Sort)

	after, total, err := readListCursor(given(r.Params.Cursor), key)
	if err != nil {
		return nil, err
	}

	query.After, query.Count = after, after == nil

	page, err := h.deps.Store.PageSweeps(ctx, query)
	if err != nil {
		return nil, err
	}

	total = cmp.Or(page.Total, total)
	out := openapi.SweepList{Data: make([]openapi.Sweep, len(page.Rows)), NextCursor: nextCursor(page.Next, key, total), Total: total}

	for i, sweep := range page.Rows {
		if out.Data[i], err = h.toSweep(sweep, false); err != nil {
			return nil, err
		}
	}

	return openapi.ListSweeps200JSONResponse(out), nil
}

// defaultLimit is the default in api/openapi.yaml.
const defaultLimit = 100

// as is a filter in the words of another type.
func as[B, A ~string](filter []A) []B {
	return all(filter, func(v A) B { return B(v) })
}

// GetSweep is GET /sweeps/{id}.
func (h *handlers) GetSweep(ctx context.Context, r openapi.GetSweepRequestObject) (openapi.GetSweepResponseObject, error) {
	sweep, err := h.readSweep(ctx, r.ID, h.deps.Store.GetSweep)
	if err != nil {
		return nil, err
	}

	out, err := h.toSweep(sweep, true)
	if err != nil {
		return nil, err
	}

	out.Eta, err = h.eta(ctx, sweep)

	return openapi.GetSweep200JSONResponse{SweepJSONResponse: openapi.SweepJSONResponse(out)}, err
}

// eta says how long a running sweep still takes; nil = that is not known. A list of sweeps
// does not say it: each row would be one more question.
func (h *handlers) eta(ctx context.Context, sweep berth.Sweep) (*openapi.ETA, error) {
	if sweep.State != berth.SweepRunning || sweep.Counts.Planned == 0 {
		return nil, nil //nolint:nilnil // it is not known
	}

	times, err := h.deps.Store.TrialTimes(ctx, sweep.ID)
	if err != nil {
		return nil, err
	}

	e, known := report.EstimateEnd(sweep, times, time.Now())
	if !known {
		return nil, nil //nolint:nilnil // it is not known
	}

	return &openapi.ETA{MinSeconds: e.Min.Seconds(), MaxSeconds: e.Max.Seconds(), Why: e.Why}, nil
}

// DeleteSweep is DELETE /sweeps/{id}.
func (h *handlers) DeleteSweep(ctx context.Context, r openapi.DeleteSweepRequestObject) (openapi.DeleteSweepResponseObject, error) {
	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	if sweep.Name != r.ID && len(r.ID) < berth.DeletePrefix {
		return nil, berth.Errorf(berth.KindInvalid, "%q is too short to delete a sweep for good: give its name, or at least the %d characters of its id that lists show",
			r.ID, berth.DeletePrefix)
	}

	return openapi.DeleteSweep204Response{}, h.deps.Store.DeleteSweep(ctx, sweep.ID)
}
