package search

import (
	"github.com/berthml/berth"
)

// modelDraw is the number of the draw that a model's random numbers belong to, apart from
// those of the drawer.
const modelDraw = drawsApart << 20

// suggest makes the suggestion for one trial: by a model once enough trials ended, each as
// if the ones before it were open; until then, where the model finds nothing new, and of a
// search that does not learn, by the next draw. Another end than EndNone is the reason for
// none.
func (d *drawer) suggest(number int) (Suggestion, End, error) {
	if d.past == nil {
		a, end, err := d.next(number)

		return Suggestion{a, berth.Origin{By: d.spec.Search.Algorithm}}, end, err
	}

	origin := berth.Origin{
		By: berth.SearchSobol, Ended: d.past.ended, Prior: d.past.prior, Open: len(d.past.trials) - d.past.ended - d.past.prior,
	}

	a, by := d.learned(number)
	if a != nil {
		origin.By = by
		d.batch[a.Key()] = true
		d.left, d.walked = nil, false
	} else {
		var (
			end End
			err error
		)

		if a, end, err = d.next(number); err != nil || end != EndNone {
			return Suggestion{}, end, err
		}
	}

	d.past.add(known{number: number + 1, at: d.space.coordinates(a)})

	return Suggestion{a, origin}, EndNone, nil
}

// learned is a model's suggestion and the model's name; nil = it knows too little, or finds
// nothing new. Half of the startup trials must have ended: with many at once all are made, and
// more, before their ends tell anything.
func (d *drawer) learned(number int) (a berth.Assignment, by string) {
	startup := d.spec.Search.Startup
	if len(d.past.trials) < startup || 2*d.past.teachers() < startup {
		return nil, ""
	}

	m, by := d.modelFor(d.past)

	return m.suggest(d.past, source(d.spec.Search.Seed, number, modelDraw)), by
}

// mostForGP is up to how many ended trials a Gaussian process suggests: its time grows with
// their cube, and Optuna's AutoSampler changes there, too.
const mostForGP = 250

// modelFor is the model that suggests now, and its name. auto takes TPE for several objectives
// only: with conditions, too, a process finds better values (bench/search, branches).
func (s *Searcher) modelFor(p *past) (m model, name string) {
	if s.spec.Search.Algorithm == berth.SearchTPE || s.several() || p.teachers() > mostForGP {
		return s.tpe, berth.SearchTPE
	}

	return s.gp, berth.SearchGP
}
