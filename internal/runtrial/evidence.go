package runtrial

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// conclude turns what was seen of the container into its outcome.
func (r *run) conclude(seen observation) berth.Outcome {
	code := seen.exit.ExitCode
	_, announced := r.ooms.Load(r.who.Attempt.ID)

	evidence := failure.Evidence{
		Intent:           r.intent,
		ExitCode:         code,
		LogTail:          seen.tail,
		OOMKilled:        seen.exit.OOMKilled,
		OOMEvent:         announced,
		OOMKills:         seen.usage.OOMKills,
		MemoryLimitBytes: r.who.Attempt.Demand.MemoryBytes,
		PeakBytes:        seen.usage.MemoryPeakBytes,
		DaemonLost:       seen.exit.DaemonLost,
		HostRestarted:    r.config.BootID != "" && seen.exit.BootID != "" && seen.exit.BootID != r.config.BootID,
	}

	var value *float64

	if o := r.who.Spec.Objective; o != nil && !r.order.Short {
		evidence.Objective = o.Metric
		value, evidence.ObjectiveStatus = seen.metrics.objective(*o)
		evidence.HasObjective = evidence.ObjectiveStatus != ""
	}

	kind, message := failure.Classify(evidence)
	if kind != berth.FailureOK {
		value = nil
	}

	started, finished := r.startedAt.UTC(), seen.exit.FinishedAt.UTC()
	seen.usage.Wall = berth.Duration(max(finished.Sub(started), 0))

	return berth.Outcome{
		Kind: kind, Message: message, ExitCode: &code, Value: value, Usage: seen.usage, StartedAt: started, FinishedAt: finished,
	}
}

// concludeStart is the outcome of a container that could not start.
func (r *run) concludeStart(start *berth.StartError) berth.Outcome {
	now := time.Now().UTC()
	kind, message := failure.Classify(failure.Evidence{StartKind: start.Kind, StartMessage: start.Error()})

	return berth.Outcome{Kind: kind, Message: message, StartedAt: now, FinishedAt: now}
}
