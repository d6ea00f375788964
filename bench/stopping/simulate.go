package main

import (
	"math"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/simulate"
)

// objective is the same for all curves.
var objective = berth.Objective{Metric: "value", Goal: berth.GoalMinimize, Strategy: berth.StrategyLast}

// never stops no run.
var never = berth.EarlyStop{}

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

// sweep runs these runs in their order, q at once.
func sweep(runs []simulate.Run, q int, steps scale, stop berth.EarlyStop) outcome {
	w := simulate.World{Objective: objective, Trials: len(runs), AtOnce: q, Step: steps}
	if stop != never {
		w.EarlyStop = &stop
	}

	w.Choose = func(past []berth.Observation) (berth.Assignment, simulate.Run, bool, error) {
		return nil, runs[len(past)], true, nil
	}

	o, err := simulate.Sweep(w)
	if err != nil { // Choose makes none
		panic(err)
	}

	if o.Trial == 0 {
		o.Best = math.Inf(1)
	}

	return outcome{seconds: o.Seconds, wall: o.Wall, best: o.Best}
}
