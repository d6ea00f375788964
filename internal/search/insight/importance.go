package insight

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/pareto"
)

const (
	// LeastTrials is how many trials a parameter needs: with fewer, chance alone makes it look
	// important.
	LeastTrials = 20
	// TopShare is the best part of the trials, which is compared with all (Optuna's
	// target_quantile).
	TopShare = 0.1
	// mostCells is into how many cells the range of a number is parted (Optuna's n_steps).
	mostCells = 50
)

// Importance is how much a parameter tells the best trials from all.
type Importance struct {
	Parameter string
	Share     float64 // of the scores of all parameters, 0 to 1
	Trials    int     // that have the parameter; with fewer than LeastTrials, Share is 0

	score float64
}

// Sample is what the importance is of.
type Sample struct {
	Trials  int    // that succeeded with a value
	Problem string // why Importance is empty; a sentence, empty = it is not
}

// importances returns how far the values of each searched parameter in the best trials differ
// from those in all, most important first: PED-ANOVA (Watanabe et al., IJCAI 2023) as Optuna
// 5.0.0 has it (optuna/importance/_ped_anova), so that its dashboard shows the same. A
// parameter that has the same value in all trials is left out.
func importances(done []Trial, parameters []berth.Parameter, objective berth.Objective) ([]Importance, Sample) {
	sample := Sample{Trials: len(done)}

	if len(done) < LeastTrials {
		are := "are"
		if len(done) == 1 {
			are = "is"
		}

		sample.Problem = fmt.Sprintf("This needs %d trials with a value; there %s %d. With fewer, chance decides.", LeastTrials, are, len(done))

		return nil, sample
	}

	var (
		list []Importance
		sum  float64
	)

	top := best(done, objective)

	for _, p := range parameters {
		if !p.Searched() {
			continue
		}

		p.Values = withSeen(p, done)

		all, varies := cellsOf(p, done)
		if !varies {
			continue
		}

		one := Importance{Parameter: p.Name, Trials: len(all)}
		if among, _ := cellsOf(p, top); one.Trials >= LeastTrials && len(among) > 0 {
			// Of a parameter with a condition, by how much more of the best have it (Conditional
			// PED-ANOVA, theorem 4.2).
			part, partOfTop := float64(len(all))/float64(len(done)), float64(len(among))/float64(len(top))
			one.score = partOfTop * partOfTop / part * divergence(density(p, among), density(p, all))
		}

		sum += one.score
		list = append(list, one)
	}

	for i := range list {
		list[i].Share = list[i].score / cmp.Or(sum, 1)
	}

	slices.SortFunc(list, func(a, b Importance) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Parameter, b.Parameter))
	})

	if len(list) == 0 {
		sample.Problem = "No parameter has two values."
	}

	return list, sample
}

// best are the best tenth of the trials, with all that are as good as the last of them; with
// several objectives those that a search takes for good ones.
func best(done []Trial, objective berth.Objective) (top []Trial) {
	n := int(math.Ceil(TopShare * float64(len(done))))

	if len(objective.Further) > 0 {
		losses := lossesOf(done, objective)
		for _, i := range pareto.Order(losses, n)[:n] {
			top = append(top, done[i])
		}

		return top
	}

	losses := make([]float64, len(done))
	for i, t := range done {
		losses[i] = objective.Loss(*t.Value)
	}

	last := slices.Sorted(slices.Values(losses))[n-1]

	for i, t := range done {
		if losses[i] <= last {
			top = append(top, t)
		}
	}

	return top
}

// withSeen are a parameter's choices, and those of trials that a list makes, which are no part
// of the sweep's plan.
func withSeen(p berth.Parameter, trials []Trial) berth.Values {
	values := p.Values
	if p.Type != berth.ParameterCategorical {
		return values
	}

	seen := make(map[berth.Value]bool, len(values))
	for _, v := range values {
		seen[v] = true
	}

	for _, t := range trials {
		if v, has := t.Params[p.Name]; has && !seen[v] {
			seen[v], values = true, append(slices.Clip(values), v)
		}
	}

	return values
}

// cells is into how many cells a parameter's range is parted.
func cells(p berth.Parameter) int {
	if p.Type == berth.ParameterCategorical {
		return len(p.Values)
	}

	width := *p.Max - *p.Min

	switch {
	case p.Type == berth.ParameterInt && p.Log:
		return min(int(math.Ceil(math.Log2(width+1)))+1, mostCells)
	case p.Step != nil:
		return min(int(math.Round(width / *p.Step))+1, mostCells)
	case p.Type == berth.ParameterInt:
		return min(int(width)+1, mostCells)
	default:
		return mostCells
	}
}

// cellsOf are the cells of the trials that have the parameter; varies = not all have the same
// value.
func cellsOf(p berth.Parameter, trials []Trial) (at []int, varies bool) {
	var first berth.Value

	for _, t := range trials {
		v, has := t.Params[p.Name]
		if !has {
			continue
		}

		if len(at) == 0 {
			first = v
		}

		varies = varies || v != first
		at = append(at, cellOf(p, v))
	}

	return at, varies
}

func cellOf(p berth.Parameter, v berth.Value) int {
	if p.Type == berth.ParameterCategorical {
		return max(slices.Index(p.Values, v), 0)
	}

	x, _ := v.Number()
	low, high := *p.Min, *p.Max

	if p.Log {
		x, low, high = math.Log(x), math.Log(low), math.Log(high)
	}

	n := cells(p)

	return min(max(int(math.Ceil((x-low)/(high-low)*float64(n-1)-0.5)), 0), n-1)
}

// density is a Parzen estimate by cell: a kernel at each cell that has trials, weighted by
// how many, and a wide one with the weight of one trial. Its width is Scott's.
func density(p berth.Parameter, at []int) []float64 {
	counts := make([]float64, cells(p))
	for _, cell := range at {
		counts[cell]++
	}

	out := make([]float64, len(counts))
	add := func(weight float64, kernel func(cell int) float64) {
		for cell := range out {
			out[cell] += weight / float64(len(at)+1) * kernel(cell)
		}
	}

	if p.Type == berth.ParameterCategorical {
		kernels := 1.0 // the wide one, and one for each choice that has trials

		for _, count := range counts {
			if count > 0 {
				kernels++
			}
		}

		everywhere := 1 / kernels
		all := 1 + everywhere*float64(len(counts))

		for own, count := range counts {
			add(count, func(cell int) float64 {
				if cell == own {
					return (1 + everywhere) / all
				}

				return everywhere / all
			})
		}

		add(1, func(int) float64 { return 1 / float64(len(counts)) })

		return out
	}

	sigma := scott(at)
	for own, count := range counts {
		add(count, truncated(float64(own), sigma, len(counts)))
	}

	add(1, truncated(float64(len(counts)-1)/2, float64(len(counts)), len(counts)))

	return out
}

// truncated is a normal distribution over n cells.
func truncated(mu, sigma float64, n int) func(cell int) float64 {
	below := func(x float64) float64 { return math.Erfc((mu-x)/sigma/math.Sqrt2) / 2 }
	all := below(float64(n)-0.5) - below(-0.5)

	return func(cell int) float64 { return (below(float64(cell)+0.5) - below(float64(cell)-0.5)) / all }
}

// scott is the width of kernels by Scott's rule, at least half a cell at 1.64 deviations.
func scott(at []int) float64 {
	sorted := slices.Sorted(slices.Values(at))
	n := float64(len(at))
	mean, square := 0.0, 0.0

	for _, x := range at {
		mean += float64(x) / n
	}

	for _, x := range at {
		square += (float64(x) - mean) * (float64(x) - mean)
	}

	// The first cell up to which a quarter of the trials lie, and the first one beyond three.
	low := sorted[max(len(at)/4-1, 0)]
	high := sorted[min(len(at)*3/4, len(at)-1)]
	deviation := math.Sqrt(square / max(1, n-1))

	return max(1.059*min(float64(high-low)/1.34, deviation)*math.Pow(n, -0.2), 0.5/1.64)
}

// divergence is Pearson's, of the best trials' density from all trials'.
func divergence(top, all []float64) (sum float64) {
	const least = 1e-12

	for i, a := range all {
		ratio := (top[i]+least)/(a+least) - 1
		sum += (a + least) * ratio * ratio
	}

	return sum
}
