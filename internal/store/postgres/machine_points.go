package postgres

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// ListMachine returns how full a host and its GPUs were in the time before now, in intervals
// of whole minutes: by GPU and time, the host itself first. It is known for berth.MachinePointsKept.
func (s *Store) ListMachine(ctx context.Context, hostID string, covered, every time.Duration) ([]berth.MachinePoint, error) {
	rows, err := s.q.ListMachinePoints(ctx, s.pool, &dbsqlc.ListMachinePointsParams{HostID: hostID, Covered: covered, Every: every})

	return collect(rows, err, "listing how full host "+hostID+" was", func(row dbsqlc.ListMachinePointsRow) berth.MachinePoint {
		return berth.MachinePoint{
			DeviceID: row.DeviceID, At: row.At, MemoryBytes: row.MemoryBytes, ReservedBytes: row.ReservedBytes,
			MeasuredBytes: measured(row.MeasuredBytes), OthersBytes: measured(row.OthersBytes), ActivityMilli: measured(row.ActivityMilli),
			CPUMilli: row.CPUMilli, Attempts: row.Attempts,
		}
	})
}

// notMeasured stands for a figure that is missing, where statements have no NULL.
const notMeasured = -1

// measured is a figure of a statement, or nil for a missing one.
func measured(figure int64) *int64 {
	if figure == notMeasured {
		return nil
	}

	return &figure
}
