package api

import (
	"context"

	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/search/insight"
)

// GetSweepInsight is GET /sweeps/{id}/insight.
func (h *handlers) GetSweepInsight(ctx context.Context, r openapi.GetSweepInsightRequestObject) (openapi.GetSweepInsightResponseObject, error) {
	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	in, err := h.deps.Store.InsightInput(ctx, sweep)
	if err != nil {
		return nil, err
	}

	found := insight.Make(in)

	return openapi.GetSweepInsight200JSONResponse{
		Trials: found.Trials, FromTrial: in.From,
		Importance:   all(found.Importance, toInsightImportance),
		ImportanceOf: openapi.InsightSample{Trials: found.Sample.Trials, TopShare: insight.TopShare, Problem: found.Sample.Problem},
		Best: all(found.Best, func(s insight.Step) openapi.InsightBest {
			return openapi.InsightBest{Trial: s.Trial, Value: s.Value, At: s.At.UTC()}
		}),
		Front: all(found.Front, func(t insight.Trial) openapi.InsightFront {
			return openapi.InsightFront{Trial: t.Number, Results: t.Results}
		}),
		Rungs: all(in.Rungs, func(r insight.Rung) openapi.InsightRung {
			return openapi.InsightRung{Rung: r.Rung, Step: r.Step, LastStep: r.LastStep, Trials: r.Trials, Stopped: r.Stopped, Best: r.Best, Cut: r.Cut}
		}),
		Origins: all(found.Origins, func(o insight.Origin) openapi.InsightOrigin {
			return openapi.InsightOrigin{By: o.By, Trials: o.Trials}
		}),
	}, nil
}

func toInsightImportance(i insight.Importance) openapi.InsightImportance {
	out := openapi.InsightImportance{Parameter: i.Parameter, Trials: i.Trials}
	if i.Trials >= insight.LeastTrials {
		out.Importance = &i.Share
	}

	return out
}
