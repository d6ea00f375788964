package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// Bounds of one answer with curves.
const (
	mostCurves       = 500
	mostCurvePoints  = 100_000 // trials times max_points: some 2 MB of JSON
	defaultMaxPoints = 500
	chosenTrials     = 50 // of the best, and of the running ones
)

// ListCurves is GET /sweeps/{id}/metrics.
func (h *handlers) ListCurves(ctx context.Context, r openapi.ListCurvesRequestObject) (openapi.ListCurvesResponseObject, error) {
	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	numbers, err := trialNumbers(given(r.Params.Trials))
	if err != nil {
		return nil, err
	}

	if r.Params.Trials == nil {
		if numbers, err = h.chooseTrials(ctx, sweep); err != nil {
			return nil, err
		}
	}

	most := cmp.Or(given(r.Params.MaxPoints), defaultMaxPoints)
	if points := most * len(numbers); points > mostCurvePoints {
		return nil, badParameter("max_points", fmt.Sprintf("%d trials with %d points each are %d points, and one answer has at most %d; "+
			"send max_points=%d, or fewer trials", len(numbers), most, points, mostCurvePoints, mostCurvePoints/len(numbers)))
	}

	curves, err := h.deps.Store.Curves(ctx, sweep.ID, r.Params.Name, numbers, most)
	if err != nil {
		return nil, err
	}

	return openapi.ListCurves200JSONResponse{Data: all(curves, toCurve), Name: r.Params.Name}, nil
}

// trialNumbers reads such as 1,2,5-9.
func trialNumbers(text string) ([]int, error) {
	var numbers []int

	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}

		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}

		first, _ := strconv.Atoi(from) // the description lets digits pass only
		last, _ := strconv.Atoi(to)

		if first < 1 || last < first {
			return nil, badParameter("trials", fmt.Sprintf("%q is no range of trials: their numbers begin at 1, and the smaller one comes first", part))
		}

		for n := first; n <= last && n-first <= mostCurves; n++ {
			numbers = append(numbers, n)
		}

		slices.Sort(numbers) // each part at once: an overlap is no further trial

		if numbers = slices.Compact(numbers); len(numbers) > mostCurves {
			return nil, badParameter("trials", fmt.Sprintf("more than %d trials; ask for some of them at a time", mostCurves))
		}
	}

	return numbers, nil
}

// chooseTrials returns the trials of a chart whose reader chose none: the best,
// and the running ones.
func (h *handlers) chooseTrials(ctx context.Context, sweep berth.Sweep) ([]int, error) {
	best := berth.TrialQuery{Sort: berth.Sort{By: berth.SortValue, Descending: true}, TrialFilter: berth.TrialFilter{States: []berth.TrialState{berth.TrialSucceeded}}, Limit: chosenTrials}
	if o := sweep.Spec.Objective; o != nil {
		best.Sort.Descending = o.Goal != berth.GoalMinimize
	}

	running := berth.TrialQuery{Sort: berth.Sort{By: berth.SortNumber}, TrialFilter: berth.TrialFilter{States: []berth.TrialState{berth.TrialRunning}}, Limit: chosenTrials}

	var numbers []int

	for _, q := range []berth.TrialQuery{best, running} {
		page, err := h.deps.Store.PageTrials(ctx, sweep.ID, q)
		if err != nil {
			return nil, err
		}

		for _, t := range page.Rows {
			numbers = append(numbers, t.Number)
		}
	}

	return numbers, nil
}

func toCurve(c berth.Curve) openapi.Curve {
	out := openapi.Curve{
		Trial: c.TrialNumber, State: openapi.TrialState(c.TrialState), AttemptID: c.AttemptID, Total: c.Total, NotFinite: c.NotFinite,
		Steps:  all(c.Points, func(p berth.CurvePoint) int64 { return p.Step }),
		Values: all(c.Points, func(p berth.CurvePoint) float64 { return p.Value }),
	}
	if c.NotFinite > 0 {
		out.FirstNotFiniteStep = &c.FirstBad
	}

	return out
}

// ListMetricNames is GET /sweeps/{id}/metric-names.
func (h *handlers) ListMetricNames(ctx context.Context, r openapi.ListMetricNamesRequestObject) (openapi.ListMetricNamesResponseObject, error) {
	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	names, err := h.deps.Store.MetricNames(ctx, sweep.ID)

	return openapi.ListMetricNames200JSONResponse{Data: all(names, func(n berth.MetricName) openapi.MetricName {
		return openapi.MetricName{Name: n.Name, Trials: n.Trials, LastStep: n.LastStep}
	})}, err
}
