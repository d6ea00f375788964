package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
)

// mostObserved is how many trials are remembered, of all sweeps together: about 100 MiB.
const mostObserved = 200_000

// observed remembers the trials of sweeps whose searches learn, up to the first that is open:
// these change no more, and a sweep of 10,000 trials asks for them as often.
type observed struct {
	mu     sync.Mutex
	sweeps map[string]past
	count  int
}

// past are the first trials of a sweep, which have all ended.
type past struct {
	trials []berth.Observation
	lastID string // of the last one: after a restore the number may be another trial's
}

func (o *observed) get(sweepID string) past {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.sweeps[sweepID]
}

// put remembers a sweep's past, and forgets others where there are too many trials.
func (o *observed) put(sweepID string, p past) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.sweeps == nil {
		o.sweeps = make(map[string]past)
	}

	o.count += len(p.trials) - len(o.sweeps[sweepID].trials)
	o.sweeps[sweepID] = p

	for other, its := range o.sweeps {
		if o.count > mostObserved && other != sweepID {
			o.count -= len(its.trials)
			delete(o.sweeps, other)
		}
	}
}

// observations returns all trials of a sweep, by number. It reads those that are not
// remembered, and the last one that is.
func (s *Store) observations(ctx context.Context, tx pgx.Tx, sweepID string) ([]berth.Observation, error) {
	known := s.observed.get(sweepID)

	rows, err := s.q.ListObservations(ctx, tx, sweepID, len(known.trials))
	if err != nil {
		return nil, err
	}

	if len(known.trials) > 0 {
		if len(rows) == 0 || rows[0].ID != known.lastID || !rows[0].State.Terminal() {
			s.observed.put(sweepID, past{})

			return s.observations(ctx, tx, sweepID)
		}

		rows = rows[1:]
	}

	all := make([]berth.Observation, len(known.trials), len(known.trials)+len(rows))
	copy(all, known.trials)

	for _, row := range rows {
		all = append(all, berth.Observation{
			Number: row.Number, Params: row.Params, State: row.State, Kind: row.Kind, Value: row.Value, Step: row.Step, Results: row.Results,
		})

		if row.State.Terminal() && len(known.trials) == row.Number-1 {
			known = past{all, row.ID}
		}
	}

	s.observed.put(sweepID, past{slices.Clip(known.trials), known.lastID})

	return all, nil
}
