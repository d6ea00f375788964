package runtrial

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/failure"
)

// conclude turns what was seen of the container into its outcome.
func (r *run) conclude(ctx context.Context, seen observation) berth.Outcome {
	code := seen.exit.ExitCode
	started, finished := r.startedAt.UTC(), seen.exit.FinishedAt.UTC()
	seen.usage.Wall = berth.Duration(max(finished.Sub(started), 0))
	r.coverage().Ended(&seen.usage, finished)

	if r.who.Attempt.DeviceID != "" {
		seen.device.End(&seen.usage, finished)
	}

	r.judgeTime(seen.exit)

	shim := seen.said
	peak := shim.peakBytes
	seen.usage.FrameworkPeakBytes = peak

	// In unified memory a program holds more than its GPU has; else it came between two readings.
	if spills := r.who.Attempt.Demand.SpillBytes > 0; !spills && seen.usage.DeviceSamples > 0 && peak > seen.usage.DevicePeakBytes {
		seen.usage.DevicePeakBytes, seen.usage.DeviceUnseen = peak, max(seen.usage.DeviceUnseen, berth.Duration(r.config.SampleEvery))
	}

	seen.usage.Steps, seen.usage.StepTime = shim.steps, berth.Duration(shim.stepTime/time.Duration(max(shim.steps, 1)))
	seen.usage.DevicePhases = seen.device.Phases(shim.phases)
	_, announced := r.ooms.Load(r.who.Attempt.ID)

	evidence := failure.Evidence{
		Intent:           r.intent,
		StopWhy:          r.kept.StopWhy,
		ExitCode:         code,
		ReportedKind:     shim.kind,
		LogTail:          seen.tail.lines,
		OldLines:         seen.tail.before(finished.Add(-failure.FailsWithin)),
		OOMKilled:        seen.exit.OOMKilled,
		OOMEvent:         announced,
		OOMKills:         seen.usage.OOMKills,
		BelowLimit:       seen.usage.BelowLimit,
		OOMCause:         seen.exit.OOMCause,
		Host:             seen.host,
		Disk:             seen.disk,
		LogTorn:          seen.torn,
		HostName:         r.config.HostName,
		MemoryLimitBytes: r.who.Attempt.Demand.MemoryBytes,
		PeakBytes:        seen.usage.MemoryPeakBytes,
		DaemonLost:       seen.exit.DaemonLost,
		Limits:           r.limits(),
		Device:           r.deviceEvidence(seen),
		HostRestarted:    r.config.BootID != "" && seen.exit.BootID != "" && seen.exit.BootID != r.config.BootID,
	}

	results, reportedBy := r.results(seen, &evidence)

	kind, message := failure.Classify(evidence)
	kind, message = r.judgeOutput(ctx, kind, message)

	if kind == berth.FailureOK && r.short && !r.order.Short {
		kind, message = berth.FailurePreempted, "it was started as a short probe, so it has no result; Berth runs the trial in full"
	}

	if kind == berth.FailureOK && evidence.FromLog && !evidence.Final && seen.disk.LogUnseen {
		seen.omitted = append(seen.omitted, "the disk of Docker's logs is full, and Berth did not look at it when the trial ended: "+
			"its last reports may be missing (a final record, or a metrics file, is whole)")
	}

	if kind != berth.FailureOK {
		results = nil
	}

	if results != nil && !evidence.Final {
		seen.omitted = append(seen.omitted, r.resumedNote(r.who.Spec.Objective.Strategy))
	}

	if results != nil && reportedBy == berth.MetricsStdout && (r.who.Spec.Objective.Strategy == berth.StrategyLast || r.who.Spec.Objective.Strategy == "") {
		seen.omitted = append(seen.omitted, seen.place())
	}

	if evidence.OOMKilled || evidence.OOMEvent { // the cgroup's counter is gone with its container
		seen.usage.OOMKills = max(seen.usage.OOMKills, 1)
	}

	var value *float64

	if results != nil {
		broken := brokenNote(r.who.Spec.Constraints, results)
		seen.omitted = append(seen.omitted, broken)

		if broken == "" {
			value = new(results[r.who.Spec.Objective.Metric])
		}
	}

	if len(results) == 1 && value != nil { // which says all
		results = nil
	}

	notes := slices.Concat([]string{message}, seen.omitted,
		[]string{spillNote(r.who.Attempt.Demand), heldBackNote(seen.usage, r.capMilli(), int64(runtime.NumCPU())), sampling.GapNote(kind, seen.usage)})
	message = strings.Join(slices.DeleteFunc(notes, func(text string) bool { return text == "" }), "; ")

	return berth.Outcome{
		Kind: kind, Message: message, ExitCode: &code, Value: value, Results: results, Usage: seen.usage, StartedAt: started, FinishedAt: finished,
		DeviceFault: failure.OwnDeviceFault(evidence, kind), MetricSource: reportedBy, FirstFit: shim.firstFit,
	}
}

// results has the reported value of each metric that the sweep wants, nil when it wants none,
// and the source that reported the objective. The evidence is of the first metric that lacks
// a finite value, else of the objective.
func (r *run) results(seen observation, evidence *failure.Evidence) (results berth.Results, reportedBy string) {
	if r.short || r.who.Spec.Objective == nil {
		return nil, ""
	}

	setting := r.who.Spec.Metrics
	evidence.OwnPattern, evidence.FromEvents = setting.Pattern != "", setting.Source == berth.MetricsTensorBoard
	evidence.Reported, evidence.Near = seen.metrics.Names(), seen.near() // to the objective
	evidence.Final, evidence.ReportedSince = true, !r.disk.LogFullAt.IsZero()
	results = berth.Results{}

	for i, o := range r.who.Spec.Wanted() {
		value, status := seen.metrics.Objective(o)
		source := seen.metrics.Source(o.Metric)
		at, final := seen.metrics.ReportedAt(o)

		if i == 0 {
			reportedBy = source
		}

		if value != nil {
			results[o.Metric] = *value
		}

		if i == 0 || value == nil && evidence.ObjectiveStatus == berth.MetricFinite {
			evidence.Objective, evidence.ObjectiveStatus, evidence.HasObjective = o.Metric, status, status != ""
		}

		if i > 0 && evidence.Objective == o.Metric {
			evidence.Near = failure.Near{}
		}

		evidence.FromLog = evidence.FromLog || setting.Source == berth.MetricsStdout ||
			setting.Source == berth.MetricsAuto && (source == "" || source == berth.MetricsStdout)
		evidence.Final = evidence.Final && final
		evidence.ReportedSince = evidence.ReportedSince && at.After(r.disk.LogFullAt)
	}

	return results, reportedBy
}

// brokenNote says which constraint results break; empty = they break none.
func brokenNote(constraints []berth.Constraint, results berth.Results) string {
	for _, c := range constraints {
		switch value := results[c.Metric]; {
		case c.Beyond(value) <= 0:
		case c.Max != nil && value > *c.Max:
			return fmt.Sprintf("it breaks a constraint, so it is not ranked: its %s of %g is more than %g", c.Metric, value, *c.Max)
		default:
			return fmt.Sprintf("it breaks a constraint, so it is not ranked: its %s of %g is less than %g", c.Metric, value, *c.Min)
		}
	}

	return ""
}

// judgeTime says whether the container ended because its time was up. One that
// had ended when Berth asked it to stop was not ended by Berth: the worker came
// too late for that. One that ended by a signal after its time was up had been
// told to by a Run that could not write its intent down.
func (r *run) judgeTime(exit berth.Container) {
	const sigkill, sigterm = 128 + 9, 128 + 15

	limit, why := r.allowed()
	if (r.intent == why || r.intent.StopsEarly()) && exit.FinishedAt.Before(r.askedAt) {
		r.intent = failure.IntentNone
	}

	if r.intent == failure.IntentNone && limit > 0 && exit.FinishedAt.Sub(r.startedAt) >= limit &&
		(exit.ExitCode == sigkill || exit.ExitCode == sigterm) {
		r.intent = why
	}
}

// concludeGone is the outcome of a container that somebody removed, whom
// nothing keeps from it. How it ended nobody can tell any more.
func (r *run) concludeGone() berth.Outcome {
	return berth.Outcome{
		Kind: berth.FailureInfra, Message: "its container was removed by somebody else; Berth runs it again",
		Usage: r.measured(), StartedAt: r.startedAt.UTC(), FinishedAt: time.Now().UTC(),
	}
}

// concludeStart is the outcome of a container that could not start.
func (r *run) concludeStart(start *berth.StartError) berth.Outcome {
	now := time.Now().UTC()
	_, refused := errors.AsType[*berth.PullError](start)

	kind, message := failure.Classify(failure.Evidence{
		StartKind: start.Kind, StartMessage: start.Error(), PullFailed: refused, Image: r.who.Spec.Image, HostName: r.config.HostName,
	})

	return berth.Outcome{Kind: kind, Message: message, Usage: r.measured(), StartedAt: now, FinishedAt: now}
}
