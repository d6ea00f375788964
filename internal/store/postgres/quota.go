package postgres

import (
	"context"

	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// OpenSweeps counts the sweeps a person made that have not ended, and tells
// whether a call of theirs to this route with this idempotency key, unless
// empty, has made its sweep already.
func (s *Store) OpenSweeps(ctx context.Context, person, route, key string) (open int, known bool, err error) {
	row, err := s.q.OpenSweeps(ctx, s.pool, &dbsqlc.OpenSweepsParams{Person: person, Route: route, Key: key})
	if err != nil {
		return 0, false, translate(err, "counting open sweeps")
	}

	return row.Open, row.Known, nil
}
