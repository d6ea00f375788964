package api

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// GetMe is GET /me.
func (h *handlers) GetMe(ctx context.Context, _ openapi.GetMeRequestObject) (openapi.GetMeResponseObject, error) {
	return openapi.GetMe200JSONResponse(toMe(caller(ctx))), nil
}

func toMe(p principal) openapi.Me {
	return openapi.Me{Name: p.name, Role: p.role, KnownBy: p.knownBy, ExpiresAt: p.expires}
}

// GetServer is GET /server. That the caller is known as local says that no token
// is needed: see principal.
func (h *handlers) GetServer(ctx context.Context, _ openapi.GetServerRequestObject) (openapi.GetServerResponseObject, error) {
	config, limits := h.config, h.config.Limits

	return openapi.GetServer200JSONResponse{
		Version:     config.Version,
		TokenNeeded: caller(ctx).knownBy != openapi.KnownByLocal,
		Temporal:    openapi.ServerTemporal{Namespace: config.TemporalNamespace, URL: config.TemporalUI},
		Limits: openapi.ServerLimits{
			SweepFileBytes: limits.SpecBytes, PageRows: limits.PageRows,
			RequestsPerSecond: limits.Rate, RequestsAtOnce: limits.Burst, Streams: limits.Streams,
		},
		Retention: toRetention(config.Retention),
	}, nil
}

func toRetention(k berth.Retention) openapi.ServerRetention {
	return openapi.ServerRetention{SweepsSeconds: int64(k.Sweeps / time.Second), OutputsSeconds: int64(k.Outputs / time.Second)}
}
