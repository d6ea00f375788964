package postgres

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/report"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// ReportInput reads the input of a sweep's report. Errors: not_found; conflict when its
// GPUs and hosts ran more than report.MaxAttempts attempts during the sweep.
func (s *Store) ReportInput(ctx context.Context, sweepID string) (report.Input, error) {
	sweep, err := s.countedSweep(ctx, sweepID) // before its attempts, so that no trial counts as ended without its attempts
	if err != nil {
		return report.Input{}, err
	}

	doing := "reading what sweep " + sweepID + " used"

	rows, err := s.q.ListReportAttempts(ctx, s.pool, report.MaxAttempts+1, sweepID)
	if err != nil {
		return report.Input{}, translate(err, doing)
	}

	if len(rows) > report.MaxAttempts {
		return report.Input{}, berth.Errorf(berth.KindConflict, "%s: it shared its GPUs or hosts with more than %d attempts, too many for a report",
			doing, report.MaxAttempts)
	}

	// After the attempts, so that no running one starts later.
	now, err := s.q.Now(ctx, s.pool)
	if err != nil {
		return report.Input{}, translate(err, doing)
	}

	in := report.Input{
		SweepID: sweepID, State: sweep.State, Trials: sweep.Counts.Total, Succeeded: sweep.Counts.Succeeded, AsOf: now,
		Attempts: make([]report.Attempt, len(rows)),
	}
	for i, row := range rows {
		in.Attempts[i] = toReportAttempt(row)
	}

	if len(sweep.Spec.Stages) == 0 {
		in.FirstFits, err = s.firstFits(ctx, sweep)

		return in, err
	}

	stages, err := s.q.StageUse(ctx, s.pool, sweepID)
	in.Stages, err = collect(stages, err, doing, func(row dbsqlc.StageUseRow) report.Stage { return report.Stage(row) })

	return in, err
}

func (s *Store) firstFits(ctx context.Context, sweep berth.Sweep) ([]report.FirstFit, error) {
	rows, err := s.q.FirstFits(ctx, s.pool, sweep.ID)

	return collect(rows, err, "reading first fits of sweep "+sweep.ID, func(row dbsqlc.FirstFitsRow) report.FirstFit {
		fit := report.FirstFit{
			Digest: row.FirstFit.Digest, Values: berth.Assignment{},
			Fit: time.Duration(row.FirstFit.Seconds * float64(time.Second)), Took: row.Took,
		}

		for _, p := range sweep.Spec.Parameters {
			if value, active := row.Params[p.Name]; active && p.Searched() {
				fit.Values[p.Name] = value
			}
		}

		return fit
	})
}

func toReportAttempt(row dbsqlc.ListReportAttemptsRow) report.Attempt {
	a := report.Attempt{
		ID: row.ID, SweepID: row.SweepID, Trial: row.TrialNumber, Number: row.Number, Stage: row.Stage, ShapeKey: row.ShapeKey,
		Purpose: row.Purpose, Short: row.Short, Kind: row.FailureKind,
		HostID: row.HostID, HostName: row.HostName, DeviceID: deref(row.DeviceID), Class: row.DeviceClass,
		MemoryBytes: row.HostBytes, ReservedBytes: row.MemoryBytes, PeakBytes: row.MemoryPeakBytes, PeakPartial: row.UnseenNs > 0,
		CPUMilli: row.CPUMilli, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
	}

	if a.DeviceID != "" {
		a.MemoryBytes, a.ReservedBytes, a.PeakBytes = row.CardBytes, row.DeviceBytes, row.DevicePeakBytes
	}

	if row.DeviceActiveNs > 0 {
		a.Activity = toActivity(row.DeviceSMMilli, row.DeviceDRAMMilli, row.DeviceTensorMilli)
		a.ActiveFor = time.Duration(row.DeviceActiveNs + row.DeviceUnknownNs)
	}

	a.HeldBack = berth.Usage{CPUPeriods: row.CPUPeriods, CPUThrottled: row.CPUThrottled}.HeldBack()

	if row.Samples > 0 {
		a.CPU, a.Wall = time.Duration(row.CPUNs), time.Duration(row.WallNs)
	}

	return a
}
