package insight

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

const (
	// LeastTrials is how many trials a parameter needs: with fewer, chance alone makes it look
	// important.
	LeastTrials = 20
	// TopShare is the best part of the trials, which is compared with all; PED-ANOVA's gamma.
	// Its authors' 0.1 would leave 2 of 20 trials.
	TopShare = 0.25
	// groupCount is into how many groups of about the same size numbers are put; with fewer
	// distinct ones, each is a group.
	groupCount = 4
	// rounding is more than sums of parts of 1 are off; a smaller score would be a share of nothing.
	rounding = 1e-9
)

// Importance is how much a parameter tells the best trials from all.
type Importance struct {
	Parameter string
	Share     float64 // of the scores of all parameters, 0 to 1
	Trials    int     // that have the parameter; with fewer than LeastTrials, Share is 0

	score float64 // divergence, less its mean by chance; not below 0
}

// Sample is what the importance is of.
type Sample struct {
	Trials  int    // that succeeded with a value
	Problem string // why Importance is empty, or all 0; a sentence, empty = it is neither
}

// importances returns how much the values of each parameter differ between the best quarter
// of trials and all of them, most important first: PED-ANOVA (Watanabe et al., IJCAI 2023),
// with groups of values in place of its kernel densities. A parameter that only some trials
// have is scored within those. One that has the same value in all is left out.
func importances(done []Trial, objective berth.Objective) ([]Importance, Sample) {
	sample := Sample{Trials: len(done)}

	if len(done) < LeastTrials {
		are := "are"
		if len(done) == 1 {
			are = "is"
		}

		sample.Problem = fmt.Sprintf("This needs %d trials with a value; there %s %d. With fewer, chance decides.", LeastTrials, are, len(done))

		return nil, sample
	}

	order := slices.SortedStableFunc(slices.Values(done), func(a, b Trial) int {
		if objective.Goal == berth.GoalMinimize {
			return cmp.Compare(*a.Value, *b.Value)
		}

		return cmp.Compare(*b.Value, *a.Value)
	})

	var (
		list []Importance
		sum  float64
	)

	for _, name := range varying(order) {
		one := Importance{Parameter: name}

		values, params := having(order, name)
		if one.Trials = len(values); one.Trials >= LeastTrials {
			one.score = scoreOf(values, grouping(params))
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
	sample.Problem = flatText(list, len(done))

	return list, sample
}

// flatText says that no parameter tells the best trials from all; empty = one does, or none
// could be scored.
func flatText(list []Importance, trials int) string {
	if len(list) == 0 {
		return "No parameter has two values."
	}

	var few []string

	for _, one := range list {
		if one.score > 0 {
			return ""
		}

		if one.Trials < LeastTrials {
			few = append(few, one.Parameter)
		}
	}

	switch len(few) {
	case 0:
		return fmt.Sprintf("The best quarter of %d trials has about the same values as all: no parameter stands out.", trials)
	case len(list):
		return ""
	default:
		return fmt.Sprintf("The best quarter of %d trials has about the same values as all: of those that at least %d trials have, no parameter stands out. Too few have %s.",
			trials, LeastTrials, strings.Join(few, ", "))
	}
}

// varying returns the parameters with two values or more.
func varying(trials []Trial) (names []string) {
	first, varies := make(map[string]string), make(map[string]bool)

	for _, t := range trials {
		for name, v := range t.Params {
			before, seen := first[name]
			if !seen {
				first[name] = label(v)
			} else if !varies[name] && before != label(v) {
				varies[name] = true
				names = append(names, name)
			}
		}
	}

	return names
}

// having returns the values and the parameter of the trials that have it, in their order.
func having(order []Trial, name string) (values []float64, params []berth.Value) {
	for _, t := range order {
		if v, has := t.Params[name]; has {
			values, params = append(values, *t.Value), append(params, v)
		}
	}

	return values, params
}

// scoreOf is the score of a parameter, from the values of the trials that have it, the best
// first, and their groups. For groups with parts a of all trials and b of the best, the
// Pearson divergence is the sum of (b - a)^2 / a. Trials that are as good as the last of the
// best m share the places that are left, each with the same weight. When weights with a sum of
// squares s are dealt to n trials by chance, the mean over k groups is
// (k - 1) / m^2 * (n * s - m^2) / (n - 1), which is taken off.
func scoreOf(values []float64, groups []string) float64 {
	n := float64(len(values))
	m := max(1, math.Round(TopShare*n))
	last := values[int(m)-1]

	better := slices.Index(values, last)
	tied := 0

	for better+tied < len(values) && values[better+tied] == last {
		tied++
	}

	shared := (m - float64(better)) / float64(tied) // the weight of each that is as good as the last of the best
	all, best := make(map[string]float64), make(map[string]float64)

	for i, group := range groups {
		all[group]++

		if i < better {
			best[group]++
		} else if i < better+tied {
			best[group] += shared
		}
	}

	divergence := 0.0

	for _, group := range slices.Sorted(maps.Keys(all)) { // sums depend on the order
		a, b := all[group]/n, best[group]/m
		divergence += (b - a) * (b - a) / a
	}

	squares := float64(better) + float64(tied)*shared*shared
	chance := float64(len(all)-1) / (m * m) * (n*squares - m*m) / (n - 1)

	if score := divergence - chance; score >= rounding {
		return score
	}

	return 0
}

// grouping returns the group of each value. Equal values are in one group.
func grouping(values []berth.Value) []string {
	labels, numbers := make([]string, len(values)), make([]float64, 0, len(values))

	for i, v := range values {
		labels[i] = label(v)

		if x, isNumber := v.Number(); isNumber {
			numbers = append(numbers, x)
		}
	}

	sorted := slices.Sorted(slices.Values(numbers))
	if len(numbers) < len(values) || len(slices.Compact(slices.Clone(sorted))) <= groupCount {
		return labels
	}

	for i, x := range numbers {
		below, _ := slices.BinarySearch(sorted, x)
		labels[i] = strconv.Itoa(groupCount * below / len(sorted))
	}

	return labels
}

// label is a text that equal values have; 1 and 1.0 are equal.
func label(v berth.Value) string {
	if x, isNumber := v.Number(); isNumber {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}

	return v.String()
}
