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
		MaxRows: int32Of(limit),
	})

	return collect(rows, err, "listing leases", func(row dbsqlc.ListLeasesRow) (berth.HeldLease, error) {
		l := berth.HeldLease{
			AttemptID: row.AttemptID, AttemptState: berth.AttemptState(row.AttemptState), Number: int(row.Number), Stage: row.Stage,
			Purpose: berth.Purpose(row.Purpose), SweepID: row.SweepID, SweepName: row.SweepName, TrialNumber: int(row.TrialNumber),
			HostID: row.HostID, HostName: row.HostName, DeviceID: row.DeviceID, Activity: int64(row.DeviceActivity),
			Demand: berth.Demand{
				MemoryBytes: row.MemoryBytes, CPUMilli: row.CpuMilli, DeviceBytes: row.DeviceBytes, Contexts: int(row.Contexts),
				Exclusive: row.Exclusive, ExclusiveDevice: row.ExclusiveDevice, SpillBytes: row.SpillBytes,
			},
			State: berth.LeaseState(row.State), Since: row.CreatedAt.UTC(),
			MeasuredBytes: measured(row.MeasuredBytes), MeasuredDeviceBytes: measured(row.MeasuredDeviceBytes),
		}
		if row.MeasuredSecond != notMeasured {
			l.MeasuredAt = new(row.StartedAt.Add(time.Duration(row.MeasuredSecond) * time.Second).UTC())
		}

		return l, nil
	})
}

// ListQueue returns the requests that wait for a lease, by position, after a place in
// the queue, each with the expected end of its blocker, and the number of waiting
// requests; the zero place is before all.
func (s *Store) ListQueue(ctx context.Context, after berth.QueueKey, limit int) (queue []berth.QueuedRequest, total int, err error) {
	rows, err := s.q.ListQueue(ctx, s.pool, &dbsqlc.ListQueueParams{
		AfterPutOff: after.PutOff, AfterInactive: after.Inactive, AfterSince: after.Since, AfterAttempt: cmp.Or(after.AttemptID, noID),
		MaxRows: int32Of(limit),
	})
	if err != nil {
		return nil, 0, translate(err, "listing the queue")
	}

	queue, err = convertAll(rows, func(row dbsqlc.ListQueueRow) (berth.QueuedRequest, error) {
		total = int(row.Total)

		return berth.QueuedRequest{
			Position: int(row.Position), AttemptID: row.AttemptID, Number: int(row.Number), Stage: row.Stage, Purpose: berth.Purpose(row.Purpose),
			SweepID: row.SweepID, SweepName: row.SweepName, SweepState: berth.SweepState(row.SweepState), TrialNumber: int(row.TrialNumber),
			Since: row.Since.UTC(), NotBefore: putOff(row.PutOff, row.NotBefore), Reasons: toReasons(row.Reasons),
			Kept: keptHost(row.KeptHostID, row.KeptHost, row.KeptDeviceID, row.KeptSince),
		}, nil
	})

	if err == nil {
		err = s.addBlockerEnds(ctx, queue)
	}

	return queue, total, err
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
			ends.Add(row.Oldest.Add(t.Median).UTC(), row.SweepID, row.HostID, row.DeviceID)
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

	return new(until.UTC())
}

// keptHost is the capacity kept free for a request; nil = none, or its host is
// gone.
func keptHost(hostID, name, deviceID string, since time.Time) *berth.KeptHost {
	if hostID == "" {
		return nil
	}

	return &berth.KeptHost{HostID: hostID, HostName: name, DeviceID: deviceID, Since: since.UTC()}
}
