package postgres

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// notMeasured stands for a figure that is missing from a point, where statements have no NULL.
const notMeasured = -1

// PutMemory stores points of an attempt's memory, ascending. It merges the stored points into the
// intervals of the newest point, new or stored. Storing the same points again changes nothing. Errors:
// fenced.
func (s *Store) PutMemory(ctx context.Context, attemptID string, token int64, points []berth.MemoryPoint) error {
	if len(points) == 0 {
		return nil
	}

	p := &dbsqlc.PutMemoryPointsParams{
		AttemptID: attemptID, Token: token, Newest: points[len(points)-1].Second, MaxPoints: berth.MaxMemoryPoints,
	}

	for _, point := range points {
		p.Seconds = append(p.Seconds, point.Second)
		p.Hosts = append(p.Hosts, figure(point.HostBytes))
		p.Devices = append(p.Devices, figure(point.DeviceBytes))
		p.Sms = append(p.Sms, int(figure(point.SMMilli)))
	}

	found, err := s.q.PutMemoryPoints(ctx, s.pool, p)
	if err != nil {
		return translate(err, "storing the memory of attempt "+attemptID)
	}

	return fencedError(int64(found), nil, attemptID, token)
}

func figure(measured *int64) int64 {
	if measured == nil {
		return notMeasured
	}

	return *measured
}

// ListMemory returns an attempt's memory over time, ascending, at most berth.MaxMemoryPoints.
func (s *Store) ListMemory(ctx context.Context, attemptID string) ([]berth.MemoryPoint, error) {
	rows, err := s.q.ListMemoryPoints(ctx, s.pool, attemptID, berth.MaxMemoryPoints)

	return collect(rows, err, "listing the memory of attempt "+attemptID, func(row dbsqlc.ListMemoryPointsRow) berth.MemoryPoint { return berth.MemoryPoint(row) })
}
