package search

import (
	"slices"

	"github.com/berthml/berth"
)

// modelDraw is the number of the draw that a model's random numbers belong to, apart from
// those of the drawer.
const modelDraw = drawsApart << 20

// nextLearned suggests by the model once enough trials ended, each as if the ones before
// it were open; until then, and where the model finds nothing new, by Sobol's sequence and
// the rest of the space, as nextRandom does.
func (s *Searcher) nextLearned(tried berth.Tried, limit int) (out []Suggestion, stop End, err error) {
	p := s.observe(tried.Past)
	d := &drawer{Searcher: s, tried: tried, batch: map[string]bool{}}

	for len(out) < limit {
		number := tried.Made + len(out)
		origin := berth.Origin{Ended: p.ended, Open: len(p.trials) - p.ended}

		var a berth.Assignment

		if p.ended >= s.spec.Search.Startup {
			var m model

			m, origin.By = s.modelFor(p)
			a = m.suggest(p, source(s.spec.Search.Seed, number, modelDraw))
		}

		if a != nil {
			d.batch[a.Key()] = true
			d.left, d.walked = nil, false
		} else {
			var end End

			origin.By = berth.SearchSobol

			a, end, err = d.next(number)
			if err != nil || end != EndNone {
				if end == EndDraws && len(out) > 0 {
					end = EndNone // the next call has all draws for the next trial
				}

				return out, end, err
			}
		}

		p.add(known{number: number + 1, at: s.space.coordinates(a)})
		out = append(out, Suggestion{a, origin})
	}

	return out, EndNone, nil
}

// mostForGP is up to how many ended trials a Gaussian process suggests: its time grows with
// their cube, and Optuna's AutoSampler changes there, too.
const mostForGP = 250

// modelFor is the model that suggests now, and its name. auto takes TPE for parameters with
// conditions.
func (s *Searcher) modelFor(p *past) (m model, name string) {
	conditional := slices.ContainsFunc(s.space.searched, func(d dim) bool { return len(d.When) > 0 })

	if s.spec.Search.Algorithm == berth.SearchTPE || p.ended > mostForGP || s.spec.Search.Algorithm == berth.SearchAuto && conditional {
		return s.tpe, berth.SearchTPE
	}

	return s.gp, berth.SearchGP
}
