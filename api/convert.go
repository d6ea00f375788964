package api

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/control/report"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/workflows"
)

// toSweep converts a sweep; its spec, which may be long, only when asked for.
func (s *Server) toSweep(sweep berth.Sweep, withSpec bool) (openapi.Sweep, error) {
	out := openapi.Sweep{
		ID: sweep.ID, Name: sweep.Name, Image: sweep.Spec.Image, ImageDigest: sweep.ImageDigest, State: openapi.SweepState(sweep.State),
		Reason: sweep.Reason, Note: sweep.Note, MaxParallel: sweep.MaxParallel, CreatedBy: sweep.CreatedBy, CreatedAt: sweep.CreatedAt,
		StartedAt: utc(sweep.StartedAt), FinishedAt: utc(sweep.FinishedAt),
		Counts: openapi.Counts{
			Total: sweep.Counts.Total, Planned: sweep.Counts.Planned, Waiting: sweep.Counts.Waiting, Running: sweep.Counts.Running,
			Succeeded: sweep.Counts.Succeeded, Failed: sweep.Counts.Failed, Infeasible: sweep.Counts.Infeasible,
			Canceled: sweep.Counts.Canceled, Pruned: sweep.Counts.Pruned, OomRetries: sweep.Counts.OOMRetries,
		},
	}

	if o := sweep.Spec.Objective; o != nil {
		out.Objective = new(toObjective(*o))
		out.Constraints = all(sweep.Spec.Constraints, func(c berth.Constraint) openapi.Constraint {
			return openapi.Constraint{Metric: c.Metric, Max: c.Max, Min: c.Min}
		})
	}

	if sweep.BestValue != nil {
		out.Best = &openapi.Best{Trial: sweep.BestTrial, Value: *sweep.BestValue}
	}

	out.TemporalURL = s.temporalURL(workflows.SweepWorkflowID(sweep.ID))

	if !withSpec {
		return out, nil
	}

	data, err := json.Marshal(sweep.Spec.AsWritten()) // as a file that can be submitted
	if err != nil {
		return out, berth.Errorf(berth.KindInternal, "marshaling the spec of sweep %s: %w", sweep.ID, err)
	}

	out.Spec = data

	return out, nil
}

func toObjective(o berth.Objective) openapi.Objective {
	return openapi.Objective{Metric: o.Metric, Goal: string(o.Goal), Target: o.Target, Further: all(o.Further, toObjective)}
}

func (s *Server) toTrial(t berth.Trial) openapi.Trial {
	out := openapi.Trial{
		ID: t.ID, SweepID: t.SweepID, Number: t.Number, Params: t.Params, ShapeKey: t.ShapeKey,
		State: openapi.TrialState(t.State), FailureKind: string(t.Kind), Message: t.Message, Note: t.Note, Value: t.Value, Results: t.Results,
		Origin:   openapi.Origin{By: t.Origin.By, Ended: t.Origin.Ended, Prior: t.Origin.Prior, Open: t.Origin.Open},
		Attempts: t.Attempts, CreatedAt: t.CreatedAt, StartedAt: utc(t.StartedAt), FinishedAt: utc(t.FinishedAt),
		TemporalURL: s.temporalURL(workflows.TrialWorkflowID(t.SweepID, t.Number)), OutputsRemoved: t.OutputsRemoved,
		KeptHost: toKeptHost(t.Kept),
	}

	if len(t.Waiting) > 0 {
		out.Waiting = all(t.Waiting, toRejection)
	}

	return out
}

func toRung(r berth.Rung) openapi.Rung {
	return openapi.Rung{Rung: r.Rung, Step: r.Step, Value: r.Value, Stop: r.Stop, Why: r.Why, At: r.At}
}

func toRejection(r berth.Rejection) openapi.Rejection {
	return openapi.Rejection{
		HostID: r.HostID, HostName: r.HostName, DeviceID: r.DeviceID, Dimension: string(r.Dimension),
		Needed: r.Needed, Free: r.Free, Never: r.Never, Reason: r.Reason,
	}
}

func (s *Server) toListedTrial(t berth.ListedTrial) openapi.Trial {
	out := s.toTrial(t.Trial)
	out.WaitingSince = utc(t.WaitingSince)

	l := t.Latest
	if l == nil {
		return out
	}

	out.LatestAttempt = &openapi.LatestAttempt{
		ID: l.ID, Number: l.Number, Stage: l.Stage, State: openapi.AttemptState(l.State), Purpose: string(l.Purpose),
		HostID: l.HostID, HostName: l.HostName,
		DeviceID: l.DeviceID, MemoryBytes: l.MemoryBytes, DeviceBytes: l.DeviceBytes, MemoryPeakBytes: l.MemoryPeakBytes, DevicePeakBytes: l.DevicePeakBytes,
	}

	if len(l.Metrics) > 0 {
		out.LatestAttempt.Metrics = all(l.Metrics, toMetric)
	}

	if l.Metric != nil {
		out.LatestAttempt.LastMetric = new(toMetric(*l.Metric))
	}

	return out
}

// temporalURL is the address of a workflow in Temporal's web UI; empty when the
// UI's address is not configured.
func (s *Server) temporalURL(workflowID string) string {
	if s.config.TemporalUI == "" {
		return ""
	}

	return strings.TrimSuffix(s.config.TemporalUI, "/") +
		"/namespaces/" + url.PathEscape(s.config.TemporalNamespace) + "/workflows/" + url.PathEscape(workflowID)
}

func toAttempt(a berth.Attempt) openapi.Attempt {
	return openapi.Attempt{
		ID: a.ID, TrialID: a.TrialID, Number: a.Number, Stage: a.Stage, Purpose: string(a.Purpose),
		State: openapi.AttemptState(a.State), HostID: a.HostID, DeviceID: a.DeviceID, ContainerID: a.ContainerID,
		DeviceClass: string(a.Class),
		Demand:      toDemand(a.Demand),
		FailureKind: string(a.Kind), Message: a.Message, ExitCode: a.ExitCode, Value: a.Value,
		MetricSource: a.MetricSource, Resumed: a.Resumed,
		Usage: openapi.Usage{
			MemoryPeakBytes: a.Usage.MemoryPeakBytes, DevicePeakBytes: a.Usage.DevicePeakBytes,
			FrameworkPeakBytes: a.Usage.FrameworkPeakBytes, DevicePhases: toPhases(a.Usage.DevicePhases),
			Steps: a.Usage.Steps, StepSeconds: seconds(a.Usage.StepTime),
			DeviceActivity: toActivity(a.Usage.DeviceActivity),
			CPUSeconds:     seconds(a.Usage.CPU), WallSeconds: seconds(a.Usage.Wall),
			Samples: a.Usage.Samples, CPUThrottledShare: a.Usage.HeldBack(), CPUContended: a.Usage.CPUContended, OomKills: a.Usage.OOMKills,
		},
		PlacedAt: a.PlacedAt, StartedAt: utc(a.StartedAt), FinishedAt: utc(a.FinishedAt),
		OutputsRemovedAt: utc(a.OutputsRemovedAt), OutputsRemovedWhy: a.OutputsRemovedWhy, Datasets: a.Datasets,
	}
}

func toDemand(d berth.Demand) openapi.Demand {
	return openapi.Demand{
		MemoryBytes: d.MemoryBytes, CPUMilli: d.CPUMilli, DeviceBytes: d.DeviceBytes, Contexts: d.Contexts,
		Exclusive: d.Exclusive, ExclusiveDevice: d.ExclusiveDevice, SpillBytes: d.SpillBytes,
	}
}

func toPhases(p berth.Phases) *openapi.DevicePhases {
	if p == (berth.Phases{}) {
		return nil
	}

	return &openapi.DevicePhases{StartBytes: p.StartBytes, TrainingBytes: p.TrainingBytes, ValidationBytes: p.ValidationBytes}
}

func toMetric(m berth.MetricPoint) openapi.Metric {
	out := openapi.Metric{Name: m.Name, Step: m.Step, Status: string(m.Status), Final: m.Final, At: m.At}
	if m.Status == berth.MetricFinite {
		out.Value = &m.Value
	}

	return out
}

func toProbe(p berth.ProbedShape) openapi.Probe {
	return openapi.Probe{
		ShapeKey: p.Key, Footprints: all(p.Footprints, toFootprint),
		Shape: openapi.Shape{
			ImageDigest: p.Shape.ImageDigest, Command: p.Shape.Command, Values: p.Shape.Values, Stage: p.Shape.Stage,
			DeviceModel: p.Shape.DeviceModel, Environment: p.Shape.Environment, CPUMilli: p.Shape.CPUMilli,
		},
	}
}

func toFootprint(f berth.Footprint) openapi.Footprint {
	return openapi.Footprint{
		DeviceClass: string(f.Class), Source: string(f.Source), Samples: f.Samples, MemoryPeakBytes: f.MemoryPeakBytes,
		MemoryFloorBytes: f.MemoryFloorBytes, DevicePeakBytes: f.DevicePeakBytes, CPUMilli: f.CPUMilli,
		DeviceActivity:  toActivity(f.DeviceActivity),
		DurationSeconds: seconds(f.Duration), MeasuredAt: f.MeasuredAt, ReservedBytes: memory.Reserve(f),
		DeviceReservedBytes: memory.ReserveDevice(f),
	}
}

func toActivity(a berth.DeviceActivity) openapi.DeviceActivity {
	return openapi.DeviceActivity{SmMilli: a.SMMilli, DramMilli: a.DRAMMilli, TensorMilli: a.TensorMilli}
}

func toHost(h berth.Host) openapi.Host {
	return openapi.Host{
		ID: h.ID, Name: h.Name, State: string(h.State), CPUMilli: h.CPUMilli, CPUMilliReserved: h.CPUMilliReserved,
		MemoryBytes: h.MemoryBytes, MemoryHeadroomBytes: h.MemoryHeadroomBytes, MemoryReservedBytes: h.MemoryReservedBytes,
		MemoryFreeBytes: h.MemoryFreeBytes, DiskFreeBytes: h.DiskFreeBytes, DiskHeadroomBytes: h.DiskHeadroomBytes,
		DiskBytes: h.DiskBytes, OutputBytes: h.OutputBytes, DiskWarning: health.DiskOf(&h).Warning(),
		MaxAttempts: h.MaxAttempts, Attempts: h.Attempts, Exclusive: h.Exclusive,
		Datasets: h.Datasets, Devices: all(h.Devices, toDevice), LastSeenAt: h.LastSeenAt, Problem: h.Problem,
		CordonedAt: utc(h.CordonedAt), CordonReason: h.CordonReason, CordonSweep: h.CordonSweep, UsedByOthersBytes: h.UsedByOthersBytes(),
	}
}

func toDevice(d berth.Device) openapi.Device {
	return openapi.Device{
		ID: d.ID, HostID: d.HostID, Model: d.Model, Profile: d.Profile, Class: string(d.Class()), Mode: openapi.DeviceMode(d.Mode),
		MemoryBytes: d.MemoryBytes, HeadroomBytes: d.HeadroomBytes, ReservedBytes: d.ReservedBytes, FreeBytes: d.FreeBytes,
		DefaultModeBytes: report.DefaultModeBytes(d.MemoryBytes),
		MaxContexts:      d.MaxContexts, MPSContexts: d.MPSContexts, ContextsReserved: d.ContextsReserved, ActivityReserved: d.ActivityReserved, MaxAttempts: d.MaxAttempts, Attempts: d.Attempts,
		Exclusive: d.Exclusive, Problem: d.Problem, MPSProblem: d.MPSProblem, Advice: toAdvice(d.Advice),
		CordonedAt: utc(d.CordonedAt), CordonReason: d.CordonReason, UsedByOthersBytes: d.UsedByOthersBytes(), Simulated: d.Simulated(),
	}
}

func toAdvice(a berth.Advice) *openapi.Advice {
	if a == (berth.Advice{}) {
		return nil
	}

	return &openapi.Advice{Mode: string(a.Mode), AtOnce: a.AtOnce, Capped: a.Capped, Trying: a.Trying, Why: a.Why}
}

func toToken(t berth.Token) openapi.Token {
	return openapi.Token{
		ID: t.ID, Name: t.Name, Prefix: t.Prefix, Role: openapi.TokenRole(t.Role), CreatedAt: t.CreatedAt,
		ExpiresAt: utc(t.ExpiresAt), RevokedAt: utc(t.RevokedAt), Valid: t.Valid,
	}
}

func toEvent(e berth.Event) (openapi.Event, error) {
	data, err := json.Marshal(e.Data)

	return openapi.Event{
		Sequence: e.Sequence, Kind: e.Kind, SweepID: e.SweepID, Subject: e.Subject, Trial: e.TrialNumber, Data: data, CreatedAt: e.CreatedAt,
	}, err
}

// all converts a list; the result is never nil, so that it is [] in JSON.
func all[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = convert(v)
	}

	return out
}

func seconds(d berth.Duration) float64 { return time.Duration(d).Seconds() }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}

	at := t.UTC()

	return &at
}

// given is an optional parameter, zero when the caller left it out.
func given[T any](p *T) T {
	var none T
	if p == nil {
		return none
	}

	return *p
}
