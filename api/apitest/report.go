package apitest

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/report"
)

// ReportAt is when reports of the store are made.
var ReportAt = Start.Add(time.Hour)

// ReportInput is api.Trials. It knows no short probes.
func (s *Store) ReportInput(ctx context.Context, sweepID string) (report.Input, error) {
	sweep, err := s.GetSweep(ctx, sweepID)
	if err != nil {
		return report.Input{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	in := report.Input{
		SweepID: sweepID, State: sweep.State, Trials: sweep.Counts.Total, Succeeded: sweep.Counts.Succeeded, AsOf: ReportAt,
	}

	for _, t := range s.Trials {
		for _, a := range s.Attempts {
			if a.TrialID == t.ID {
				in.Attempts = append(in.Attempts, s.reportAttempt(t, a))
			}
		}
	}

	return in, nil
}

func (s *Store) reportAttempt(t berth.Trial, a berth.Attempt) report.Attempt {
	out := report.Attempt{
		ID: a.ID, SweepID: t.SweepID, Trial: t.Number, Number: a.Number, ShapeKey: t.ShapeKey, Purpose: a.Purpose, Kind: a.Kind,
		HostID: a.HostID, DeviceID: a.DeviceID, Class: a.Class, ReservedBytes: a.Demand.MemoryBytes, PeakBytes: a.Usage.MemoryPeakBytes,
		PeakPartial: a.Usage.Unseen > 0, CPUMilli: a.Demand.CPUMilli, CPU: time.Duration(a.Usage.CPU), Wall: time.Duration(a.Usage.Wall),
		StartedAt: a.StartedAt, FinishedAt: a.FinishedAt,
	}

	if a.DeviceID != "" {
		out.ReservedBytes, out.PeakBytes = a.Demand.DeviceBytes, a.Usage.DevicePeakBytes
	}

	for _, h := range s.Hosts {
		if h.ID != a.HostID {
			continue
		}

		out.HostName = h.Name
		if a.DeviceID == "" {
			out.MemoryBytes = h.MemoryBytes
		}

		for _, d := range h.Devices {
			if d.ID == a.DeviceID {
				out.MemoryBytes = d.MemoryBytes
			}
		}
	}

	return out
}

// OnGPU moves the sample's attempts from its host's cores to an H200.
func (s *Store) OnGPU() {
	s.Change(func() {
		s.Hosts[0].Devices = []berth.Device{{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingMPS, MemoryBytes: 143_771 * MiB, MaxContexts: 48}}

		for i := range s.Attempts {
			a := &s.Attempts[i]
			a.DeviceID, a.Class = "GPU-1", s.Hosts[0].Devices[0].Class()
			a.Demand.DeviceBytes, a.Usage.DevicePeakBytes = a.Demand.MemoryBytes, a.Usage.MemoryPeakBytes
		}
	})
}
