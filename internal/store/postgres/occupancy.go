package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// ListLeases returns the current leases by host, GPU and age, after a place in
// that list; the zero place is before all.
func (s *Store) ListLeases(ctx context.Context, after berth.LeaseKey, limit int) ([]berth.HeldLease, error) {
	rows, err := s.q.ListLeases(ctx, s.pool, &dbsqlc.ListLeasesParams{
		AfterHost: cmp.Or(after.HostID, noID), AfterDevice: after.DeviceID, AfterTime: after.Since, AfterAttempt: cmp.Or(after.AttemptID, noID),
		MaxRows: limit,
	})

	return collect(rows, err, "listing leases", func(row dbsqlc.ListLeasesRow) berth.HeldLease {
		l := berth.HeldLease{
			AttemptID: row.AttemptID, AttemptState: row.AttemptState, Number: row.Number, Stage: row.Stage,
			Purpose: row.Purpose, SweepID: row.SweepID, SweepName: row.SweepName, TrialNumber: row.TrialNumber,
			HostID: row.HostID, HostName: row.HostName, DeviceID: row.DeviceID, Activity: int64(row.DeviceActivity),
			Demand: berth.Demand{
				MemoryBytes: row.MemoryBytes, CPUMilli: row.CPUMilli, DeviceBytes: row.DeviceBytes, Contexts: row.Contexts,
				Exclusive: row.Exclusive, ExclusiveDevice: row.ExclusiveDevice, SpillBytes: row.SpillBytes,
			},
			State: row.State, Since: row.CreatedAt,
			MeasuredBytes: measured(row.MeasuredBytes), MeasuredDeviceBytes: measured(row.MeasuredDeviceBytes),
		}
		if row.MeasuredSecond != notMeasured {
			l.MeasuredAt = new(row.StartedAt.Add(time.Duration(row.MeasuredSecond) * time.Second))
		}

		return l
	})
}

// ListQueue returns the requests that wait for a lease, by position, after a place in
// the queue, each with the expected end of its blocker, and the number of waiting
// requests; the zero place is before all.
func (s *Store) ListQueue(ctx context.Context, after berth.QueueKey, limit int) (queue []berth.QueuedRequest, total int, err error) {
	rows, err := s.q.ListQueue(ctx, s.pool, &dbsqlc.ListQueueParams{
		AfterPutOff: after.PutOff, AfterInactive: after.Inactive, AfterSince: after.Since, AfterAttempt: cmp.Or(after.AttemptID, noID),
		MaxRows: limit,
	})
	if err != nil {
		return nil, 0, translate(err, "listing the queue")
	}

	queue = convertAll(rows, func(row dbsqlc.ListQueueRow) berth.QueuedRequest {
		total = row.Total

		return berth.QueuedRequest{
			Position: row.Position, AttemptID: row.AttemptID, Number: row.Number, Stage: row.Stage, Purpose: row.Purpose,
			SweepID: row.SweepID, SweepName: row.SweepName, SweepState: berth.SweepState(row.SweepState), TrialNumber: row.TrialNumber,
			Since: row.Since, NotBefore: putOff(row.PutOff, row.NotBefore), Reasons: toReasons(row.Reasons),
			Kept: keptHost(row.KeptHostID, row.KeptHost, row.KeptDeviceID, row.KeptSince),
		}
	})

	return queue, total, s.addBlockerEnds(ctx, queue)
}

// addBlockerEnds adds to requests the expected end of their first blocker: its start
// plus the median time of the trials of its sweep.
func (s *Store) addBlockerEnds(ctx context.Context, queue []berth.QueuedRequest) error {
	blockers := make(map[string]bool)

	for _, r := range queue {
		for _, id := range r.Blockers() {
			blockers[id] = true
		}
	}

	if len(blockers) == 0 {
		return nil
	}

	rows, err := s.q.ListHolders(ctx, s.pool, slices.Collect(maps.Keys(blockers)))
	if err != nil {
		return translate(err, "reading what holds what the queue waits for")
	}

	sweeps := make(map[string]bool)
	for _, row := range rows {
		sweeps[row.SweepID] = true
	}

	times, err := s.trialTimes(ctx, slices.Collect(maps.Keys(sweeps)))
	if err != nil {
		return err
	}

	ends := make(berth.EarliestEnds)

	for _, row := range rows {
		if t := times[row.SweepID]; t.Known() {
			ends.Add(row.Oldest.Add(t.Median), row.SweepID, row.HostID, row.DeviceID)
		}
	}

	for i := range queue {
		queue[i].BlockerEndsAt = ends.First(queue[i].Blockers())
	}

	return nil
}

func putOff(is bool, until time.Time) *time.Time {
	if !is {
		return nil
	}

	return &until
}

// keptHost is the capacity kept free for a request; nil = none, or its host is
// gone.
func keptHost(hostID, name, deviceID string, since time.Time) *berth.KeptHost {
	if hostID == "" {
		return nil
	}

	return &berth.KeptHost{HostID: hostID, HostName: name, DeviceID: deviceID, Since: since}
}
