package api

import (
	"cmp"
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/timeline"
)

// Defaults of openapi.yaml.
const (
	defaultUsageHours  = 6
	defaultUsagePoints = 400
)

// GetHostUsage is GET /hosts/{id}/usage.
func (h *handlers) GetHostUsage(ctx context.Context, r openapi.GetHostUsageRequestObject) (openapi.GetHostUsageResponseObject, error) {
	host, err := h.host(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	covered := time.Duration(cmp.Or(given(r.Params.Hours), defaultUsageHours)) * time.Hour
	every := timeline.MachineInterval(covered, cmp.Or(given(r.Params.MaxPoints), defaultUsagePoints))

	points, err := h.deps.Store.ListMachine(ctx, host.ID, covered, every)
	if err != nil {
		return nil, err
	}

	out := openapi.HostUsage{IntervalSeconds: int(every.Seconds()), Points: []openapi.UsagePoint{}, Devices: []openapi.DeviceUsage{}}

	for _, p := range points {
		last := len(out.Devices) - 1

		switch {
		case p.DeviceID == "":
			point := toUsagePoint(p)
			point.CoresReserved = new(float64(p.CPUMilli) / 1000)
			out.Points = append(out.Points, point)
		case last < 0 || out.Devices[last].ID != p.DeviceID:
			out.Devices = append(out.Devices, openapi.DeviceUsage{ID: p.DeviceID, Points: []openapi.UsagePoint{toUsagePoint(p)}})
		default:
			out.Devices[last].Points = append(out.Devices[last].Points, toUsagePoint(p))
		}
	}

	return openapi.GetHostUsage200JSONResponse(out), nil
}

func toUsagePoint(p berth.MachinePoint) openapi.UsagePoint {
	out := openapi.UsagePoint{
		At: p.At, MemoryBytes: p.MemoryBytes, ReservedBytes: p.ReservedBytes, MeasuredBytes: p.MeasuredBytes,
		UsedByOthersBytes: p.OthersBytes, Attempts: p.Attempts,
	}
	if p.ActivityMilli != nil {
		out.SmActivity = new(float64(*p.ActivityMilli) / berth.FullActivity)
	}

	return out
}
