package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
)

const (
	// stuckAfter is when a request that waits for another attempt of its trial is
	// worth a person's look: such an attempt ends within seconds.
	stuckAfter = time.Minute
	// stuckNamed is how many stuck trials are named.
	stuckNamed = 5
	// silentAfter is when a host that has files to remove is perhaps gone for good.
	silentAfter = 24 * time.Hour
)

// Health lists late and silent parts.
func (s *Store) Health(ctx context.Context) (health.State, error) {
	var h health.State

	outbox, err := s.outboxBacklog(ctx)
	if err != nil {
		return h, err
	}

	hosts, err := s.ListHosts(ctx)
	if err != nil {
		return h, err
	}

	suspects, err := s.q.CountSuspectLeases(ctx, s.pool)
	if err != nil {
		return h, translate(err, "counting suspect leases")
	}

	installation, err := s.q.GetInstallation(ctx, s.pool)
	if err != nil {
		return h, translate(err, "reading the installation")
	}

	led, reason, err := s.placerLed(ctx)
	if err != nil {
		return h, err
	}

	h = health.State{
		NoPlacer: !led, PlacerReason: reason,
		OutboxWaiting: outbox.Waiting, OutboxOldest: outbox.Oldest, OutboxReason: outbox.Reason,
		Hosts: len(hosts), SuspectLeases: suspects, Alarm: installation.Alarm, Retention: installation.RetentionProblem,
		Database: s.readStorage(ctx), Connections: s.connectionUse(ctx), Admins: s.adminTokens(ctx),
	}

	if err := json.Unmarshal(installation.FailingRounds, &h.FailingRounds); err != nil {
		return h, berth.Errorf(berth.KindInternal, "reading why rounds fail: %w", err)
	}

	for _, host := range hosts {
		noteHost(&h, host)
	}

	secrets, err := s.ListSecrets(ctx)
	if err != nil {
		return h, err
	}

	h.Secrets, h.Unopened = len(secrets), unopenedSecrets(secrets, hosts)

	silent, err := s.q.SilentRemovals(ctx, s.pool, silentAfter)
	if err != nil {
		return h, translate(err, "looking for files that no host removes")
	}

	for _, host := range silent {
		h.Outputs = append(h.Outputs, fmt.Sprintf("%s: files of %d attempts are to be removed in %q, but its worker has not been heard of for a day",
			host.Name, host.Attempts, host.DataDir))
	}

	if h.WaitingFiles, err = s.waitingFiles(ctx); err != nil {
		return h, err
	}

	stuck, err := s.q.ListStuckRequests(ctx, s.pool, stuckAfter, stuckNamed)
	if err != nil {
		return h, translate(err, "looking for stuck requests")
	}

	for _, row := range stuck {
		h.StuckTrials = row.Requests
		h.Stuck = append(h.Stuck, health.StuckTrial{
			SweepID: row.SweepID, SweepName: row.SweepName, Number: row.TrialNumber, Reason: row.Reason,
		})
	}

	return h, nil
}

// noteHost names the problems of a host.
func noteHost(h *health.State, host berth.Host) {
	if host.CordonedAt != nil {
		h.Cordoned = append(h.Cordoned, host.Name+" ("+host.CordonReason+")")
	}

	for _, m := range host.MissingImages {
		if said := host.Name + " (" + m.Reason + ")"; m.Cordoned && !slices.Contains(h.Cordoned, said) {
			h.Cordoned = append(h.Cordoned, said)
		}
	}

	if host.State == berth.HostLost {
		if host.Attempts > 0 {
			h.SilentHosts = append(h.SilentHosts, host.Name)
		}

		return
	}

	h.Answering++
	h.Disks = append(h.Disks, health.DiskOf(&host))

	if slices.ContainsFunc(host.Devices, berth.Device.Simulated) {
		h.Simulated = append(h.Simulated, host.Name)
	}

	if host.OutputsProblem != "" {
		h.Outputs = append(h.Outputs, host.Name+": "+host.OutputsProblem)
	}

	if host.DiskLow() {
		h.FullDisks = append(h.FullDisks, host.Name)
	}

	if host.State == berth.HostUnready {
		h.Unready = append(h.Unready, host.Name+": "+host.Problem)
	}

	for _, dev := range host.Devices {
		switch name := host.Name + ", " + dev.ID + ": "; {
		case dev.Problem == berth.NotHandedOut:
			h.NotHandedOut = append(h.NotHandedOut, name+dev.Refusal())
		case strings.HasPrefix(dev.Problem, berth.MPSStarts): // also while it is cordoned
			h.StartingMPS = append(h.StartingMPS, name+dev.Refusal())
		case dev.Problem != "":
			h.SickDevices = append(h.SickDevices, name+dev.Refusal())
		case dev.CordonedAt != nil:
			h.CordonedDevices = append(h.CordonedDevices, name+dev.Refusal())
		case dev.MPSProblem != "":
			h.Sliced = append(h.Sliced, name+dev.MPSProblem)
		}
	}
}

// readStorage returns the size of the database. A failed query leaves its value
// unknown, because the rest of Health matters more.
func (s *Store) readStorage(ctx context.Context) (storage health.Storage) {
	if row, err := s.q.GetStorage(ctx, s.pool); err == nil {
		storage.Bytes, storage.Dir = row.Bytes, row.Dir
	}

	if row, err := s.q.GetTableSizes(ctx, s.pool); err == nil {
		storage.LogBytes, storage.MetricBytes = row.LogBytes, row.MetricBytes
	}

	return storage
}
