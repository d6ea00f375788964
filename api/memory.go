package api

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/timeline"
)

// GetAttemptMemory is GET /attempts/{id}/memory.
func (h *handlers) GetAttemptMemory(ctx context.Context, r openapi.GetAttemptMemoryRequestObject) (openapi.GetAttemptMemoryResponseObject, error) {
	attempt, err := h.attempt(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	points, err := h.deps.Store.ListMemory(ctx, attempt.ID)
	if err != nil {
		return nil, err
	}

	out := openapi.AttemptMemory{
		Points: all(points, toMemoryPoint), IntervalSeconds: timeline.MemoryInterval(0),
		HostReservedBytes: attempt.Demand.MemoryBytes, DeviceReservedBytes: attempt.Demand.DeviceBytes,
		HostPeakBytes: attempt.Usage.MemoryPeakBytes, DevicePeakBytes: attempt.Usage.DevicePeakBytes,
	}

	if len(points) > 0 {
		out.IntervalSeconds = timeline.MemoryInterval(points[len(points)-1].Second)
	}

	return openapi.GetAttemptMemory200JSONResponse(out), nil
}

func toMemoryPoint(p berth.MemoryPoint) openapi.MemoryPoint {
	out := openapi.MemoryPoint{At: p.At, HostBytes: p.HostBytes, DeviceBytes: p.DeviceBytes}
	if p.SMMilli != nil {
		out.SmActivity = new(float64(*p.SMMilli) / berth.FullActivity)
	}

	return out
}
