package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// addDevices adds the hosts' devices. With forgotten it includes devices that no
// worker has seen for longer than HostGrace.
func (s *Store) addDevices(ctx context.Context, db dbsqlc.DBTX, hosts []berth.Host, forgotten bool) error {
	rows, err := s.q.ListDevices(ctx, db, &dbsqlc.ListDevicesParams{Grace: berth.HostGrace, Forgotten: forgotten})
	if err != nil {
		return err
	}

	devices := make(map[string][]berth.Device)

	for _, d := range rows {
		devices[d.HostID] = append(devices[d.HostID], toDevice(d))
	}

	for i := range hosts {
		hosts[i].Devices = append([]berth.Device{}, devices[hosts[i].ID]...)
	}

	return nil
}

// GetDevice returns a GPU, also one whose host was removed. Errors: not_found.
func (s *Store) GetDevice(ctx context.Context, id string) (berth.Device, error) {
	rows, err := s.q.ListDevices(ctx, s.pool, &dbsqlc.ListDevicesParams{ID: &id, Grace: berth.HostGrace})
	if err := must(int64(len(rows)), err, "reading GPU", "no GPU "+id); err != nil {
		return berth.Device{}, err
	}

	return toDevice(rows[0]), nil
}

func toDevice(d dbsqlc.ListDevicesRow) berth.Device {
	device := berth.Device{
		ID: d.ID, HostID: d.HostID, Model: d.Model, Profile: d.Profile, Mode: d.Mode,
		MemoryBytes: d.MemoryBytes, HeadroomBytes: d.HeadroomBytes, ReservedBytes: d.ReservedBytes, FreeBytes: d.FreeBytes,
		MaxContexts: d.MaxContexts, MPSContexts: d.MPSContexts, ContextsReserved: d.ContextsReserved,
		MaxAttempts: d.MaxAttempts, Attempts: d.Attempts, ActivityReserved: d.Activity, Exclusive: d.Exclusive, Problem: d.Problem, MPSProblem: d.MPSProblem, Advice: d.Advice,
	}
	if d.CordonedAt != nil {
		device.CordonedAt, device.CordonReason = d.CordonedAt, d.CordonReason
	}

	switch {
	case d.Forgotten && d.Attempts == 0:
		device.Problem = berth.Forgotten
	case d.LostAt != nil:
		device.Problem = berth.NotHandedOut
	}

	return device
}

// registerDevices stores the GPUs that a worker found on its machine. Errors:
// conflict when another host has one of them.
func (s *Store) registerDevices(ctx context.Context, tx pgx.Tx, h berth.Host) error {
	p := &dbsqlc.RegisterDevicesParams{HostID: h.ID, IDs: []string{}} // NULL is not the empty list
	for _, d := range h.Devices {
		p.IDs, p.Models, p.Profiles, p.Modes = append(p.IDs, d.ID), append(p.Models, d.Model), append(p.Profiles, d.Profile), append(p.Modes, string(d.Mode))
		p.MemoryBytes, p.HeadroomBytes, p.FreeBytes = append(p.MemoryBytes, d.MemoryBytes), append(p.HeadroomBytes, d.HeadroomBytes), append(p.FreeBytes, d.FreeBytes)
		p.MaxContexts, p.MPSContexts = append(p.MaxContexts, d.MaxContexts), append(p.MPSContexts, d.MPSContexts)
		p.MaxAttempts, p.Problems = append(p.MaxAttempts, d.MaxAttempts), append(p.Problems, d.Problem)
		p.MPSProblems = append(p.MPSProblems, d.MPSProblem)
	}

	elsewhere, err := s.q.ListDevicesElsewhere(ctx, tx, &dbsqlc.ListDevicesElsewhereParams{IDs: p.IDs, HostID: h.ID, LostAfter: berth.HostLostAfter})
	if err != nil {
		return err
	}

	if len(elsewhere) > 0 {
		return devicesTaken(elsewhere)
	}

	if err := s.q.LoseDevices(ctx, tx, h.ID, p.IDs); err != nil {
		return err
	}

	return s.q.RegisterDevices(ctx, tx, p)
}

// devicesTaken says whose the GPUs are, and how they come free.
func devicesTaken(rows []dbsqlc.ListDevicesElsewhereRow) error {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}

	if rows[0].Holds {
		return berth.Errorf(berth.KindConflict, "trials of host %q still hold places on its GPU %s; start that host's worker and it goes on with them, "+
			"or `berth host remove %s` if it is gone for good", rows[0].HostName, strings.Join(ids, ", "), rows[0].HostName)
	}

	return berth.Errorf(berth.KindConflict, "host %q has GPU %s already; give each worker its own with --gpus", rows[0].HostName, strings.Join(ids, ", "))
}

func (s *Store) touchDevices(ctx context.Context, hostID string, devices []berth.DeviceFree) error {
	if len(devices) == 0 {
		return nil
	}

	p := &dbsqlc.TouchDevicesParams{HostID: hostID}
	for _, d := range devices {
		p.IDs, p.FreeBytes, p.Problems = append(p.IDs, d.ID), append(p.FreeBytes, d.FreeBytes), append(p.Problems, d.Problem)
		p.MPSProblems = append(p.MPSProblems, d.MPSProblem)
	}

	return translate(s.q.TouchDevices(ctx, s.pool, p), "touching the devices of host "+hostID)
}

// CordonDevice keeps a GPU from taking new attempts, until ReadyDevice. The reason may
// be empty. Cordoned again, it has the new reason. Errors: not_found.
func (s *Store) CordonDevice(ctx context.Context, id, reason string) error {
	return s.changeDevice(ctx, "cordoning GPU", id, func(tx pgx.Tx) (int64, error) { return s.q.CordonDevice(ctx, tx, reason, id) })
}

// ReadyDevice lets a GPU take attempts again. Errors: not_found.
func (s *Store) ReadyDevice(ctx context.Context, id string) error {
	return s.changeDevice(ctx, "making ready GPU", id, func(tx pgx.Tx) (int64, error) { return s.q.ReadyDevice(ctx, tx, id) })
}

// changeDevice changes a GPU and wakes the placer.
func (s *Store) changeDevice(ctx context.Context, doing, id string, change func(tx pgx.Tx) (int64, error)) error {
	return s.inTx(ctx, doing+" "+id, func(tx pgx.Tx) error {
		rows, err := change(tx)
		if err := must(rows, err, doing, "no GPU "+id); err != nil {
			return err
		}

		return wake(ctx, tx, channelPlacer)
	})
}
