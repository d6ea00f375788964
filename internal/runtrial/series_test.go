package runtrial

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/metrics"
)

func TestSeries_Objective(t *testing.T) {
	t.Parallel()

	falling := []berth.MetricPoint{metric("m", 1, 4), metric("m", 2, 1), metric("m", 3, 2.5)}
	diverged := append(slices.Clip(falling), odd("m", 4, berth.MetricNaN))
	lost := []berth.MetricPoint{odd("m", 1, berth.MetricNaN), odd("m", 2, berth.MetricPosInfinity)}
	finals := append(slices.Clip(diverged), final(metric("m", 9, 42)), odd("m", 10, berth.MetricNaN))

	for _, c := range []struct {
		points   []berth.MetricPoint
		strategy berth.Strategy
		goal     berth.Goal
		want     float64
		status   berth.MetricStatus
	}{
		{falling, berth.StrategyLast, berth.GoalMaximize, 2.5, berth.MetricFinite},
		{falling, "", "", 2.5, berth.MetricFinite},
		{falling, berth.StrategyBest, berth.GoalMaximize, 4, berth.MetricFinite},
		{falling, berth.StrategyBest, berth.GoalMinimize, 1, berth.MetricFinite},
		{falling, berth.StrategyMean, berth.GoalMaximize, 2.5, berth.MetricFinite},
		{diverged, berth.StrategyLast, berth.GoalMaximize, 0, berth.MetricNaN},
		{diverged, berth.StrategyBest, berth.GoalMaximize, 4, berth.MetricFinite},
		{diverged, berth.StrategyMean, berth.GoalMinimize, 2.5, berth.MetricFinite},
		{lost, berth.StrategyBest, berth.GoalMaximize, 0, berth.MetricPosInfinity},
		{lost, berth.StrategyMean, berth.GoalMaximize, 0, berth.MetricPosInfinity},
		{finals, berth.StrategyLast, berth.GoalMaximize, 42, berth.MetricFinite},
		{finals, berth.StrategyBest, berth.GoalMinimize, 42, berth.MetricFinite},
		{[]berth.MetricPoint{final(metric("m", 1, 7))}, berth.StrategyBest, berth.GoalMinimize, 7, berth.MetricFinite},
		{[]berth.MetricPoint{metric("m", 1, 7), final(odd("m", 2, berth.MetricNaN))}, berth.StrategyLast, berth.GoalMinimize, 0, berth.MetricNaN},
		{[]berth.MetricPoint{metric("other", 1, 7)}, berth.StrategyLast, berth.GoalMinimize, 0, ""},
		{nil, berth.StrategyBest, berth.GoalMinimize, 0, ""},
	} {
		s := newSeries(newThinner(Bounds{}.orDefault(), 0), "", berth.MetricsFile, berth.MetricsShim)
		s.add(berth.MetricsFile, c.points...)

		value, status := s.objective(berth.Objective{Metric: "m", Strategy: c.strategy, Goal: c.goal})
		require.Equal(t, c.status, status, "%+v", c)

		if c.status != berth.MetricFinite {
			require.Nil(t, value, "what cannot be ranked is no value")

			continue
		}

		require.NotNil(t, value)
		require.InDelta(t, c.want, *value, 0, "%+v", c)
	}
}

func TestSeries_PendingAndRestoreKeepTheOrder(t *testing.T) {
	t.Parallel()

	s := newSeries(newThinner(Bounds{}.orDefault(), 0), "", berth.MetricsFile, berth.MetricsShim)
	s.add(berth.MetricsFile, metric("a", 1, 1), metric("a", 2, 2))

	taken := s.pending()
	require.Len(t, taken.points, 2)
	require.Empty(t, s.pending().points)

	s.add(berth.MetricsFile, metric("a", 3, 3))
	s.restore(taken)
	require.Equal(t, []berth.MetricPoint{metric("a", 1, 1), metric("a", 2, 2), metric("a", 3, 3)}, s.pending().points)
}

func TestSeries_BoundsTheNames(t *testing.T) {
	t.Parallel()

	s := newSeries(newThinner(Bounds{}.orDefault(), 0), "", berth.MetricsFile, berth.MetricsShim)
	for i := range metrics.MaxNames + 10 {
		s.add(berth.MetricsFile, metric(fmt.Sprint("m", i), 1, 1))
	}

	s.add(berth.MetricsFile, metric("m0", 2, 5))
	require.Len(t, s.pending().points, metrics.MaxNames+1, "known names go on")

	_, status := s.objective(berth.Objective{Metric: fmt.Sprint("m", metrics.MaxNames+1)})
	require.Empty(t, status)

	s.needed = "val"
	s.add(berth.MetricsFile, metric("val", 1, 0.5))

	_, status = s.objective(berth.Objective{Metric: "val"})
	require.Equal(t, berth.MetricFinite, status, "a trial that reports its result late has it")
}

// docs/job-contract.md: "A repeated name and step replaces the earlier one."
func TestSeries_WhatWasReplacedDoesNotCount(t *testing.T) {
	t.Parallel()

	const running = `{"epoch": 1, "batch": 1, "acc": 1.0}` + "\n" + `{"epoch": 1, "batch": 2, "acc": 0.7}` + "\n" + `{"epoch": 1, "batch": 3, "acc": 0.8}` + "\n"

	for strategy, want := range map[berth.Strategy]float64{theBest: 0.8, theMean: 0.8} {
		o := berth.Objective{Metric: "acc", Strategy: strategy, Goal: berth.GoalMaximize}
		out, _ := printedAs(t, &o, berth.Stdout, running)
		value, _ := out.metrics.objective(o)
		require.NotNil(t, value)
		require.InDelta(t, want, *value, 1e-9, strategy)
	}
}
