// Package insight says what a sweep's trials tell so far: which parameters decide
// (importance.go), how the best value came about, where early stopping stopped trials, and
// who chose their values. It is pure.
package insight

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/pareto"
)

const (
	// MaxEnded is how many ended trials count: of more, the newest by number. It is as many as
	// a chart of the web interface reads.
	MaxEnded = 10_000
	// MaxRungs is how many rungs are counted, from the first: median judges at each step, and a
	// table of more says no more.
	MaxRungs = 100
)

// Input is the state of a sweep.
type Input struct {
	Objective  *berth.Objective // nil = none: no trial is better than another
	Parameters []berth.Parameter
	From       int     // the first trial that counts; 1 = all count
	Trials     []Trial // from there on, by number
	Rungs      []Rung  // of these trials, by rung
}

// Trial is a trial of the sweep, in any state.
type Trial struct {
	Number     int
	Params     berth.Assignment
	State      berth.TrialState
	Value      *float64 // of the objective
	Results    berth.Results
	By         string // who chose the values, as in berth.Origin; empty = not known
	FinishedAt *time.Time
}

// Rung is what early stopping did at a rung.
type Rung struct {
	Rung           int64
	Step, LastStep int64    // of the reports judged there, the first and the last; a job may skip steps
	Trials         int      // that came there
	Stopped        int      // of them
	Best           *float64 // nil = no trial had a finite value
	Cut            *float64 // the best value of a stopped trial; nil = as for Best, or none was stopped
}

// Insight is what the trials tell.
type Insight struct {
	Trials     int // that count
	Importance []Importance
	Sample     Sample  // what Importance is of
	Best       []Step  // by time; each is better than the one before
	Front      []Trial // of several objectives: no other trial beats one in all; the best at the first one first
	Origins    []Origin
}

// Step is a trial that was the best when it ended.
type Step struct {
	Trial int
	Value float64
	At    time.Time
}

// Origin is how many trials one algorithm chose.
type Origin struct {
	By     string
	Trials int
}

// Make computes the insight.
func Make(in Input) Insight {
	out := Insight{Trials: len(in.Trials), Origins: origins(in.Trials)}

	if in.Objective == nil {
		out.Sample.Problem = "The sweep has no objective."

		return out
	}

	done := slices.DeleteFunc(slices.Clone(in.Trials), func(t Trial) bool {
		return t.State != berth.TrialSucceeded || t.Value == nil || t.FinishedAt == nil
	})
	out.Best = bestSoFar(done, *in.Objective)
	out.Importance, out.Sample = importances(done, in.Parameters, *in.Objective)
	out.Front = front(done, *in.Objective)

	return out
}

// bestSoFar sorts the trials by their ends.
func bestSoFar(done []Trial, objective berth.Objective) (steps []Step) {
	slices.SortFunc(done, func(a, b Trial) int {
		return cmp.Or(a.FinishedAt.Compare(*b.FinishedAt), cmp.Compare(a.Number, b.Number))
	})

	for _, t := range done {
		if len(steps) == 0 || objective.Better(*t.Value, steps[len(steps)-1].Value) {
			steps = append(steps, Step{t.Number, *t.Value, *t.FinishedAt})
		}
	}

	return steps
}

// front are the trials that none dominates; nil = there is one objective. A restored database
// may lack the results of a trial.
func front(done []Trial, objective berth.Objective) (best []Trial) {
	if len(objective.Further) == 0 {
		return nil
	}

	done = slices.DeleteFunc(slices.Clone(done), func(t Trial) bool { return len(t.Results) == 0 })

	for i, is := range pareto.Front(lossesOf(done, objective)) {
		if is {
			best = append(best, done[i])
		}
	}

	slices.SortStableFunc(best, func(a, b Trial) int {
		return cmp.Compare(objective.Loss(*a.Value), objective.Loss(*b.Value))
	})

	return best
}

// lossesOf are the trials' losses by objective.
func lossesOf(trials []Trial, objective berth.Objective) [][]float64 {
	losses := make([][]float64, len(trials))
	for i, t := range trials {
		losses[i] = objective.Losses(t.Results)
	}

	return losses
}

// origins counts trials by who chose them, most first.
func origins(trials []Trial) []Origin {
	count := make(map[string]int)
	for _, t := range trials {
		if t.By != "" {
			count[t.By]++
		}
	}

	list := make([]Origin, 0, len(count))
	for by, n := range count {
		list = append(list, Origin{by, n})
	}

	slices.SortFunc(list, func(a, b Origin) int { return cmp.Or(cmp.Compare(b.Trials, a.Trials), cmp.Compare(a.By, b.By)) })

	return list
}
