package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// RegisterHost stores a worker's report of its machine. Leases beyond smaller
// totals stay booked until they end; nothing new is placed there. Errors:
// conflict when another host of the same machine, or with one of its GPUs, is
// served or holds places, because these would be handed out twice.
func (s *Store) RegisterHost(ctx context.Context, h berth.Host, version string) error {
	return s.inTx(ctx, "registering host "+h.Name, func(tx pgx.Tx) error {
		if err := s.checkMachine(ctx, tx, h); err != nil {
			return err
		}

		if err := s.q.NoteSmallerHost(ctx, tx, &dbsqlc.NoteSmallerHostParams{
			ID: h.ID, CapacityBytes: h.CapacityBytes(), CPUMilli: h.CPUMilli, Grace: berth.HostGrace,
		}); err != nil {
			return err
		}

		if err := s.q.RegisterHost(ctx, tx, &dbsqlc.RegisterHostParams{
			ID: h.ID, Name: h.Name, BootID: h.BootID, CPUMilli: h.CPUMilli, MemoryBytes: h.MemoryBytes,
			MemoryHeadroomBytes: h.MemoryHeadroomBytes, MemoryFreeBytes: h.MemoryFreeBytes,
			DiskFreeBytes: h.DiskFreeBytes, DiskHeadroomBytes: h.DiskHeadroomBytes,
			MaxAttempts: h.MaxAttempts, Version: version, MachineID: h.MachineID, DataDir: h.DataDir, Datasets: h.Datasets, SecretKeys: h.SecretKeys,
		}); err != nil {
			return err
		}

		if err := s.registerDevices(ctx, tx, h); err != nil {
			return err
		}

		return s.q.TestMissingImages(ctx, tx, h.ID)
	})
}

func (s *Store) checkMachine(ctx context.Context, tx pgx.Tx, h berth.Host) error {
	if h.MachineID == "" {
		return nil
	}

	others, err := s.machineHosts(ctx, tx, h)
	if err != nil {
		return err
	}

	for _, other := range others {
		switch {
		case other.Served:
			return berth.Errorf(berth.KindConflict, "this machine has a worker already: host %q (%s) with the data directory %s; "+
				"stop that worker first, or give both another --machine-id with --cpus and --memory to split the machine", other.Name, other.ID, other.DataDir)
		case other.Attempts > 0:
			return berth.Errorf(berth.KindConflict, "host %q (%s) of this machine still holds %d places for trials; "+
				"start the worker with its data directory, --data-dir %s, and it goes on with them", other.Name, other.ID, other.Attempts, other.DataDir)
		}
	}

	return nil
}

// MachineHosts returns the other hosts that workers of h's machine registered
// in its current boot, the one with the most attempts first.
func (s *Store) MachineHosts(ctx context.Context, h berth.Host) (hosts []berth.MachineHost, err error) {
	err = s.inTx(ctx, "looking for other hosts of this machine", func(tx pgx.Tx) error {
		hosts, err = s.machineHosts(ctx, tx, h)

		return err
	})

	return hosts, err
}

// machineHosts holds the machine until tx ends: of two workers that start at
// once, the second sees the first.
func (s *Store) machineHosts(ctx context.Context, tx pgx.Tx, h berth.Host) ([]berth.MachineHost, error) {
	if err := s.q.LockMachine(ctx, tx, h.MachineID); err != nil {
		return nil, err
	}

	rows, err := s.q.ListMachineHosts(ctx, tx, &dbsqlc.ListMachineHostsParams{MachineID: h.MachineID, BootID: h.BootID, ID: h.ID})

	return convertAll(rows, func(row dbsqlc.ListMachineHostsRow) berth.MachineHost { return berth.MachineHost(row) }), err
}

// TouchHost says the worker is alive, renews the leases of the attempts whose
// containers it has seen with their tokens, wakes the placer, and keeps how full the host is. A host without a problem gets
// abandoned attempts back that it still has and that no other host took: before
// it counts as alive, so that the placer places nothing in their stead.
// Errors: not_found.
func (s *Store) TouchHost(ctx context.Context, hostID string, free berth.HostFree, seen []berth.SeenAttempt) error {
	renew := &dbsqlc.RenewLeasesParams{HostID: hostID, Term: berth.LeaseTerm, AttemptIDs: []string{}, Tokens: []int64{}}
	for _, attempt := range seen {
		renew.AttemptIDs, renew.Tokens = append(renew.AttemptIDs, attempt.AttemptID), append(renew.Tokens, attempt.Token)
	}

	_, err := s.q.RenewLeases(ctx, s.pool, renew)
	if err != nil {
		return translate(err, "renewing leases of host "+hostID)
	}

	if free.Problem == "" && len(seen) > 0 {
		if err := s.inTx(ctx, "reviving attempts of host "+hostID, func(tx pgx.Tx) error {
			return s.reviveAttempts(ctx, tx, hostID, noID)
		}); err != nil {
			return err
		}
	}

	rows, err := s.q.TouchHost(ctx, s.pool, &dbsqlc.TouchHostParams{
		ID: hostID, MemoryFreeBytes: free.MemoryBytes, DiskFreeBytes: free.DiskBytes, Problem: free.Problem,
		DiskBytes: free.DiskTotal, OutputBytes: free.OutputBytes, OutputsProblem: free.OutputsProblem,
		Datasets: free.Datasets,
	})
	if err := must(rows, err, "touching host "+hostID, "the host is not registered"); err != nil {
		return err
	}

	if err := s.touchDevices(ctx, hostID, free.Devices); err != nil {
		return err
	}

	if err := wake(ctx, s.pool, channelPlacer); err != nil {
		return translate(err, "waking the placer")
	}

	return translate(s.q.AddMachinePoints(ctx, s.pool, hostID), "storing how full host "+hostID+" is")
}

// noID is the id of nothing.
const noID = "00000000-0000-0000-0000-000000000000"

// reviveAttempts gives abandoned attempts back to a host, or that of one trial to the
// host that has it, and tells their workflows, which wait for a place.
func (s *Store) reviveAttempts(ctx context.Context, tx pgx.Tx, hostID, trialID string) error {
	revived, err := s.q.ReviveAttempts(ctx, tx, &dbsqlc.ReviveAttemptsParams{
		HostID: hostID, TrialID: trialID, Fresh: berth.LeaseTerm - berth.ReviveWithin,
	})
	if err != nil || len(revived) == 0 {
		return err
	}

	if err := wake(ctx, tx, channelEvents); err != nil {
		return err
	}

	return wake(ctx, tx, channelOutbox)
}

// SuspectLeases marks leases that were not renewed in time. They keep their
// bookings. It returns the attempts concerned.
func (s *Store) SuspectLeases(ctx context.Context) ([]string, error) {
	attempts, err := s.q.SuspectLeases(ctx, s.pool)

	return attempts, translate(err, "looking for expired leases")
}

// ReleaseLease frees a lease's booking, on proof. It does nothing when the
// lease is free already.
func (s *Store) ReleaseLease(ctx context.Context, attemptID, proof string) error {
	if err := s.q.ReleaseLease(ctx, s.pool, attemptID, proof); err != nil {
		return translate(err, "releasing lease of attempt "+attemptID)
	}

	return translate(wake(ctx, s.pool, channelPlacer), "waking the placer")
}

// HostLeases returns the unreleased leases of a host, oldest first.
func (s *Store) HostLeases(ctx context.Context, hostID string) ([]berth.HostLease, error) {
	rows, err := s.q.ListHostLeases(ctx, s.pool, hostID)

	return collect(rows, err, "listing leases of host "+hostID, func(row dbsqlc.ListHostLeasesRow) berth.HostLease { return berth.HostLease(row) })
}

// LeasesOf returns the unreleased leases of these attempts, on any host, oldest
// first.
func (s *Store) LeasesOf(ctx context.Context, attemptIDs []string) ([]berth.HostLease, error) {
	rows, err := s.q.ListLeasesOf(ctx, s.pool, attemptIDs)

	return collect(rows, err, "listing leases of attempts", func(row dbsqlc.ListLeasesOfRow) berth.HostLease { return berth.HostLease(row) })
}

// ListHosts returns all hosts with their devices, by name.
func (s *Store) ListHosts(ctx context.Context) ([]berth.Host, error) {
	hosts, err := s.readHosts(ctx, s.pool, false)

	return hosts, translate(err, "listing hosts")
}

func (s *Store) readHosts(ctx context.Context, db dbsqlc.DBTX, forgotten bool) ([]berth.Host, error) {
	rows, err := s.q.ListHosts(ctx, db, berth.HostLostAfter, berth.HostLateAfter)
	if err != nil {
		return nil, err
	}

	hosts := convertAll(rows, toHost)
	if err := s.addMissingImages(ctx, db, hosts); err != nil {
		return nil, err
	}

	return hosts, s.addDevices(ctx, db, hosts, forgotten)
}

// addMissingImages says of hosts which sweeps' images they lack.
func (s *Store) addMissingImages(ctx context.Context, db dbsqlc.DBTX, hosts []berth.Host) error {
	rows, err := s.q.ListMissingImages(ctx, db, berth.HostCordonWindow, berth.MissingImageKept)
	if err != nil {
		return err
	}

	for _, row := range rows {
		for i := range hosts {
			if hosts[i].ID == row.HostID {
				hosts[i].MissingImages = append(hosts[i].MissingImages, berth.MissingImage{
					SweepID: row.SweepID, Reason: row.Reason, Cordoned: row.Cordoned, TestDue: row.TestDue,
				})
			}
		}
	}

	return nil
}

// RecentHosts returns all hosts with their devices, also forgotten ones. Former hosts
// are in the list too: removed ones, and the earlier size of hosts that came back
// smaller, both within HostGrace.
func (s *Store) RecentHosts(ctx context.Context) ([]berth.Host, error) {
	hosts, err := s.recentHosts(ctx, s.pool)

	return hosts, translate(err, "listing hosts")
}

func (s *Store) recentHosts(ctx context.Context, db dbsqlc.DBTX) ([]berth.Host, error) {
	hosts, err := s.readHosts(ctx, db, true)
	if err != nil {
		return nil, err
	}

	rows, err := s.q.ListFormerHosts(ctx, db, berth.HostGrace)
	if err != nil || len(rows) == 0 {
		return hosts, err
	}

	former := convertAll(rows, toFormerHost)

	return append(hosts, former...), s.addDevices(ctx, db, former, false)
}

// SetHostState lets a host take attempts (ready) or not (draining).
func (s *Store) SetHostState(ctx context.Context, hostID string, state berth.HostState) error {
	return s.inTx(ctx, "setting state of host "+hostID, func(tx pgx.Tx) error {
		rows, err := s.q.SetHostState(ctx, tx, state, hostID)
		if err := must(rows, err, "setting state of host", "no host "+hostID); err != nil {
			return err
		}

		if state == berth.HostReady { // an operator says that it is mended
			if err := s.q.ClearMissingImages(ctx, tx, hostID); err != nil {
				return err
			}
		}

		return wake(ctx, tx, channelPlacer)
	})
}

// removedProof is the proof by an operator's word (rule R3).
const removedProof = "an operator says that the machine is gone"

// RemoveHost removes a host that will not come back from the ledger: it fences
// the host's attempts, frees their resources, and no longer lists the host. If
// its worker comes back, it registers again and finds its attempts fenced.
// Without force it removes only a lost host. Errors: not_found; conflict when
// its worker answers, or when an attempt was placed there in between.
func (s *Store) RemoveHost(ctx context.Context, hostID string, force bool) error {
	doing := "removing host " + hostID

	err := s.inTx(ctx, doing, func(tx pgx.Tx) error {
		lost, err := s.q.HostLost(ctx, tx, berth.HostLostAfter, hostID)
		if err != nil {
			return err
		}

		if !lost && !force {
			return berth.Errorf(berth.KindConflict,
				"its worker answers; stop the worker and its containers first, or remove the host by force when you are sure that nothing runs there")
		}

		if err := s.q.AbandonHostAttempts(ctx, tx, &dbsqlc.AbandonHostAttemptsParams{
			HostID: hostID, FailureKind: berth.FailureInfra, Message: "its host was removed; the attempt goes elsewhere",
		}); err != nil {
			return err
		}

		if err := s.q.ReleaseHostLeases(ctx, tx, hostID, removedProof); err != nil {
			return err
		}

		if err := s.q.RemoveHost(ctx, tx, hostID); err != nil {
			return err
		}

		return wake(ctx, tx, channelPlacer)
	})
	if berth.KindOf(bookingError(err, doing)) == berth.KindExhausted {
		return berth.Errorf(berth.KindConflict, "%s: an attempt was placed there meanwhile; drain it and try again", doing)
	}

	return err
}
