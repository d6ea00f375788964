// Command search runs Berth's searches on tables of measured configurations and on
// functions, with several trials open at once that end in the order of their own run times.
// It prints one JSON line for each run; bench/search/run compares them with Optuna's.
package main

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/functions"
	"github.com/berthml/berth/internal/search/pareto"
	"github.com/berthml/berth/internal/search/simulate"
)

// problem is a space with a value and a run time of each of its points.
type problem struct {
	name       string
	parameters []berth.Parameter
	// try is what a trial measures: its value and its run time, both with noise.
	try func(a berth.Assignment, noise *rand.Rand) (loss, seconds float64)
	// regret is how far a point is from the best: of a table the share of all points that are
	// better, of a function its value less its minimum.
	regret func(a berth.Assignment) float64
	// ranks are the shares of all points that are better in each of two objectives; nil = the
	// problem has one. The regret is then the share of the whole table's hypervolume that the
	// tried points lack.
	ranks   func(a berth.Assignment) []float64
	latency func(a berth.Assignment) float64
	volume  float64 // of the whole table's ranks
}

// objective is what the search improves.
func (p problem) objective() *berth.Objective {
	o := &berth.Objective{Metric: "loss", Goal: berth.GoalMinimize}
	if p.ranks != nil {
		o.Further = []berth.Objective{{Metric: "latency", Goal: berth.GoalMinimize}}
	}

	return o
}

// far is the regret of trials that ended.
func (p problem) far(ended []berth.Observation) float64 {
	if p.ranks == nil {
		best := slices.MinFunc(ended, func(a, b berth.Observation) int { return cmp.Compare(*a.Value, *b.Value) })

		return p.regret(best.Params)
	}

	ranks := make([][]float64, len(ended))
	for i, o := range ended {
		ranks[i] = p.ranks(o.Params)
	}

	return 1 - pareto.Volume(ranks, []float64{1, 1})/p.volume
}

// table is the description of a table by bench/search/tables.py.
type table struct {
	Name  string `json:"name"`
	Sizes []int  `json:"sizes"` // values of each parameter
	Kinds []bool `json:"cat"`   // it is a choice
	Seeds int    `json:"seeds"` // measurements of each point
	N     int    `json:"n"`     // points
}

func main() {
	data := flag.String("data", "", "directory of the tables")
	names := flag.String("problems", "", "names, with commas; empty = all")
	algorithms := flag.String("algorithms", "tpe,random", "names, with commas")
	widths := flag.String("q", "1,8,24", "trials open at once, with commas")
	trials := flag.Int("trials", 100, "trials of a run")
	seeds := flag.Int("seeds", 60, "runs of each kind")
	first := flag.Int("first", 0, "the first seed")
	flag.Parse()

	if err := run(*data, split(*names), split(*algorithms), split(*widths), *trials, *first, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func run(data string, names, algorithms, widths []string, trials, first, seeds int) error {
	problems, err := tables(data)
	if err != nil {
		return err
	}

	for _, p := range append(problems, functionProblems()...) {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}

		for _, width := range widths {
			q, err := strconv.Atoi(width)
			if err != nil {
				return fmt.Errorf("-q %q: %w", width, err)
			}

			for _, algorithm := range algorithms {
				for seed := first; seed < first+seeds; seed++ {
					if err := p.study(algorithm, q, trials, seed); err != nil {
						return fmt.Errorf("%s: %w", p.name, err)
					}
				}
			}
		}
	}

	return nil
}

// study is one run; it prints its result.
func (p problem) study(algorithm string, q, trials, seed int) error {
	noise := rand.New(rand.NewPCG(uint64(seed), 99)) //nolint:gosec // a measurement

	choose, err := simulate.Searched(berth.Spec{
		Parameters: p.parameters, Objective: p.objective(),
		Search: berth.SearchSpec{Algorithm: algorithm, Seed: int64(seed), Startup: 10},
	}, func(a berth.Assignment) (berth.Assignment, simulate.Run, bool) {
		loss, seconds := p.try(a, noise)
		run := simulate.Run{Values: []float64{loss}, Seconds: []float64{seconds}}

		if p.ranks != nil {
			run.Results = berth.Results{"loss": loss, "latency": p.latency(a)}
		}

		return a, run, true
	})
	if err != nil {
		return err
	}

	spent := time.Duration(0)

	done, err := simulate.Sweep(simulate.World{
		Objective: *p.objective(), Trials: trials, AtOnce: q,
		Choose: func(past []berth.Observation) (berth.Assignment, simulate.Run, bool, error) {
			began := time.Now()
			defer func() { spent += time.Since(began) }()

			return choose(past)
		},
	})
	if err != nil {
		return err
	}

	ended := make([]berth.Observation, 0, trials)
	for _, number := range done.Ended {
		ended = append(ended, done.Past[number-1])
	}

	if len(ended) < trials {
		return fmt.Errorf("no suggestion after %d trials", len(ended))
	}

	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"problem": p.name, "q": q, "by": "berth " + algorithm, "seed": seed, "half": p.far(ended[:trials/2]),
		"full": p.far(ended), "seconds": spent.Seconds() / float64(trials),
	})
}

func tables(data string) ([]problem, error) {
	if data == "" {
		return nil, nil
	}

	var list []table

	text, err := os.ReadFile(filepath.Join(data, "tables.json")) //nolint:gosec // G304: an argument
	if err != nil {
		return nil, err
	}

	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("tables.json: %w", err)
	}

	var problems []problem

	for _, t := range list {
		losses, err := floats(filepath.Join(data, t.Name+".loss"))
		if err != nil {
			return nil, err
		}

		times, err := floats(filepath.Join(data, t.Name+".time"))
		if err != nil {
			return nil, err
		}

		problems = append(problems, t.problem(losses, times))

		latencies, err := floats(filepath.Join(data, t.Name+".latency"))
		if err == nil {
			problems = append(problems, t.withLatency(problems[len(problems)-1], latencies))
		}
	}

	return problems, nil
}

func floats(path string) ([]float32, error) {
	data, err := os.ReadFile(path) //nolint:gosec // G304: below an argument
	out := make([]float32, len(data)/4)

	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}

	return out, err
}

func (t table) problem(losses, times []float32) problem {
	p := problem{name: t.Name}

	for j, size := range t.Sizes {
		one := berth.Parameter{Name: "p" + strconv.Itoa(j), Type: berth.ParameterInt, Min: new(0.0), Max: new(float64(size - 1))}
		if t.Kinds[j] || size == 2 {
			one = berth.Parameter{Name: one.Name, Type: berth.ParameterCategorical}
			for v := range size {
				one.Values = append(one.Values, berth.IntValue(int64(v)))
			}
		}

		p.parameters = append(p.parameters, one)
	}

	means := make([]float64, t.N)
	for i := range means {
		for s := range t.Seeds {
			means[i] += float64(losses[i*t.Seeds+s]) / float64(t.Seeds)
		}
	}

	sorted := slices.Clone(means)
	slices.Sort(sorted)

	p.try = func(a berth.Assignment, noise *rand.Rand) (loss, seconds float64) {
		at := t.point(a)*t.Seeds + noise.IntN(t.Seeds)

		return float64(losses[at]), float64(times[at])
	}
	p.regret = func(a berth.Assignment) float64 {
		better, _ := slices.BinarySearch(sorted, means[t.point(a)])

		return float64(better) / float64(t.N)
	}

	return p
}

// withLatency is a table with the latency as a second objective.
func (t table) withLatency(p problem, latencies []float32) problem {
	sorted := slices.Clone(latencies)
	slices.Sort(sorted)

	loss := p.regret
	p.name += "_latency"
	p.latency = func(a berth.Assignment) float64 { return float64(latencies[t.point(a)]) }
	p.ranks = func(a berth.Assignment) []float64 {
		better, _ := slices.BinarySearch(sorted, latencies[t.point(a)])

		return []float64{loss(a), float64(better) / float64(t.N)}
	}

	ranks := make([][]float64, t.N)
	for i := range ranks {
		ranks[i] = p.ranks(t.assignment(i))
	}

	p.volume = pareto.Volume(ranks, []float64{1, 1})

	return p
}

// point is the number of a table's point.
func (t table) point(a berth.Assignment) (i int) {
	for j, size := range t.Sizes {
		v, _ := a["p"+strconv.Itoa(j)].Number()
		i = i*size + int(v)
	}

	return i
}

// assignment is point's inverse.
func (t table) assignment(i int) berth.Assignment {
	a := berth.Assignment{}

	for j, size := range slices.Backward(t.Sizes) {
		a["p"+strconv.Itoa(j)] = berth.IntValue(int64(i % size))
		i /= size
	}

	return a
}

// functionProblems have run times that are log-normal with a deviation of a half.
func functionProblems() []problem {
	var out []problem

	for _, f := range functions.All() {
		out = append(out, problem{name: f.Name, parameters: f.Parameters, regret: f.Loss, try: func(a berth.Assignment, noise *rand.Rand) (loss, seconds float64) {
			return f.Loss(a), math.Exp(noise.NormFloat64() / 2)
		}})
	}

	return out
}
