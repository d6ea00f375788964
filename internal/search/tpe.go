package search

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// drawsForModel is how many draws tpe makes for one suggestion at most. Most of them were
// tried where the space is nearly full; then the drawer takes from what is left.
const drawsForModel = 20 * candidatesOfTPE

// The constants of Optuna 5.0.0's TPESampler.
const (
	candidatesOfTPE = 24 // n_ei_candidates
	mostBelow       = 25 // default_gamma: a tenth of the ended trials are good ones, at most so many
)

// goodOfSeveral is how many of n ended trials are good ones with several objectives (Optuna's
// default_gamma_multiobjective).
func goodOfSeveral(n int) int { return (n + 9) / 10 }

// tpe suggests as Optuna's multivariate tree-structured Parzen estimator does: where the
// density of good trials is large against that of all others. Trials without a result
// count among the others (constant_liar), and parameters with one condition are modelled
// together (group). Unlike Optuna it passes over candidates that were tried or may not be.
// With several objectives it models each parameter alone, and good trials weigh alike
// (Optuna's defaults there).
type tpe struct {
	space   *space
	groups  [][]int // of searched parameters, by their condition; the unconditional ones first
	several bool    // objectives: each parameter but none is a group, and the first group is empty
}

func newTPE(sp *space, several bool) *tpe {
	m := &tpe{space: sp, groups: [][]int{nil}, several: several}
	if several {
		for i := range sp.searched {
			m.groups = append(m.groups, []int{i})
		}

		return m
	}

	var conditions []string

	for i, d := range sp.searched {
		if len(d.When) == 0 {
			m.groups[0] = append(m.groups[0], i)

			continue
		}

		text := conditionText(d.When)

		g := slices.Index(conditions, text)
		if g < 0 {
			g = len(conditions)
			conditions = append(conditions, text)
			m.groups = append(m.groups, nil)
		}

		m.groups[g+1] = append(m.groups[g+1], i)
	}

	return m
}

// density is what a group's good trials have that the others have not.
type density struct {
	dims         []int
	below, above *parzen
}

// score is the logarithm of below over above, for rows of the group's coordinates.
func (d density) score(rows [][]float64) []float64 {
	scores := d.below.logDensities(rows)
	for i, other := range d.above.logDensities(rows) {
		scores[i] -= other
	}

	return scores
}

// best is the best of some draws.
func (d density) best(random *rand.Rand) []float64 {
	rows := make([][]float64, candidatesOfTPE)
	for i := range rows {
		rows[i] = d.below.draw(random)
	}

	return rows[argmax(d.score(rows))]
}

// suggest is the best of the candidates that may be tried and were not; nil when it finds
// none.
func (m *tpe) suggest(p *past, random *rand.Rand) berth.Assignment {
	densities := m.densities(p)

	var (
		found []berth.Assignment
		ats   [][]float64 // their coordinates
		known = make(map[string]bool)
	)

	at := make([]float64, len(m.space.searched))

	for try := 0; try < drawsForModel && len(found) < candidatesOfTPE; try++ {
		for g, d := range densities {
			switch {
			case g == 0 || m.several:
				d.put(d.below.draw(random), at)
			case try%candidatesOfTPE == 0: // else those that were tried would come again
				d.put(d.best(random), at)
			}
		}

		a, actual, err := m.space.assign(at)
		if text := key(actual); err == nil && !p.tried[text] && !known[text] {
			known[text] = true
			found, ats = append(found, a), append(ats, actual)
		}
	}

	if len(found) == 0 {
		return nil
	}

	sums := make([]float64, len(found))
	for _, d := range densities {
		d.addScores(sums, ats)
	}

	return found[argmax(sums)]
}

// addScores adds the scores of candidates in which the group is active.
func (d density) addScores(sums []float64, ats [][]float64) {
	var (
		rows   [][]float64
		active []int
	)

	for i, at := range ats {
		if row, whole := (known{at: at}).row(d.dims); whole {
			rows, active = append(rows, row), append(active, i)
		}
	}

	if len(rows) == 0 {
		return
	}

	for j, score := range d.score(rows) {
		sums[active[j]] += score
	}
}

// put writes a group's coordinates to where they belong.
func (d density) put(row, at []float64) {
	for j, dim := range d.dims {
		at[dim] = row[j]
	}
}

// densities are those of the groups.
func (m *tpe) densities(p *past) []density {
	count := goodOfSeveral(p.teachers())
	if !m.several {
		count = min(count, mostBelow)
	}

	good := p.best(count)

	out := make([]density, len(m.groups))

	for g, group := range m.groups {
		dims := make([]*dim, len(group))
		for j, i := range group {
			dims[j] = &m.space.searched[i]
		}

		var below, above [][]float64

		for _, k := range p.trials {
			row, whole := k.row(group)

			switch {
			case !whole:
			case good[k.number]:
				below = append(below, row)
			default:
				above = append(above, row)
			}
		}

		out[g] = density{group, newParzen(dims, below, m.several), newParzen(dims, above, false)}
	}

	return out
}

// row are the coordinates of some parameters; whole = all of them are active.
func (k known) row(dims []int) (row []float64, whole bool) {
	row = make([]float64, len(dims))

	for j, i := range dims {
		if row[j] = k.at[i]; math.IsNaN(row[j]) {
			return nil, false
		}
	}

	return row, true
}

// argmax is the place of the largest score, the first of equals.
func argmax(scores []float64) int {
	best := 0

	for i, score := range scores {
		if coarse(score) > coarse(scores[best]) {
			best = i
		}
	}

	return best
}

// coarse is a score to nine digits behind the point, so that processors which differ in
// the last bits choose alike.
func coarse(score float64) float64 { return math.Round(score*1e9) / 1e9 }

// conditionText is one text for equal conditions.
func conditionText(when map[string]berth.Values) string {
	var text strings.Builder

	for _, parent := range slices.Sorted(maps.Keys(when)) {
		fmt.Fprintf(&text, "%q in %v\n", parent, when[parent])
	}

	return text.String()
}
