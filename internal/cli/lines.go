package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// lines shows a sweep as one plain line per change.
type lines struct {
	w   io.Writer
	now func() time.Time

	state  client.SweepState
	trials map[int]seen
}

// seen is the last printed state of a trial.
type seen struct {
	state   client.TrialState
	attempt int
}

func (l *lines) say(format string, args ...any) {
	say(l.w, "%s  %s\n", l.now().Format(time.TimeOnly), oneLine(fmt.Sprintf(format, args...)))
}

func (l *lines) show(b board) {
	if !ended(b.sweep.State) {
		l.sweep(b.sweep)
	}

	if l.trials == nil {
		l.trials = make(map[int]seen)
	}

	newest := b.newest()

	for _, trial := range b.trials {
		attempt := newest[trial.Number]
		now := seen{state: trial.State, attempt: attempt.Number}
		before := l.trials[trial.Number]
		l.trials[trial.Number] = now

		if text := changeText(b, trial, attempt, before, now); text != "" {
			l.say("%s", text)
		}
	}

	l.sweep(b.sweep) // its end comes after the last trial's
}

func (l *lines) sweep(s client.Sweep) {
	if l.state != s.State {
		l.state = s.State
		l.say("sweep %s: %s, %s", short(s.ID), withReason(s), countsText(s.Counts))
	}
}

func withReason(s client.Sweep) string {
	switch {
	case s.Reason == "":
		return string(s.State)
	case strings.HasPrefix(s.Reason, string(s.State)): // such as canceled
		return s.Reason
	default:
		return string(s.State) + " (" + s.Reason + ")"
	}
}

// changeText is the change of a trial, if it matters.
func changeText(b board, trial client.Trial, attempt client.Attempt, before, now seen) string {
	if before == now {
		return ""
	}

	name := fmt.Sprintf("trial %d", trial.Number)

	switch trial.State {
	case client.TrialStateRunning:
		stage := ""
		if attempt.Number > 0 && attempt.Stage != berth.StageMain {
			stage = " stage " + attempt.Stage
		}

		return fmt.Sprintf("%s runs%s: %s; %s", name, stage, attemptText(attempt), trial.Params.Text(" "))
	case client.TrialStateSucceeded:
		return fmt.Sprintf("%s succeeded: %s, %s; %s done", name, valueText(b.sweep, trial), usageText(attempt), progress(b.sweep.Counts))
	case client.TrialStatePruned:
		if before.state == trial.State {
			return ""
		}

		return fmt.Sprintf("%s %s; %s done", name, trial.Message, progress(b.sweep.Counts))
	case client.TrialStateFailed, client.TrialStateInfeasible, client.TrialStateCanceled:
		if before.state == trial.State {
			return ""
		}

		return fmt.Sprintf("%s %s: %s", name, trial.State, cmp.Or(trial.Message, trial.FailureKind, "no reason given"))
	default:
		return ""
	}
}

func attemptText(a client.Attempt) string {
	if a.Number == 0 {
		return "placed"
	}

	text := fmt.Sprintf("attempt %d, ", a.Number)
	if a.Purpose == "probe" {
		text += "measures its shape, "
	}

	return text + "reserves " + bytesText(a.Demand.MemoryBytes)
}

func valueText(s client.Sweep, t client.Trial) string {
	name := "value"
	if s.Objective != nil {
		name = s.Objective.Metric
	}

	switch {
	case breaksConstraint(t):
		return "breaks a constraint"
	case t.Value == nil:
		return "done"
	}

	return name + " " + number(*t.Value)
}

func usageText(a client.Attempt) string {
	text := fmt.Sprintf("%s, peak %s of %s", span(seconds(a.Usage.WallSeconds)), bytesText(a.Usage.MemoryPeakBytes), bytesText(a.Demand.MemoryBytes))
	if a.DeviceID != "" {
		text += fmt.Sprintf(", GPU %s of %s", bytesText(a.Usage.DevicePeakBytes), bytesText(a.Demand.DeviceBytes))
	}

	if a.Usage.FrameworkPeakBytes > 0 {
		text += ", its framework at most " + bytesText(a.Usage.FrameworkPeakBytes)
	}

	if a.Usage.StepSeconds > 0 {
		text += ", " + stepText(a.Usage.StepSeconds) + " a step"
	}

	return text
}

// countsText is such as 12/24 done, 2 running, 10 waiting, 1 failed.
func countsText(c client.Counts) string {
	text := fmt.Sprintf("%s done, %d running, %d waiting", progress(c), c.Running, c.Waiting)

	if c.Pruned > 0 {
		text += fmt.Sprintf(", %d stopped early", c.Pruned)
	}

	if failed := c.Failed + c.Infeasible; failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}

	if c.OomRetries > 0 {
		text += fmt.Sprintf(", %d out of memory", c.OomRetries)
	}

	return text
}
