package api

import (
	"context"
	"regexp"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// keyPrefix is what the key of a shape may begin with.
var keyPrefix = regexp.MustCompile(`^[0-9a-f]{1,64}$`)

// ListProbes is GET /probes.
func (h *handlers) ListProbes(ctx context.Context, r openapi.ListProbesRequestObject) (openapi.ListProbesResponseObject, error) {
	after := ""
	if err := readCursor(given(r.Params.Cursor), &after); err != nil {
		return nil, err
	}

	limit, err := h.page(given(r.Params.Limit))
	if err != nil {
		return nil, err
	}

	probes, err := h.deps.Store.ListFootprints(ctx, after, limit)
	if err != nil {
		return nil, err
	}

	out := openapi.ProbeList{Data: all(probes, toProbe)}
	if len(probes) == limit {
		out.NextCursor = writeCursor(probes[limit-1].Key)
	}

	return openapi.ListProbes200JSONResponse(out), nil
}

// GetProbe is GET /probes/{id}.
func (h *handlers) GetProbe(ctx context.Context, r openapi.GetProbeRequestObject) (openapi.GetProbeResponseObject, error) {
	probe, err := h.probe(ctx, r.ID)

	return openapi.GetProbe200JSONResponse(toProbe(probe)), err
}

// ForgetProbe is DELETE /probes/{id}.
func (h *handlers) ForgetProbe(ctx context.Context, r openapi.ForgetProbeRequestObject) (openapi.ForgetProbeResponseObject, error) {
	probe, err := h.probe(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	return openapi.ForgetProbe204Response{}, h.deps.Store.ForgetFootprint(ctx, probe.Key)
}

func (h *handlers) probe(ctx context.Context, key string) (berth.ProbedShape, error) {
	if !keyPrefix.MatchString(key) {
		return berth.ProbedShape{}, berth.Errorf(berth.KindNotFound, "no shape with a key that starts with %q was measured", key)
	}

	return h.deps.Store.FindFootprint(ctx, key)
}
