package api

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// RemoveHost is DELETE /hosts/{id}.
func (h *handlers) RemoveHost(ctx context.Context, r openapi.RemoveHostRequestObject) (openapi.RemoveHostResponseObject, error) {
	host, err := h.host(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	if host.Name != r.ID && len(r.ID) < berth.DeletePrefix { // the name of a host that is gone begins many ids
		return nil, berth.Errorf(berth.KindInvalid, "no host is called %q, and it is too short for an id: to remove a host give its name, or at least the %d characters of its id that lists show",
			r.ID, berth.DeletePrefix)
	}

	return openapi.RemoveHost204Response{}, h.deps.Store.RemoveHost(ctx, host.ID, given(r.Params.Force))
}

// UpdateDevice is PATCH /devices/{id}.
func (h *handlers) UpdateDevice(ctx context.Context, r openapi.UpdateDeviceRequestObject) (openapi.UpdateDeviceResponseObject, error) {
	device, err := h.device(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	if r.Body.State == openapi.DevicePatchStateCordoned {
		err = h.deps.Store.CordonDevice(ctx, device.ID, r.Body.Reason)
	} else {
		err = h.deps.Store.ReadyDevice(ctx, device.ID)
	}

	if err != nil {
		return nil, err
	}

	device, err = h.device(ctx, device.ID)

	return openapi.UpdateDevice200JSONResponse(toDevice(device)), err
}

// device finds a GPU by its id, or, while its host is listed, by a prefix of the id.
func (h *handlers) device(ctx context.Context, id string) (berth.Device, error) {
	device, err := h.deps.Store.GetDevice(ctx, id)
	if berth.KindOf(err) != berth.KindNotFound {
		return device, err
	}

	hosts, err := h.deps.Store.ListHosts(ctx)
	if err != nil {
		return berth.Device{}, err
	}

	var found []berth.Device

	for _, host := range hosts {
		for _, device := range host.Devices {
			if strings.HasPrefix(device.ID, id) {
				found = append(found, device)
			}
		}
	}

	return one(found, "GPU", id)
}

// host finds a host by its id, its name, or a beginning of its id. A name that
// several hosts have is refused: a command for one must not reach the other.
func (h *handlers) host(ctx context.Context, id string) (berth.Host, error) {
	hosts, err := h.deps.Store.ListHosts(ctx)
	if err != nil {
		return berth.Host{}, err
	}

	var named, found []berth.Host

	for _, host := range hosts {
		switch {
		case host.ID == id:
			return host, nil
		case host.Name == id:
			named = append(named, host)
		case strings.HasPrefix(host.ID, strings.ToLower(id)):
			found = append(found, host)
		}
	}

	switch len(named) {
	case 0:
		return one(found, "host", id)
	case 1:
		return named[0], nil
	default:
		return berth.Host{}, sameName(named)
	}
}

// sameName says which hosts share a name.
func sameName(hosts []berth.Host) error {
	all := make([]string, len(hosts))
	for i, host := range hosts {
		all[i] = fmt.Sprintf("%s (%s, last seen %s)", host.ID, host.State, host.LastSeenAt.UTC().Format(time.RFC3339))
	}

	return berth.Errorf(berth.KindConflict, "%d hosts are called %q: %s; give the id, and remove the one that is gone with `berth host remove ID`",
		len(hosts), hosts[0].Name, strings.Join(all, ", "))
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
