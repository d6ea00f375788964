package cli

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/functions"
	"github.com/berthml/berth/internal/search/simulate"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// simulation is what `berth search simulate` compares.
type simulation struct {
	file, trials, metrics, problem string
	algorithms                     []string
	atOnce, seeds, maxTrials       int

	note string // about the past trials
}

func (o *options) simulateCommand() *cobra.Command {
	var s simulation

	cmd := &cobra.Command{
		Use:   "simulate [-f FILE --trials CSV [--metrics CSV] | --problem NAME]",
		Short: "Compare searches and early stopping on past trials, before they cost anything",
		Long: "Runs sweeps without computing anything. Each suggestion becomes the nearest past trial that was not tried, with its values\n" +
			"and its seconds; `berth sweep export SWEEP` and `berth sweep export SWEEP --what metrics` write these. Without --metrics a\n" +
			"trial is one step, and no rule can stop it. With --problem the trials are those of a function with made-up curves.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sweep, does, err := s.world(cmd)
			if err != nil {
				return err
			}

			rows, err := s.compare(sweep, does)
			if err != nil {
				return err
			}

			say(cmd.ErrOrStderr(), "%s", s.note)

			return o.print(cmd.OutOrStdout(), rows, func() table { return simulationTable(rows) })
		},
	}

	flags := cmd.Flags()
	flags.StringVarP(&s.file, "file", "f", "", "the sweep file: its parameters, objective, early_stop and limits")
	flags.StringVar(&s.trials, "trials", "", "past trials, as `berth sweep export SWEEP` writes them")
	flags.StringVar(&s.metrics, "metrics", "", "their metrics, as `berth sweep export SWEEP --what metrics` writes them")
	flags.StringVar(&s.problem, "problem", "", "instead of a file: branin, sphere5, hartmann6, mixed4 or branches")
	flags.StringSliceVar(&s.algorithms, "algorithm", []string{berth.SearchRandom, berth.SearchTPE, berth.SearchAuto}, "searches to compare; the first is the measure of the others")
	flags.IntVar(&s.atOnce, "at-once", 8, "trials at once")                                              //nolint:mnd // a small GPU's
	flags.IntVar(&s.seeds, "seeds", 20, "sweeps of each kind")                                           //nolint:mnd // the quartiles of fewer say little
	flags.IntVar(&s.maxTrials, "max-trials", 0, "trials of a sweep; default: limits.max_trials, or 100") //nolint:mnd // bound below

	return cmd
}

// made is what a trial does in one simulated sweep.
type made func(a berth.Assignment) (berth.Assignment, simulate.Run, bool)

// world reads the sweep and the trials to simulate. Each call of the function begins a sweep.
func (s *simulation) world(cmd *cobra.Command) (sweep berth.Spec, does func(seed int) made, err error) {
	if s.problem != "" {
		return s.function()
	}

	if s.file == "" || s.trials == "" {
		return sweep, nil, exitf(ExitUsage, "name a sweep file and its past trials (-f FILE --trials CSV), or --problem branin, sphere5, hartmann6, mixed4 or branches")
	}

	f, err := readSweepFile(cmd, s.file, nil)
	if err != nil {
		return sweep, nil, err
	}

	if sweep, err = spec.Decode(f.data, f.contentType); err != nil {
		return sweep, nil, exitf(ExitUsage, "%s: %w", f.name, err)
	}

	if sweep.Objective == nil {
		return sweep, nil, exitf(ExitUsage, "%s has no objective: nothing says which trial is better", f.name)
	}

	if len(sweep.Objective.Further) > 0 || len(sweep.Constraints) > 0 {
		return sweep, nil, exitf(ExitUsage, "%s has several objectives or constraints; simulate it with one objective and none", f.name)
	}

	past, err := readPast(sweep, s.trials, s.metrics)
	if err != nil {
		return sweep, nil, err
	}

	s.note = fmt.Sprintf("%s of the table succeeded and can run again, of %d.\n", plural(len(past.trials), "trial", "trials"), past.rows)
	if s.trialsOf(sweep) >= len(past.trials) {
		s.note += "Each simulated sweep runs all of them: searches differ in their order alone. Fewer --max-trials tell more.\n"
	}

	return sweep, func(int) made { return past.untried() }, nil
}

// function is a built-in problem. Its curves come down to the function's value in 27 steps, at
// speeds of their own, so that they cross.
func (s *simulation) function() (sweep berth.Spec, does func(seed int) made, err error) {
	const steps = 27

	i := slices.IndexFunc(functions.All(), func(f functions.Function) bool { return f.Name == s.problem })
	if i < 0 {
		return sweep, nil, exitf(ExitUsage, "there is no problem %q; there are branin, sphere5, hartmann6, mixed4 and branches", s.problem)
	}

	f := functions.All()[i]
	sweep = berth.Spec{
		Parameters: f.Parameters, Objective: &berth.Objective{Metric: "loss", Goal: berth.GoalMinimize},
		EarlyStop: &berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: steps, Eta: 3, Startup: 4}, //nolint:mnd // the defaults of a sweep file
	}

	return sweep, func(seed int) made {
		random := rand.New(rand.NewPCG(uint64(seed), 7)) //nolint:gosec // G404, G115: a simulation

		return func(a berth.Assignment) (berth.Assignment, simulate.Run, bool) {
			end, above, pace := f.Loss(a), random.Float64(), math.Exp(random.NormFloat64()/2)

			var r simulate.Run
			for t := 1; t <= steps; t++ {
				r.Values = append(r.Values, end+above*(1/float64(t)-1.0/steps))
				r.Seconds = append(r.Seconds, pace)
			}

			return a, r, true
		}
	}, nil
}

// simulated is what sweeps of one kind came to, medians but for the quartiles.
type simulated struct {
	Algorithm string     `json:"algorithm"`
	Rule      string     `json:"rule"`    // of early stopping; empty = none
	Best      [3]float64 `json:"best"`    // quartiles of the best value
	Seconds   float64    `json:"seconds"` // of all trials together
	Wall      float64    `json:"wall"`    // seconds of the sweep
	Stopped   float64    `json:"stopped"` // trials
	Reached   *float64   `json:"reached"` // part of the first row's seconds until the best is as good as its median; nil = not in half of the sweeps

	outcomes []simulate.Outcome
}

// compare simulates each search, without and with the file's rule.
func (s *simulation) compare(sweep berth.Spec, does func(seed int) made) (rows []simulated, err error) {
	if s.seeds < 1 || s.atOnce < 1 || s.maxTrials < 0 {
		return nil, exitf(ExitUsage, "--seeds %d, --at-once %d, --max-trials %d: the first two are at least 1, the last is 0 for its default or more",
			s.seeds, s.atOnce, s.maxTrials)
	}

	rules := []*berth.EarlyStop{nil}
	if sweep.EarlyStop != nil {
		rules = append(rules, sweep.EarlyStop)
	}

	for _, algorithm := range s.algorithms {
		for _, rule := range rules {
			row := simulated{Algorithm: algorithm}
			if rule != nil {
				row.Rule = rule.Rule
			}

			for seed := range s.seeds {
				o, err := s.one(sweep, algorithm, rule, seed, does(seed))
				if err != nil {
					return nil, err
				}

				row.outcomes = append(row.outcomes, o)
			}

			rows = append(rows, row)
		}
	}

	for i := range rows {
		rows[i].sum()
		rows[i].reach(*sweep.Objective, rows[0])
	}

	return rows, nil
}

// trialsOf is how many trials a simulated sweep has.
func (s *simulation) trialsOf(sweep berth.Spec) int {
	const enough = 100

	return cmp.Or(s.maxTrials, sweep.Limits.MaxTrials, enough)
}

// one is one simulated sweep.
func (s *simulation) one(sweep berth.Spec, algorithm string, rule *berth.EarlyStop, seed int, does made) (o simulate.Outcome, err error) {
	const startup = 10

	if !slices.Contains([]string{berth.SearchAuto, berth.SearchGP, berth.SearchTPE, berth.SearchSobol, berth.SearchRandom}, algorithm) {
		return o, exitf(ExitUsage, "--algorithm %s cannot be simulated; there are auto, gp, tpe, sobol and random", algorithm)
	}

	sweep.Search = berth.SearchSpec{Algorithm: algorithm, Seed: int64(seed), Startup: max(sweep.Search.Startup, startup)}
	sweep.Limits.MaxTrials = s.trialsOf(sweep)

	choose, err := simulate.Searched(sweep, does)
	if err != nil {
		return o, err
	}

	return simulate.Sweep(simulate.World{
		Objective: *sweep.Objective, EarlyStop: rule, Trials: sweep.Limits.MaxTrials, AtOnce: s.atOnce, Choose: choose,
	})
}

const middle = 0.5 // the quantile of the median

// sum adds up the sweeps of a row, but for Reached.
func (r *simulated) sum() {
	for i, share := range []float64{0.25, middle, 0.75} {
		r.Best[i] = r.quantile(share, func(o simulate.Outcome) float64 { return o.Best })
	}

	r.Seconds = r.quantile(middle, func(o simulate.Outcome) float64 { return o.Seconds })
	r.Wall = r.quantile(middle, func(o simulate.Outcome) float64 { return o.Wall })
	r.Stopped = r.quantile(middle, func(o simulate.Outcome) float64 { return float64(o.Stopped) })
}

// reach fills in Reached; base is the first row, summed.
func (r *simulated) reach(objective berth.Objective, base simulated) {
	reached := r.quantile(middle, func(o simulate.Outcome) float64 {
		for i, found := range o.Found {
			if !math.IsNaN(found) && !objective.Better(base.Best[1], found) {
				return o.Spent[i] / base.Seconds
			}
		}

		return math.Inf(1)
	})

	if !math.IsInf(reached, 1) {
		r.Reached = &reached
	}
}

// quantile is a figure of the row's sweeps; share is in [0, 1].
func (r *simulated) quantile(share float64, figure func(o simulate.Outcome) float64) float64 {
	figures := make([]float64, len(r.outcomes))
	for i, o := range r.outcomes {
		figures[i] = figure(o)
	}

	slices.Sort(figures)

	return figures[min(int(share*float64(len(figures))), len(figures)-1)]
}

func simulationTable(rows []simulated) table {
	t := table{header: []string{"SEARCH", "EARLY STOP", "BEST (QUARTILES)", "SECONDS", "WALL", "STOPPED", "AS GOOD AS THE FIRST AFTER"}}

	for _, r := range rows {
		reached := "–"
		if r.Reached != nil {
			reached = fmt.Sprintf("%.0f %% of its seconds", 100**r.Reached) //nolint:mnd // percent
		}

		best := make([]string, len(r.Best))
		for i, b := range r.Best {
			best[i] = number(b)
		}

		rule := r.Rule
		if rule == "" {
			rule = "none"
		}

		t.add(r.Algorithm, rule, strings.Join(best, "  "), number(r.Seconds), number(r.Wall), number(r.Stopped), reached)
	}

	return t
}
