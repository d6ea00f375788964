package metrics

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
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
		s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "", berth.MetricsFile, berth.MetricsShim)
		s.Add(berth.MetricsFile, c.points...)

		value, status := s.Objective(berth.Objective{Metric: "m", Strategy: c.strategy, Goal: c.goal})
		require.Equal(t, c.status, status, "%+v", c)

		if c.status != berth.MetricFinite {
			require.Nil(t, value, "what cannot be ranked is no value")

			continue
		}

		require.NotNil(t, value)
		require.InDelta(t, c.want, *value, 0, "%+v", c)
	}
}

// docs/job-contract.md: "A repeated name and step replaces the earlier one."
func TestSeries_WhatWasReplacedDoesNotCount(t *testing.T) {
	t.Parallel()

	for _, strategy := range []berth.Strategy{berth.StrategyBest, berth.StrategyMean} {
		s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "acc", berth.MetricsFile)
		s.Add(berth.MetricsFile, metric("acc", 1, 1), metric("acc", 1, 0.7), metric("acc", 1, 0.8))

		value, _ := s.Objective(berth.Objective{Metric: "acc", Strategy: strategy, Goal: berth.GoalMaximize})
		require.InDelta(t, 0.8, *value, 0, strategy)
	}
}

// The first source that reports the objective counts, in whatever order they speak: the
// metrics file, the shim, what the job prints. Its curve is the objective's; of the other
// metrics each is the first source's that has it.
func TestSeries_Source(t *testing.T) {
	t.Parallel()

	printed := func(s *Series) { s.Add(berth.MetricsStdout, metric("acc", 1, 0.5), metric("loss", 1, 0.7)) }
	shim := func(s *Series) {
		s.Add(berth.MetricsShim, metric("acc", 1, 0.6), metric("acc", 2, 0.6), metric("val_loss", 1, 1), metric("loss", 1, 9))
	}
	file := func(s *Series) { s.Add(berth.MetricsFile, metric("acc", 1, 0.75)) }
	last := func(s *Series) { s.Add(berth.MetricsFile, final(metric("acc", 3, 0.75))) }
	expect := func(s *Series) { s.Expect(berth.MetricsShim) }
	stored := func(s *Series) { s.Pending(noon) }

	for name, c := range map[string]struct {
		does   []func(*Series)
		source string
		want   float64
		points map[string]int // of each metric, that are to be stored in the end
		drop   []string
	}{
		"only printed":             {[]func(*Series){printed}, berth.MetricsStdout, 0.5, map[string]int{"acc": 1, "loss": 1}, nil},
		"shim first":               {[]func(*Series){shim, printed}, berth.MetricsShim, 0.6, map[string]int{"acc": 2, "val_loss": 1, "loss": 1}, nil},
		"shim speaks, printed":     {[]func(*Series){expect, printed, shim}, berth.MetricsShim, 0.6, map[string]int{"acc": 2, "val_loss": 1, "loss": 1}, nil},
		"file, then shim":          {[]func(*Series){file, shim, printed}, berth.MetricsFile, 0.75, map[string]int{"acc": 1, "val_loss": 1, "loss": 1}, nil},
		"file at the end":          {[]func(*Series){printed, stored, file}, berth.MetricsFile, 0.75, map[string]int{"acc": 1}, []string{"acc"}},
		"a final record in it":     {[]func(*Series){printed, last}, berth.MetricsFile, 0.75, map[string]int{"acc": 1, "loss": 1}, nil},
		"chosen by an earlier run": {[]func(*Series){func(s *Series) { s.GoOn(berth.MetricsStdout) }, shim, printed, stored}, berth.MetricsShim, 0.6, map[string]int{"acc": 2, "val_loss": 1}, []string{"acc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "acc", berth.MetricsFile, berth.MetricsShim, berth.MetricsStdout)
			for _, do := range c.does {
				do(s)
			}

			s.End()

			value, _ := s.Objective(berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
			require.InDelta(t, c.want, *value, 0)
			require.Equal(t, c.source, s.Source("acc"))

			b, points := s.Pending(noon), make(map[string]int)
			for _, p := range b.Points {
				points[p.Name]++
			}

			require.Equal(t, c.points, points)
			require.Equal(t, c.drop, b.Drop)
		})
	}

	auto := berth.Spec{Metrics: berth.MetricsSpec{Source: berth.MetricsAuto}}
	require.Equal(t, []string{berth.MetricsFile, berth.MetricsShim, berth.MetricsStdout}, SourcesOf(auto))

	auto.Metrics.Source = berth.MetricsStdout
	require.Equal(t, []string{berth.MetricsStdout, berth.MetricsShim}, SourcesOf(auto), "Keras' epochs where nothing was printed")
}

// In a sweep without an objective each metric is the first source's that reports it.
func TestSeries_SourceWithoutAnObjective(t *testing.T) {
	t.Parallel()

	s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "", berth.MetricsFile, berth.MetricsShim, berth.MetricsStdout)
	s.Add(berth.MetricsShim, metric("acc", 1, 0.5), metric("loss", 1, 0.75))
	s.Add(berth.MetricsStdout, metric("batch_size", 1, 32), metric("loss", 1, 0.25))
	s.End()
	require.Equal(t, []berth.MetricPoint{metric("acc", 1, 0.5), metric("batch_size", 1, 32), metric("loss", 1, 0.75)}, byName(s.Pending(noon).Points))
}

func TestSeries_PendingAndRestoreKeepTheOrder(t *testing.T) {
	t.Parallel()

	s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "", berth.MetricsFile, berth.MetricsShim)
	s.Add(berth.MetricsFile, metric("a", 1, 1), metric("a", 2, 2))

	taken := s.Pending(noon)
	require.Len(t, taken.Points, 2)
	require.Empty(t, s.Pending(noon).Points)

	s.Add(berth.MetricsFile, metric("a", 3, 3))
	s.Restore(taken)
	require.Equal(t, []berth.MetricPoint{metric("a", 1, 1), metric("a", 2, 2), metric("a", 3, 3)}, s.Pending(noon).Points)
}

func TestSeries_BoundsTheNames(t *testing.T) {
	t.Parallel()

	s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "", berth.MetricsFile, berth.MetricsShim)
	for i := range MaxNames + 10 {
		s.Add(berth.MetricsFile, metric(fmt.Sprint("m", i), 1, 1))
	}

	s.Add(berth.MetricsFile, metric("m0", 2, 5))
	require.Len(t, s.Pending(noon).Points, MaxNames+1, "known names go on")

	_, status := s.Objective(berth.Objective{Metric: fmt.Sprint("m", MaxNames+1)})
	require.Empty(t, status)

	s.needed = "val"
	s.Add(berth.MetricsFile, metric("val", 1, 0.5))

	_, status = s.Objective(berth.Objective{Metric: "val"})
	require.Equal(t, berth.MetricFinite, status, "a trial that reports its result late has it")
}

// A statement that failed holds points of what is the objective no more.
func TestSeries_ForgetsWhatCouldNotBeStored(t *testing.T) {
	t.Parallel()

	s := NewSeries(NewThinner(100, 1_000_000, 0), nil, "acc", berth.MetricsFile, berth.MetricsShim)
	s.Add(berth.MetricsFile, metric("acc", 1, 0.99), metric("lr", 1, 0.1))
	away := s.Pending(noon)
	s.Forget(berth.MetricsFile, "acc")
	s.Add(berth.MetricsFile, metric("acc", 1, 0.5))
	s.Restore(away)

	b := s.Pending(noon)
	require.Equal(t, []string{"acc"}, b.Drop)
	require.Equal(t, []berth.MetricPoint{metric("lr", 1, 0.1), metric("acc", 1, 0.5)}, b.Points)
}

func TestThinner_KeepsWhatIsWithinTheRate(t *testing.T) {
	t.Parallel()

	thin := NewThinner(10, 2000, 0)

	for i := range 1500 { // 1,000 at once, then 5 a second
		at := noon.Add(time.Duration(max(i-999, 0)) * 200 * time.Millisecond)
		require.True(t, thin.add(berth.MetricPoint{Name: "m", Step: int64(i), At: at}), i)
	}

	require.Empty(t, thin.note())
}

func TestThinner_LeavesNoMetricOut(t *testing.T) {
	t.Parallel()

	s := NewSeries(NewThinner(10, 5000, 0), nil, "", berth.MetricsFile, berth.MetricsShim)
	last := map[string]int64{}
	kept := 0

	for step := range 1000 { // 100 metrics a second, ten times what may be
		for i := range 100 {
			p := metric(fmt.Sprint("m", i), int64(step), float64(step))
			p.At = noon.Add(time.Duration(step) * time.Second)
			s.Add(berth.MetricsFile, p)
		}

		s.thin.clock = noon.Add(time.Duration(step) * time.Second)
		kept += len(s.queue) + len(s.thin.release(s.thin.clock, false))
		s.queue = nil
	}

	s.End()

	for _, p := range s.Pending(noon).Points {
		last[p.Name] = p.Step
	}

	require.InDelta(t, 11_000, kept, 6500, "a thousand at once, then ten a second, at most 5,000 in all")
	require.LessOrEqual(t, kept, 5000)
	require.Len(t, last, 100, "the last value of each is there")
	require.EqualValues(t, 999, last["m7"])

	value, status := s.Objective(berth.Objective{Metric: "m3", Strategy: berth.StrategyMean})
	require.Equal(t, berth.MetricFinite, status)
	require.InDelta(t, 499.5, *value, 0, "all of them counted")
	require.Contains(t, s.Notes()[0], "metric points were left out")
	require.Contains(t, s.Notes()[0], "10 a second and 5000 in all")
}

func TestThinner_AdoptedAttemptIsReadAtOnce(t *testing.T) {
	t.Parallel()

	thin := NewThinner(10, 1_000_000, time.Hour)

	for i := range 36_000 { // what an hour held
		require.True(t, thin.add(berth.MetricPoint{Name: "m", Step: int64(i), At: noon}), i)
	}
}
