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

// tpe suggests as Optuna's multivariate tree-structured Parzen estimator does: where the
// density of good trials is large against that of all others. Trials without a result
// count among the others (constant_liar), and parameters with one condition are modelled
// together (group). Unlike Optuna it passes over candidates that were tried or may not be.
type tpe struct {
	space  *space
	groups [][]int // of searched parameters, by their condition; the unconditional ones first
}

func newTPE(sp *space) *tpe {
	m := &tpe{space: sp, groups: [][]int{nil}}

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
func (d density) best(random *rand.Rand) (row []float64, score float64) {
	rows := make([][]float64, candidatesOfTPE)
	for i := range rows {
		rows[i] = d.below.draw(random)
	}

	scores := d.score(rows)
	i := argmax(scores)

	return rows[i], scores[i]
}

// suggest is the best of the candidates that may be tried and were not; nil when it finds
// none.
func (m *tpe) suggest(p *past, random *rand.Rand) berth.Assignment {
	densities := m.densities(p)
	root, rest := densities[0], densities[1:]

	var (
		found []berth.Assignment
		rows  [][]float64 // of the unconditional parameters
		more  []float64   // scores of the active conditional ones
		known = make(map[string]bool)
	)

	at := make([]float64, len(m.space.searched))
	scores := make([]float64, len(rest))

	for try := 0; try < drawsForModel && len(found) < candidatesOfTPE; try++ {
		if try%candidatesOfTPE == 0 { // else those that were tried would come again
			for g, d := range rest {
				row, score := d.best(random)
				scores[g] = score
				d.put(row, at)
			}
		}

		row := root.below.draw(random)
		root.put(row, at)

		a, actual, err := m.space.assign(at)
		if text := key(actual); err == nil && !p.tried[text] && !known[text] {
			sum := 0.0

			for g, d := range rest {
				if !math.IsNaN(actual[d.dims[0]]) {
					sum += scores[g]
				}
			}

			known[text] = true
			found, rows, more = append(found, a), append(rows, row), append(more, sum)
		}
	}

	if len(found) == 0 {
		return nil
	}

	sums := root.score(rows)
	for i := range sums {
		sums[i] += more[i]
	}

	return found[argmax(sums)]
}

// put writes a group's coordinates to where they belong.
func (d density) put(row, at []float64) {
	for j, dim := range d.dims {
		at[dim] = row[j]
	}
}

// densities are those of the groups.
func (m *tpe) densities(p *past) []density {
	good := p.best(min((p.teachers()+9)/10, mostBelow))

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

		out[g] = density{group, newParzen(dims, below), newParzen(dims, above)}
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
