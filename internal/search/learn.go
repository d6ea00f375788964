package search

import "github.com/berthml/berth"

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
		origin := berth.Origin{By: s.spec.Search.Algorithm, Ended: p.ended, Open: len(p.trials) - p.ended}

		var a berth.Assignment
		if p.ended >= s.spec.Search.Startup {
			a = s.model.suggest(p, source(s.spec.Search.Seed, number, modelDraw))
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

		p.add(known{at: s.space.coordinates(a)})
		out = append(out, Suggestion{a, origin})
	}

	return out, EndNone, nil
}
