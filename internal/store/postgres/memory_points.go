package postgres

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// PutMemory stores points of an attempt's memory, ascending. It merges the stored points into the
// intervals of the newest point, new or stored. Storing the same points again changes nothing. Errors:
// fenced.
func (s *Store) PutMemory(ctx context.Context, attemptID string, token int64, points []berth.MemoryPoint) error {
	if len(points) == 0 {
		return nil
	}

	found, err := s.q.PutMemoryPoints(ctx, s.pool, &dbsqlc.PutMemoryPointsParams{
		AttemptID: attemptID, Token: token, Newest: points[len(points)-1].Second, MaxPoints: berth.MaxMemoryPoints, Points: encode(points),
	})
	if err != nil {
		return translate(err, "storing the memory of attempt "+attemptID)
	}

	return fencedError(int64(found), nil, attemptID, token)
}

// ListMemory returns an attempt's memory over time, ascending, at most berth.MaxMemoryPoints.
func (s *Store) ListMemory(ctx context.Context, attemptID string) ([]berth.MemoryPoint, error) {
	rows, err := s.q.ListMemoryPoints(ctx, s.pool, attemptID, berth.MaxMemoryPoints)

	return collect(rows, err, "listing the memory of attempt "+attemptID, func(row dbsqlc.ListMemoryPointsRow) berth.MemoryPoint { return berth.MemoryPoint(row) })
}
