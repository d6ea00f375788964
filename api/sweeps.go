package api

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// idPrefix is what the id of a row may begin with; anything else is no id, and
// must not reach a LIKE.
var (
	idPrefix = regexp.MustCompile(`^[0-9a-f-]{1,36}$`)
	fullID   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// sweepID completes the beginning of a sweep's id. Errors: not_found, conflict.
func (s *Server) sweepID(ctx context.Context, id string) (string, error) {
	id = strings.ToLower(id)

	switch {
	case !idPrefix.MatchString(id):
		return "", berth.Errorf(berth.KindNotFound, "no sweep has an id that starts with %q", id)
	case fullID.MatchString(id):
		return id, nil
	default:
		return s.deps.Store.FindSweep(ctx, id)
	}
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

// listOf reads a page of what belongs to a sweep. Only of an empty one, which
// is rare, is it asked whether the sweep is there.
func listOf[T any](ctx context.Context, s *Server, id string, read func(sweepID string) ([]T, error)) ([]T, error) {
	full, err := s.sweepID(ctx, id)
	if err != nil {
		return nil, err
	}

	page, err := read(full)
	if err != nil || len(page) > 0 {
		return page, err
	}

	_, err = s.sweep(ctx, full)

	return nil, err
}

// sweepCursor is where a page of sweeps ended.
type sweepCursor struct {
	At time.Time `json:"t"`
	ID string    `json:"i"`
}

// ListSweeps is GET /sweeps.
func (h *handlers) ListSweeps(ctx context.Context, r openapi.ListSweepsRequestObject) (openapi.ListSweepsResponseObject, error) {
	var after sweepCursor
	if err := readCursor(given(r.Params.Cursor), &after); err != nil {
		return nil, err
	}

	limit, err := h.page(given(r.Params.Limit))
	if err != nil {
		return nil, err
	}

	sweeps, err := h.deps.Store.ListSweeps(ctx, words(given(r.Params.State)), after.At, after.ID, limit)
	if err != nil {
		return nil, err
	}

	out := openapi.SweepList{Data: make([]openapi.Sweep, len(sweeps))}

	for i, sweep := range sweeps {
		if out.Data[i], err = h.toSweep(sweep, false); err != nil {
			return nil, err
		}
	}

	if len(sweeps) == limit {
		last := sweeps[limit-1]
		out.NextCursor = writeCursor(sweepCursor{At: last.CreatedAt, ID: last.ID})
	}

	return openapi.ListSweeps200JSONResponse(out), nil
}

// defaultLimit is the one of the description.
const defaultLimit = 100

// words are the texts of a filter.
func words[T ~string](filter []T) []string {
	return all(filter, func(v T) string { return string(v) })
}

// GetSweep is GET /sweeps/{id}.
func (h *handlers) GetSweep(ctx context.Context, r openapi.GetSweepRequestObject) (openapi.GetSweepResponseObject, error) {
	sweep, err := h.sweepOut(ctx, r.ID)

	return openapi.GetSweep200JSONResponse{SweepJSONResponse: sweep}, err
}

// sweepOut reads a sweep for an answer.
func (h *handlers) sweepOut(ctx context.Context, id string) (openapi.SweepJSONResponse, error) {
	sweep, err := h.readSweep(ctx, id, h.deps.Store.GetSweep)
	if err != nil {
		return openapi.SweepJSONResponse{}, err
	}

	out, err := h.toSweep(sweep, true)

	return openapi.SweepJSONResponse(out), err
}

// DeleteSweep is DELETE /sweeps/{id}.
func (h *handlers) DeleteSweep(ctx context.Context, r openapi.DeleteSweepRequestObject) (openapi.DeleteSweepResponseObject, error) {
	if len(r.ID) < berth.DeletePrefix {
		return nil, berth.Errorf(berth.KindInvalid, "%q is too short to delete a sweep for good: give at least the %d characters of its id that lists show",
			r.ID, berth.DeletePrefix)
	}

	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	return openapi.DeleteSweep204Response{}, h.deps.Store.DeleteSweep(ctx, sweep.ID)
}
