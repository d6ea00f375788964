package stopping

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berthml/berth"
)

// mostRungs bounds the judgements of one trial: median judges at each step, and a job may
// report a million. Later steps are not judged.
const mostRungs = 1000

// Rule is a sweep's rule of early stopping. It is immutable.
type Rule struct {
	stop      berth.EarlyStop
	objective berth.Objective
}

// New returns the rule of a valid sweep file.
func New(stop berth.EarlyStop, objective berth.Objective) *Rule {
	return &Rule{stop, objective}
}

// Keeps reports whether a trial that the rule stops has its result: it was not stopped for
// being worse than others, but since it improves no more.
func (r *Rule) Keeps() bool { return r.stop.Rule == berth.StopPatience }

// Compares reports whether the rule compares trials with each other: it asks at its steps, and
// not only when it stops one.
func (r *Rule) Compares() bool {
	return r.stop.Rule == berth.StopASHA || r.stop.Rule == berth.StopMedian
}

// Follower follows what one attempt reports of the objective, in order.
type Follower struct {
	rule *Rule

	seen   bool
	last   int64 // step of the newest report
	rung   int64 // the next one
	at     int64 // its step
	judged int
	best   *float64
	sum    float64
	finite int
	mark   *float64 // the newest value that improved by more than MinDelta
	since  int      // reports since then
}

// Follow begins with an attempt.
func (r *Rule) Follow() *Follower { return &Follower{rule: r, at: r.stop.Min} }

// Add takes in a report; a nil value is NaN or infinite. It returns the rungs that the
// attempt came to, mostly none. Reports at earlier steps than the newest are left out: an
// attempt that reads its log again, or a job that counts from 1 again, is not judged twice.
func (f *Follower) Add(step int64, value *float64) []berth.RungReport {
	if f.seen && step <= f.last {
		return nil
	}

	f.seen, f.last = true, step
	f.count(value)

	stop := f.rule.stop
	if step < stop.Min || stop.Max > 0 && step >= stop.Max {
		return nil
	}

	switch stop.Rule {
	case berth.StopASHA:
		return f.rungs(step, value, func(at int64) int64 { return at * stop.Eta })
	case berth.StopMedian:
		f.at = max(f.at, step-(step-stop.Min)%stop.Interval) // the last that the report passed
		f.rung = (f.at - stop.Min) / stop.Interval

		return f.rungs(step, value, func(at int64) int64 { return at + stop.Interval })
	case berth.StopPatience:
		if f.since >= stop.Patience {
			return f.rungs(step, value, func(int64) int64 { return step + 1 })
		}
	case berth.StopThreshold:
		if f.rule.beyond(value) != "" {
			return f.rungs(step, value, func(int64) int64 { return step + 1 })
		}
	}

	return nil
}

// count takes a report into the best and the mean.
func (f *Follower) count(value *float64) {
	f.since++

	if value == nil {
		return
	}

	f.sum += *value
	f.finite++

	if f.best == nil || f.rule.gain(*value, *f.best) > 0 {
		f.best = value
	}

	if f.mark == nil || f.rule.gain(*value, *f.mark) > f.rule.stop.MinDelta {
		f.mark, f.since = value, 0
	}
}

// rungs are those up to a step. next is the step of the one after.
func (f *Follower) rungs(step int64, value *float64, next func(at int64) int64) (reports []berth.RungReport) {
	for f.at <= step && f.judged < mostRungs {
		reports = append(reports, berth.RungReport{Rung: f.rung, Step: step, Value: f.counts(value), Best: f.best})
		f.rung++
		f.judged++
		f.at = next(f.at)
	}

	return reports
}

// counts is the value that counts by the objective's strategy, up to now.
func (f *Follower) counts(value *float64) *float64 {
	switch {
	case f.rule.objective.Strategy == berth.StrategyBest:
		return f.best
	case f.rule.objective.Strategy == berth.StrategyMean && f.finite > 0:
		return new(f.sum / float64(f.finite))
	default:
		return value
	}
}

// gain is by how much a is better than b.
func (r *Rule) gain(a, b float64) float64 {
	if r.objective.Goal == berth.GoalMinimize {
		return b - a
	}

	return a - b
}

// Decide judges a trial at a rung. others are the values of the sweep's other trials at this
// rung, in any order. It says why in numbers.
func (r *Rule) Decide(own berth.RungReport, others []berth.RungValue) berth.StopDecision {
	metric := r.objective.Metric

	switch {
	case own.Ended:
		return berth.StopDecision{Why: "its attempt had ended"}
	case own.Value == nil && r.stop.Rule == berth.StopThreshold:
		return berth.StopDecision{Stop: true, Why: fmt.Sprintf("its %s is NaN or infinite at step %d", metric, own.Step)}
	}

	switch r.stop.Rule {
	case berth.StopASHA:
		return r.halve(own, others)
	case berth.StopMedian:
		return r.median(own, others)
	case berth.StopPatience:
		best := "it has reported no number"
		if own.Best != nil {
			best = "its best is " + text(*own.Best)
		}

		return berth.StopDecision{Stop: true, Why: fmt.Sprintf("its %s has not improved%s in %d reports, up to step %d; %s",
			metric, r.moreThan(), r.stop.Patience, own.Step, best)}
	default:
		why := r.beyond(own.Value)

		return berth.StopDecision{Stop: why != "", Why: fmt.Sprintf("its %s is %s at step %d, %s", metric, text(*own.Value), own.Step, why)}
	}
}

func (r *Rule) moreThan() string {
	if r.stop.MinDelta == 0 {
		return ""
	}

	return " by more than " + text(r.stop.MinDelta)
}

// halve lets the best 1/Eta go on, and one at least, as Optuna's SuccessiveHalvingPruner and
// Determined's ASHA do. These judge the second trial already, by the first alone, and lose
// the best twice as often as a rule that lets the first four go on (bench/stopping).
func (r *Rule) halve(own berth.RungReport, others []berth.RungValue) berth.StopDecision {
	if len(others) < r.stop.Startup {
		return berth.StopDecision{Why: fmt.Sprintf("%d of %d trials that must come there first were at step %d", len(others), r.stop.Startup, own.Step)}
	}

	if own.Value == nil {
		return berth.StopDecision{Stop: true, Why: fmt.Sprintf("its %s is NaN or infinite at step %d", r.objective.Metric, own.Step)}
	}

	rank, n := 1, len(others)+1

	for _, o := range others {
		if o.Value != nil && r.objective.Better(*o.Value, *own.Value) {
			rank++
		}
	}

	goOn := max(n/int(r.stop.Eta), 1)
	best := "the best one goes on"

	if goOn > 1 {
		best = fmt.Sprintf("the best %d go on", goOn)
	}

	return berth.StopDecision{Stop: rank > goOn, Why: fmt.Sprintf("its %s of %s at step %d is number %d of %d; %s",
		r.objective.Metric, text(*own.Value), own.Step, rank, n, best)}
}

// median stops a trial whose best is worse than the median of the trials that succeeded, at
// this rung, as Optuna's MedianPruner does.
func (r *Rule) median(own berth.RungReport, others []berth.RungValue) berth.StopDecision {
	var values []float64

	for _, o := range others {
		if o.Succeeded && o.Value != nil {
			values = append(values, *o.Value)
		}
	}

	if len(values) < r.stop.Startup {
		return berth.StopDecision{Why: fmt.Sprintf("%d of %d trials that must succeed before were at step %d", len(values), r.stop.Startup, own.Step)}
	}

	if own.Best == nil {
		return berth.StopDecision{Stop: true, Why: fmt.Sprintf("its %s was NaN or infinite up to step %d", r.objective.Metric, own.Step)}
	}

	slices.Sort(values)

	half := len(values) / 2
	median := (values[half] + values[(len(values)-1)/2]) / 2
	worse := r.objective.Better(median, *own.Best)
	than := "not worse"

	if worse {
		than = "worse"
	}

	return berth.StopDecision{Stop: worse, Why: fmt.Sprintf("its best %s up to step %d, %s, is %s than %s, the median of %d trials that succeeded",
		r.objective.Metric, own.Step, text(*own.Best), than, text(median), len(values))}
}

// beyond says which bound a value is beyond; empty = none.
func (r *Rule) beyond(value *float64) string {
	switch {
	case value == nil:
		return "which is no number"
	case r.stop.Above != nil && *value > *r.stop.Above:
		return "above " + text(*r.stop.Above)
	case r.stop.Below != nil && *value < *r.stop.Below:
		return "below " + text(*r.stop.Below)
	default:
		return ""
	}
}

// text has six digits, as the UI shows.
func text(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
