package api

import (
	"context"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// ListHosts is GET /hosts.
func (h *handlers) ListHosts(ctx context.Context, _ openapi.ListHostsRequestObject) (openapi.ListHostsResponseObject, error) {
	hosts, err := h.deps.Store.ListHosts(ctx)

	return openapi.ListHosts200JSONResponse{Data: all(hosts, toHost)}, err
}

// GetHost is GET /hosts/{id}.
func (h *handlers) GetHost(ctx context.Context, r openapi.GetHostRequestObject) (openapi.GetHostResponseObject, error) {
	host, err := h.host(ctx, r.ID)

	return openapi.GetHost200JSONResponse(toHost(host)), err
}

// UpdateHost is PATCH /hosts/{id}.
func (h *handlers) UpdateHost(ctx context.Context, r openapi.UpdateHostRequestObject) (openapi.UpdateHostResponseObject, error) {
	host, err := h.host(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	if err := h.deps.Store.SetHostState(ctx, host.ID, berth.HostState(r.Body.State)); err != nil {
		return nil, err
	}

	host, err = h.host(ctx, host.ID)

	return openapi.UpdateHost200JSONResponse(toHost(host)), err
}

// host finds a host by its id, its name, or a beginning of its id.
func (h *handlers) host(ctx context.Context, id string) (berth.Host, error) {
	hosts, err := h.deps.Store.ListHosts(ctx)
	if err != nil {
		return berth.Host{}, err
	}

	var found []berth.Host

	for _, host := range hosts {
		if host.ID == id || host.Name == id {
			return host, nil
		}

		if strings.HasPrefix(host.ID, strings.ToLower(id)) {
			found = append(found, host)
		}
	}

	return one(found, "host", id)
}

// one is the only thing that was found. Errors: not_found, conflict.
func one[T any](found []T, what, id string) (T, error) {
	var none T

	switch len(found) {
	case 0:
		return none, berth.Errorf(berth.KindNotFound, "there is no %s %q", what, id)
	case 1:
		return found[0], nil
	default:
		return none, berth.Errorf(berth.KindConflict, "several %ss have an id that starts with %q; give more of it", what, id)
	}
}
