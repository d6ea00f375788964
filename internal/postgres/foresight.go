package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
)

// Foresight returns what says when the oldest of what waits, at most limit requests, is
// expected to start. Nothing when nothing waits that may be placed now.
func (s *Store) Foresight(ctx context.Context, limit int) (f berth.Foresight, err error) {
	err = s.inSnapshot(ctx, "reading what the queue waits for", func(tx pgx.Tx) error {
		if err := s.readQueue(ctx, tx, limit, &f.Queue); err != nil {
			return err
		}

		f.Complete = len(f.Queue.Waiting) < limit
		if len(f.Queue.Waiting) == 0 {
			return nil
		}

		if err := s.addAhead(ctx, tx, f.Queue.Sweeps); err != nil {
			return err
		}

		if err := s.addFootprints(ctx, tx, &f.Queue); err != nil {
			return err
		}

		now, err := s.q.Now(ctx, tx)
		if err != nil {
			return err
		}

		for i := range f.Queue.Hosts {
			if h := &f.Queue.Hosts[i]; h.State == berth.HostLost {
				h.AbsentFor = now.Sub(h.LastSeenAt) - berth.HostLostAfter
			}
		}

		rows, err := s.q.ListHolding(ctx, tx)
		if err != nil {
			return err
		}

		sweeps := make(map[string]bool)
		for id := range f.Queue.Sweeps {
			sweeps[id] = true
		}

		for _, row := range rows {
			sweeps[row.SweepID] = true
			f.Running = append(f.Running, berth.RunningAttempt{
				SweepID: row.SweepID, ShapeKey: row.ShapeKey, HostID: row.HostID, DeviceID: row.DeviceID,
				Demand: berth.Demand{
					MemoryBytes: row.MemoryBytes, CPUMilli: row.CpuMilli, DeviceBytes: row.DeviceBytes, Contexts: int(row.Contexts),
					Exclusive: row.Exclusive, ExclusiveDevice: row.ExclusiveDevice,
				},
				Activity: int64(row.DeviceActivity), Ran: secondsOf(row.Ran), Silent: row.Silent, Ended: row.Ended,
			})
		}

		f.Times, err = s.shapeTimes(ctx, tx, slices.Collect(maps.Keys(sweeps)))

		return err
	})

	return f, err
}
