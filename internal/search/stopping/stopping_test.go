package stopping_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/stopping"
)

var loss = berth.Objective{Metric: "loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyLast}

// flags are the decisions of trials that come to the first rung one after the other, and
// succeed unless they are stopped.
func flags(rule *stopping.Rule, values ...float64) (stops []int) {
	var others []berth.RungValue

	for _, v := range values {
		reports := rule.Follow().Add(1, &v)
		stop := rule.Decide(reports[0], others).Stop
		others = append(others, berth.RungValue{Value: &v, Succeeded: !stop})
		stops = append(stops, map[bool]int{true: 1}[stop])
	}

	return stops
}

// Optuna 5.0.0's SuccessiveHalvingPruner and MedianPruner decide so.
func TestDecide_AsOptuna(t *testing.T) {
	t.Parallel()

	values := []float64{5, 4, 6, 3, 7, 2, 8, 1, 9}

	asha := stopping.New(berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: 3, Eta: 3}, loss)
	require.Equal(t, []int{0, 0, 1, 0, 1, 0, 1, 0, 1}, flags(asha, values...))

	later := stopping.New(berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: 3, Eta: 3, Startup: 4}, loss)
	require.Equal(t, []int{0, 0, 0, 0, 1, 0, 1, 0, 1}, flags(later, values...), "four trials come there first")

	median := stopping.New(berth.EarlyStop{Rule: berth.StopMedian, Min: 1, Interval: 1, Startup: 3}, loss)
	require.Equal(t, []int{0, 0, 0, 0, 1, 0, 1, 0, 1}, flags(median, values...))

	for i := range values {
		values[i] = -values[i]
	}

	accuracy := loss
	accuracy.Goal = berth.GoalMaximize
	require.Equal(t, []int{0, 0, 1, 0, 1, 0, 1, 0, 1}, flags(stopping.New(berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: 3, Eta: 3}, accuracy), values...))
}

// follow returns what an attempt that reports these values at steps 1, 2, … is judged by.
func follow(rule *stopping.Rule, values ...float64) (reports []berth.RungReport) {
	f := rule.Follow()
	for i, v := range values {
		reports = append(reports, f.Add(int64(i+1), finite(v))...)
	}

	return reports
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}

	return &v
}

func TestFollow_Rungs(t *testing.T) {
	t.Parallel()

	asha := berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: 27, Eta: 3}
	steps := func(reports []berth.RungReport) (rungs, steps []int64) {
		for _, r := range reports {
			rungs, steps = append(rungs, r.Rung), append(steps, r.Step)
		}

		return rungs, steps
	}

	rungs, at := steps(follow(stopping.New(asha, loss), make([]float64, 40)...))
	require.Equal(t, []int64{0, 1, 2}, rungs)
	require.Equal(t, []int64{1, 3, 9}, at, "the step at which trials end is not judged")

	f := stopping.New(asha, loss).Follow() // it reports each tenth step
	rungs, at = steps(f.Add(10, new(1.0)))
	require.Equal(t, []int64{0, 1, 2}, rungs, "a report that passes several rungs counts at each")
	require.Equal(t, []int64{10, 10, 10}, at)
	require.Empty(t, f.Add(10, new(2.0)), "the same step again")
	require.Empty(t, f.Add(3, new(2.0)), "a step that begins anew")
	require.Empty(t, f.Add(20, new(2.0)))

	f = stopping.New(berth.EarlyStop{Rule: berth.StopMedian, Min: 2, Interval: 2}, loss).Follow()

	require.Empty(t, f.Add(1, new(3.0)))
	rungs, _ = steps(f.Add(2, new(3.0)))
	require.Equal(t, []int64{0}, rungs)
	require.Empty(t, f.Add(3, new(1.0)))
	reports := f.Add(9, new(2.0)) // 4, 6 and 8 passed: judged once
	require.Equal(t, []berth.RungReport{{Rung: 3, Step: 9, Value: new(2.0), Best: new(1.0)}}, reports)
}

// A trial is judged by the value that counts by the objective's strategy.
func TestFollow_Strategy(t *testing.T) {
	t.Parallel()

	for strategy, want := range map[berth.Strategy]float64{berth.StrategyLast: 6, berth.StrategyBest: 2, berth.StrategyMean: 4} {
		objective := loss
		objective.Strategy = strategy
		reports := follow(stopping.New(berth.EarlyStop{Rule: berth.StopASHA, Min: 3, Max: 9, Eta: 3}, objective), 4, 2, 6)
		require.Len(t, reports, 1, strategy)
		require.InDelta(t, want, *reports[0].Value, 0, strategy)
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()

	rule := stopping.New(berth.EarlyStop{Rule: berth.StopPatience, Min: 1, Patience: 2, MinDelta: 0.1}, loss)

	require.Empty(t, follow(rule, 1, 0.95, 0.85, 0.8), "small steps add up")

	reports := follow(rule, 1, math.NaN(), 0.95)
	require.Len(t, reports, 1)
	require.Equal(t, berth.StopDecision{
		Stop: true,
		Why:  "its loss has not improved by more than 0.1 in 2 reports, up to step 3; its best is 0.95",
	}, rule.Decide(reports[0], nil))
	require.True(t, rule.Keeps())

	reports = follow(rule, math.NaN(), math.Inf(1))
	require.Equal(t, "its loss has not improved by more than 0.1 in 2 reports, up to step 2; it has reported no number", rule.Decide(reports[0], nil).Why)
}

func TestThreshold(t *testing.T) {
	t.Parallel()

	rule := stopping.New(berth.EarlyStop{Rule: berth.StopThreshold, Min: 2, Above: new(10.0), Below: new(-1.0)}, loss)

	require.Empty(t, follow(rule, 99, 10, 3, -1), "bounds are allowed, and so is the first step")
	require.False(t, rule.Keeps())

	for value, why := range map[float64]string{
		11: "its loss is 11 at step 2, above 10", -2: "its loss is -2 at step 2, below -1",
		math.Inf(1): "its loss is NaN or infinite at step 2",
	} {
		reports := follow(rule, 0, value)
		require.Len(t, reports, 1, why)
		require.Equal(t, berth.StopDecision{Stop: true, Why: why}, rule.Decide(reports[0], nil))
	}
}

// Every decision says why in numbers, also that a trial goes on.
func TestDecide_Why(t *testing.T) {
	t.Parallel()

	asha := stopping.New(berth.EarlyStop{Rule: berth.StopASHA, Min: 3, Max: 27, Eta: 3}, loss)
	others := []berth.RungValue{{Value: new(0.1)}, {Value: nil}, {Value: new(0.5)}, {Value: new(0.25)}, {Value: new(0.125)}}

	own := berth.RungReport{Step: 3, Value: new(0.3), Best: new(0.3)}
	require.Equal(t, berth.StopDecision{Stop: true, Why: "its loss of 0.3 at step 3 is number 4 of 6; the best 2 go on"}, asha.Decide(own, others))

	own.Value = new(0.125)
	require.Equal(t, berth.StopDecision{Why: "its loss of 0.125 at step 3 is number 2 of 6; the best 2 go on"}, asha.Decide(own, others), "a tie goes on")

	patient := stopping.New(berth.EarlyStop{Rule: berth.StopASHA, Min: 3, Max: 27, Eta: 3, Startup: 6}, loss)
	require.Equal(t, berth.StopDecision{Why: "5 of 6 trials that must come there first were at step 3"}, patient.Decide(own, others))

	own.Value = nil
	require.Equal(t, berth.StopDecision{Stop: true, Why: "its loss is NaN or infinite at step 3"}, asha.Decide(own, others))

	own.Ended = true
	require.Equal(t, berth.StopDecision{Why: "its attempt had ended"}, asha.Decide(own, others))

	median := stopping.New(berth.EarlyStop{Rule: berth.StopMedian, Min: 1, Interval: 1, Startup: 2}, loss)
	own = berth.RungReport{Step: 3, Value: new(0.9), Best: new(0.4)}
	ended := []berth.RungValue{{Value: new(0.1), Succeeded: true}, {Value: new(0.2)}, {Value: nil, Succeeded: true}}
	require.Equal(t, "1 of 2 trials that must succeed before were at step 3", median.Decide(own, ended).Why)

	ended = append(ended, berth.RungValue{Value: new(0.5), Succeeded: true})
	require.Equal(t, berth.StopDecision{
		Stop: true,
		Why:  "its best loss up to step 3, 0.4, is worse than 0.3, the median of 2 trials that succeeded",
	}, median.Decide(own, ended))

	own.Best = new(0.3)
	require.False(t, median.Decide(own, ended).Stop)
}

// A job that reports a million steps is not judged a million times.
func TestFollow_MostRungs(t *testing.T) {
	t.Parallel()

	f := stopping.New(berth.EarlyStop{Rule: berth.StopMedian, Min: 1, Interval: 1}, loss).Follow()

	judged := 0
	for step := range int64(5000) {
		judged += len(f.Add(100*step, new(1.0)))
	}

	require.Equal(t, 1000, judged)
}

// NaN at one step is the worst value there, which the first trials may have; a best or a mean
// over the steps does not fall with it.
func TestDecide_NaN(t *testing.T) {
	t.Parallel()

	others := []berth.RungValue{{Value: new(1.0), Succeeded: true}, {Value: new(2.0), Succeeded: true}, {Value: new(3.0), Succeeded: true}}

	for _, c := range []struct {
		rule     string
		strategy berth.Strategy
		values   []float64
		startup  int
		stops    bool
	}{
		{berth.StopASHA, berth.StrategyLast, []float64{0.5, math.NaN()}, 4, false},
		{berth.StopASHA, berth.StrategyLast, []float64{0.5, math.NaN()}, 3, true},
		{berth.StopASHA, berth.StrategyBest, []float64{0.5, math.NaN()}, 3, false},
		{berth.StopASHA, berth.StrategyMean, []float64{0.5, math.NaN()}, 3, false},
		{berth.StopMedian, berth.StrategyLast, []float64{0.5, math.NaN()}, 3, false},
		{berth.StopMedian, berth.StrategyLast, []float64{math.NaN(), math.NaN()}, 3, true},
		{berth.StopMedian, berth.StrategyLast, []float64{math.NaN(), math.NaN()}, 4, false},
		{berth.StopThreshold, berth.StrategyLast, []float64{0.5, math.NaN()}, 0, true},
	} {
		objective := loss
		objective.Strategy = c.strategy
		rule := stopping.New(berth.EarlyStop{Rule: c.rule, Min: 2, Max: 9, Eta: 3, Interval: 1, Startup: c.startup, Above: new(9.0)}, objective)
		reports := follow(rule, c.values...)
		require.Len(t, reports, 1)
		require.Equal(t, c.stops, rule.Decide(reports[0], others).Stop, "%+v", c)
	}
}
