// Package simulate runs sweeps without computing anything: what each trial would report is
// known, and how long it would take. So a search and a rule of early stopping can be compared
// before they cost anything. It is pure: the same world has the same outcome.
package simulate

import (
	"math"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/search/stopping"
)

// Run is what a trial would report of the objective at steps 1, 2, …, and the seconds that
// each step takes. Both have as many entries, and one at least.
type Run struct {
	Values  []float64
	Seconds []float64
	Steps   []int64       // at which the values are reported; nil = 1, 2, …
	End     *float64      // what counts when the trial comes to its end; nil = its last value
	Results berth.Results // of several objectives
}

// World is a sweep to simulate.
type World struct {
	Objective berth.Objective
	EarlyStop *berth.EarlyStop
	Trials    int
	AtOnce    int // trials that run at once, at least 1

	// Choose makes the next trial: its values, and what it would do. ok is false when there
	// is none. A place that is free takes it at once.
	Choose func(past []berth.Observation) (a berth.Assignment, r Run, ok bool, err error)
	// Step is the step that the rule takes step i of n for, both from 1; nil = i.
	Step func(i, n int) int64
}

// Outcome is what a sweep found and took.
type Outcome struct {
	Best    float64             // value of the best trial that succeeded; NaN = none did
	Found   []float64           // the same after each trial that ended; NaN before the first succeeded
	Spent   []float64           // Seconds at that time
	Trial   int                 // number of the best one; 0 = none
	Seconds float64             // of all trials together
	Wall    float64             // from the first start to the last end
	Stopped int                 // trials that early stopping ended
	Past    []berth.Observation // all trials, by number
	Ended   []int               // their numbers, in the order of their ends
}

// Searched chooses by a search of a valid spec; does says what a trial with these values would
// do, and may put other values in their place.
func Searched(spec berth.Spec, does func(a berth.Assignment) (berth.Assignment, Run, bool)) (
	func([]berth.Observation) (berth.Assignment, Run, bool, error), error,
) {
	searcher, err := search.New(spec)
	if err != nil {
		return nil, err
	}

	keys := make(map[string]bool)

	return func(past []berth.Observation) (berth.Assignment, Run, bool, error) {
		tried := berth.Tried{Made: len(past), Past: past, Seen: func([]string) (map[string]bool, error) { return keys, nil }}
		if len(past) > 0 {
			tried.Last = past[len(past)-1].Params
		}

		next, _, err := searcher.Next(tried, 1)
		if err != nil || len(next) == 0 {
			return nil, Run{}, false, err
		}

		keys[next[0].Values.Key()] = true
		a, r, ok := does(next[0].Values)

		return a, r, ok, nil
	}, nil
}

// trial is one that runs.
type trial struct {
	number   int
	run      Run
	follower *stopping.Follower // nil = no rule
	done     int                // steps
	next     float64            // when the next one ends
}

// report is what a trial reported at a rung.
type report struct {
	number int
	value  *float64
}

type sweep struct {
	World

	rule    *stopping.Rule // nil = none
	past    []berth.Observation
	running []*trial // in the order of their starts
	rungs   map[int64][]report
	outcome Outcome
}

// Sweep simulates a sweep. Errors: of Choose.
func Sweep(w World) (Outcome, error) {
	s := &sweep{World: w, rungs: make(map[int64][]report), outcome: Outcome{Best: math.NaN()}}
	if w.EarlyStop != nil {
		s.rule = stopping.New(*w.EarlyStop, w.Objective)
	}

	for {
		for len(s.running) < s.AtOnce && len(s.past) < s.Trials {
			started, err := s.start()
			if err != nil {
				return s.outcome, err
			}

			if !started {
				s.Trials = len(s.past)
			}
		}

		if len(s.running) == 0 {
			s.outcome.Past = s.past

			return s.outcome, nil
		}

		s.finishStep()
	}
}

func (s *sweep) start() (started bool, err error) {
	a, r, ok, err := s.Choose(s.past)
	if err != nil || !ok {
		return false, err
	}

	number := len(s.past) + 1
	t := &trial{number: number, run: r, next: s.outcome.Wall + r.Seconds[0]}

	if s.rule != nil {
		t.follower = s.rule.Follow()
	}

	s.past = append(s.past, berth.Observation{Number: number, Params: a, State: berth.TrialRunning})
	s.running = append(s.running, t)

	return true, nil
}

// finishStep goes on to the next moment at which a step ends. Of steps that end at the same
// moment, the step of the trial that started earlier comes first.
func (s *sweep) finishStep() {
	at := 0

	for i, t := range s.running {
		if t.next < s.running[at].next {
			at = i
		}
	}

	t := s.running[at]
	s.outcome.Wall = t.next
	s.outcome.Seconds += t.run.Seconds[t.done]
	t.done++

	stop := s.judge(t)

	switch {
	case t.done == len(t.run.Values): // a stop would come too late
		s.end(t, berth.TrialSucceeded)
	case stop && s.rule.Keeps():
		s.end(t, berth.TrialSucceeded)
	case stop:
		s.outcome.Stopped++
		s.end(t, berth.TrialPruned)
	default:
		t.next += t.run.Seconds[t.done]

		return
	}

	s.running = slices.Delete(s.running, at, at+1)
}

func (s *sweep) end(t *trial, state berth.TrialState) {
	o := &s.past[t.number-1]
	o.State, o.Value, o.Step, o.Results = state, finite(t.run.Values[t.done-1]), int64(t.done), t.run.Results
	s.outcome.Ended = append(s.outcome.Ended, t.number)

	if t.run.End != nil && t.done == len(t.run.Values) {
		o.Value = finite(*t.run.End)
	}

	if state == berth.TrialSucceeded && o.Value == nil {
		o.State, o.Kind = berth.TrialFailed, berth.FailureNotFinite
	}

	if o.State == berth.TrialSucceeded && (s.outcome.Trial == 0 || s.Objective.Better(*o.Value, s.outcome.Best)) {
		s.outcome.Best, s.outcome.Trial = *o.Value, t.number
	}

	s.outcome.Found, s.outcome.Spent = append(s.outcome.Found, s.outcome.Best), append(s.outcome.Spent, s.outcome.Seconds)
}

// judge reports the newest step of a trial, and says whether the rule stops the trial. A
// value stays at its rung for the trials that come later, also that of a stopped trial.
func (s *sweep) judge(t *trial) (stop bool) {
	if t.follower == nil {
		return false
	}

	step := int64(t.done)
	switch {
	case s.Step != nil:
		step = s.Step(t.done, len(t.run.Values))
	case t.run.Steps != nil:
		step = t.run.Steps[t.done-1]
	}

	for _, r := range t.follower.Add(step, finite(t.run.Values[t.done-1])) {
		stop = s.rule.Decide(r, s.others(r.Rung)).Stop || stop
		s.rungs[r.Rung] = append(s.rungs[r.Rung], report{t.number, r.Value})
	}

	return stop
}

// others returns what earlier trials reported at a rung, as of now.
func (s *sweep) others(rung int64) []berth.RungValue {
	values := make([]berth.RungValue, len(s.rungs[rung]))
	for i, r := range s.rungs[rung] {
		values[i] = berth.RungValue{Value: r.value, Succeeded: s.past[r.number-1].State == berth.TrialSucceeded}
	}

	return values
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}

	return &v
}
