package main

import (
	"math"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/stopping"
)

// objective is the same for all curves.
var objective = berth.Objective{Metric: "value", Goal: berth.GoalMinimize, Strategy: berth.StrategyLast}

// never stops no run whose values are finite.
var never = berth.EarlyStop{Rule: berth.StopThreshold}

// length is the number of steps that a rule takes each run for. It is divisible by 9 and 16.
const length = 720

// scale returns the step of a rule at which step i of n, from 1, is reported. It rounds down:
// a rung at a third of a run is reached when at least a third is done.
type scale func(i, n int) int64

// evenly is for steps of equal work, such as epochs.
func evenly(i, n int) int64 { return int64(length * i / n) }

// bySize is for steps that each use more data than the one before, by the root of two: it
// goes by the share of the data.
func bySize(i, n int) int64 { return int64(length * math.Pow(2, float64(i-n)/2)) }

// outcome is what one sweep cost and found.
type outcome struct {
	seconds float64 // of all runs together
	wall    float64 // seconds from the start of the sweep to the end of its last run
	best    float64 // final value among runs that were not stopped; infinite = all were
}

// trial is a run of a sweep.
type trial struct {
	curve     curve
	follower  *stopping.Follower
	done      int     // steps
	next      float64 // when the next step ends
	succeeded bool
}

// rungEntry is what a trial reported at a rung.
type rungEntry struct {
	trial *trial
	value *float64
}

// sweep is a simulation in progress.
type sweep struct {
	rule    *stopping.Rule
	scale   scale
	waiting []curve
	running []*trial // in the order of their starts
	rungs   map[int64][]rungEntry
	outcome outcome
}

// simulate runs a sweep with q trials at once. Each place that becomes free takes the next
// run at once.
func simulate(runs []curve, q int, steps scale, stop berth.EarlyStop) outcome {
	s := sweep{
		rule: stopping.New(stop, objective), scale: steps, waiting: runs,
		rungs: make(map[int64][]rungEntry), outcome: outcome{best: math.Inf(1)},
	}

	for {
		for len(s.running) < q && len(s.waiting) > 0 {
			s.start()
		}

		if len(s.running) == 0 {
			return s.outcome
		}

		s.finishStep()
	}
}

func (s *sweep) start() {
	c := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.running = append(s.running, &trial{curve: c, follower: s.rule.Follow(), next: s.outcome.wall + c.seconds[0]})
}

// finishStep goes on to the next moment at which a step ends. Of steps that end at the same
// moment, the run that started earlier comes first.
func (s *sweep) finishStep() {
	at := 0

	for i, t := range s.running {
		if t.next < s.running[at].next {
			at = i
		}
	}

	t := s.running[at]
	s.outcome.wall = t.next
	s.outcome.seconds += t.curve.seconds[t.done]
	t.done++

	stop := s.judge(t)

	switch {
	case t.done == len(t.curve.values): // a stop would come too late
		t.succeeded = true
		s.outcome.best = min(s.outcome.best, t.curve.final())
	case !stop:
		t.next += t.curve.seconds[t.done]

		return
	}

	s.running = slices.Delete(s.running, at, at+1)
}

// judge reports the newest step of a trial, and says whether the rule stops the trial. A
// value stays at its rung for the trials that come later, also that of a stopped trial.
func (s *sweep) judge(t *trial) (stop bool) {
	value := t.curve.values[t.done-1]
	step := s.scale(t.done, len(t.curve.values))

	for _, report := range t.follower.Add(step, &value) {
		stop = s.rule.Decide(report, s.others(report.Rung)).Stop || stop
		s.rungs[report.Rung] = append(s.rungs[report.Rung], rungEntry{t, report.Value})
	}

	return stop
}

// others returns what earlier trials reported at a rung, as of now.
func (s *sweep) others(rung int64) []berth.RungValue {
	entries := s.rungs[rung]
	values := make([]berth.RungValue, len(entries))

	for i, e := range entries {
		values[i] = berth.RungValue{Value: e.value, Succeeded: e.trial.succeeded}
	}

	return values
}
