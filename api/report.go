package api

import (
	"context"
	"slices"

	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/report"
)

// GetSweepReport is GET /sweeps/{id}/report.
func (h *handlers) GetSweepReport(ctx context.Context, r openapi.GetSweepReportRequestObject) (openapi.GetSweepReportResponseObject, error) {
	after := 0
	if err := readCursor(given(r.Params.Cursor), &after); err != nil {
		return nil, err
	}

	limit := h.pageSize(given(r.Params.Limit))

	sweep, err := h.sweep(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	in, err := h.deps.Store.ReportInput(ctx, sweep.ID)
	if err != nil {
		return nil, err
	}

	return openapi.GetSweepReport200JSONResponse(toReport(in, report.Make(in), after, limit)), nil
}

// toReport is a report with the trials after the given number, limit at most.
func toReport(in report.Input, r report.Report, after, limit int) openapi.SweepReport {
	begin, _ := slices.BinarySearchFunc(r.Trials, after+1, func(t report.Trial, number int) int { return t.Number - number })
	page := r.Trials[begin:]

	next := ""
	if len(page) > limit {
		page = page[:limit]
		next = writeCursor(page[limit-1].Number)
	}

	return openapi.SweepReport{
		SweepID: in.SweepID, State: openapi.SweepState(in.State), Ended: r.Ended, AsOf: r.AsOf,
		Gpu: toReportTotals(r.GPU), Cores: toReportTotals(r.Cores), Places: all(r.Places, toReportPlace), Losses: all(r.Losses, toReportLoss),
		Stages: all(r.Stages, func(s report.Stage) openapi.ReportStage {
			return openapi.ReportStage{Name: s.Name, Trials: s.Trials, Runs: s.Runs, Seconds: s.Spent.Seconds(), SecondsAlone: s.Alone.Seconds()}
		}),
		MissingTrials: r.Missing, Notes: append([]string{}, r.Notes...), Trials: all(page, toReportTrial), NextCursor: next,
	}
}

func toReportTotals(t report.Totals) openapi.ReportTotals {
	return openapi.ReportTotals{
		Places: t.Places, Trials: t.Trials, Attempts: t.Attempts,
		UsedSeconds: t.Used.Seconds(), ChargedSeconds: t.Charged.Seconds(), AttemptSeconds: t.AttemptTime.Seconds(),
		AloneSeconds: t.AloneTime.Seconds(), AloneRan: t.AloneRan, AloneByShape: t.AloneByShape, AloneBounded: t.AloneBounded, AloneNeedless: t.AloneNeedless,
		AtOnce: t.AtOnce, MaxAtOnce: t.MaxAtOnce,
		ReservedByteSeconds: t.ReservedByteSeconds, DefaultByteSeconds: t.DefaultByteSeconds,
		MeasuredAttempts: t.Measured, PeakBytes: t.PeakBytes, PeakReservedBytes: t.PeakReserved,
		ActivitySeconds: t.ActivityTime.Seconds(), SmSeconds: t.SMTime.Seconds(), DramSeconds: t.DRAMTime.Seconds(), TensorSeconds: t.TensorTime.Seconds(),
		CPUSeconds: t.CPUTime.Seconds(), CPUReservedSeconds: t.CPUReservedTime.Seconds(),
	}
}

func toReportPlace(p report.Place) openapi.ReportPlace {
	return openapi.ReportPlace{
		HostID: p.HostID, Host: p.HostName, DeviceID: p.DeviceID, Model: p.Class, MemoryBytes: p.MemoryBytes, DefaultBytes: p.DefaultBytes,
		Trials: p.Trials, Attempts: p.Attempts,
		UsedSeconds: p.Used.Seconds(), ChargedSeconds: p.Charged.Seconds(), AttemptSeconds: p.AttemptTime.Seconds(),
		AtOnce: p.AtOnce, MaxAtOnce: p.MaxAtOnce, ReservedByteSeconds: p.ReservedByteSeconds, BusyShare: p.BusyShare,
	}
}

func toReportLoss(l report.Loss) openapi.ReportLoss {
	return openapi.ReportLoss{Cause: l.Cause, Attempts: l.Attempts, Repeated: l.Repeated, Seconds: l.Time.Seconds()}
}

func toReportTrial(t report.Trial) openapi.ReportTrial {
	return openapi.ReportTrial{Number: t.Number, Attempts: all(t.Attempts, toReportAttempt)}
}

func toReportAttempt(a report.TrialAttempt) openapi.ReportAttempt {
	return openapi.ReportAttempt{
		ID: a.ID, Number: a.Number, Stage: a.Stage, Purpose: string(a.Purpose), FailureKind: string(a.Kind), Host: a.HostName, DeviceID: a.DeviceID,
		DefaultBytes: a.DefaultBytes, ReservedBytes: a.ReservedBytes, PeakBytes: a.PeakBytes, PeakPartial: a.PeakPartial,
		SlackPercent: a.SlackPercent, Seconds: a.Took.Seconds(), Alone: a.Alone,
	}
}
