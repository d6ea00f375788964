package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// deeds are what people and the environment did to a sweep.
type deeds struct {
	Paused      bool         // by the last that a person asked for
	Canceled    bool         // asked for, acknowledged or not
	Stopped     bool         // the same
	Terminated  bool         // a person ended its workflow in Temporal
	TrialsEnded map[int]bool // the same of single trials
	Forgotten   bool         // the database was put back to before it had all its trials
}

// attemptRecord and the others are what Berth says of a sweep, as far as the
// oracle looks at it.
type attemptRecord struct {
	Number        int
	Kind, Message string
	ReservedBytes int64
	Started       bool // its container ran
	Hit           bool // a person killed or removed its container
}

type trialRecord struct {
	Number               int
	State, Kind, Message string
	Value                *float64
	Values               map[string]string
	Attempts             []attemptRecord
	// Forgotten: it ran between the copy of the database and its return, so its
	// attempts may end in another way than it does.
	Forgotten bool
}

type sweepRecord struct {
	State, Reason string
	Planned       int
	Trials        []trialRecord
}

// maxAttempts is the default of retry.max_attempts.
const maxAttempts = 3

// judgeTrial returns how a trial that has ended deviates from what it must end
// as, or nothing.
func judgeTrial(o order, d deeds, t trialRecord) string {
	want := jobNamed(o.Job).want(t.Values)

	if t.State == "canceled" {
		return judgeCanceled(want, d, t)
	}

	if text := judgeAttempts(want, t); text != "" {
		return text
	}

	if want.Any {
		if t.Kind == "infra" {
			return fmt.Sprintf("trial %d ended %s infra (%s), expected an end that names what is wrong with its file", t.Number, t.State, t.Message)
		}

		return ""
	}

	if t.State == want.State && (len(want.Kinds) == 0 || slices.Contains(want.Kinds, t.Kind)) {
		return judgeValue(want, t)
	}

	if t.State == "failed" && t.Kind == "killed" && t.hits() >= maxAttempts {
		return "" // a person killed every attempt that it has
	}

	if d.Forgotten && t.State == "failed" && t.Kind == "infra" {
		return "" // its workflow found no row of it
	}

	return fmt.Sprintf("trial %d ended %s %s (%s), expected %s", t.Number, t.State, t.Kind, t.Message, want)
}

// judgeCanceled says what is wrong with a trial that was canceled. A stop
// cancels those that have not started, or wait to run again.
func judgeCanceled(want expectation, d deeds, t trialRecord) string {
	if d.Canceled || d.Terminated || d.TrialsEnded[t.Number] || want.Any {
		return ""
	}

	if !d.Stopped {
		return fmt.Sprintf("trial %d was canceled (%s), and no person asked for it", t.Number, t.Message)
	}

	for _, a := range t.Attempts {
		if a.Started && !t.Forgotten && berth.FailureKind(a.Kind) == berth.FailureCanceled {
			return fmt.Sprintf("trial %d was canceled in attempt %d, which ran: a stop lets it finish", t.Number, a.Number)
		}
	}

	return ""
}

func judgeValue(want expectation, t trialRecord) string {
	if want.Value == nil || t.Value != nil && *t.Value == *want.Value {
		return ""
	}

	got := "nothing"
	if t.Value != nil {
		got = fmt.Sprint(*t.Value)
	}

	return fmt.Sprintf("trial %d reported %s, expected %s", t.Number, got, want)
}

// judgeAttempts looks at what each attempt was given and charged for.
func judgeAttempts(want expectation, t trialRecord) string {
	charged := 0

	for _, a := range t.Attempts {
		switch {
		case want.NoOOM && berth.FailureKind(a.Kind).OutOfMemory():
			return fmt.Sprintf("trial %d ran out of memory in attempt %d with %d MiB reserved (%s), although all of its shape fit",
				t.Number, a.Number, a.ReservedBytes/mib, a.Message)
		case want.MaxBytes > 0 && a.ReservedBytes > want.MaxBytes:
			return fmt.Sprintf("trial %d reserved %d MiB in attempt %d, expected at most %d", t.Number, a.ReservedBytes/mib, a.Number, want.MaxBytes/mib)
		case a.Kind != "" && a.Kind != "ok" && !a.Hit && berth.FailureKind(a.Kind).Policy().Charges:
			if kind := berth.FailureKind(a.Kind); kind == berth.FailureCanceled && t.Forgotten {
				continue // the trial had ended without it
			} else if want.State == "succeeded" && !kind.OutOfMemory() {
				return fmt.Sprintf("trial %d was charged for attempt %d (%s: %s), which nothing of its own could fail", t.Number, a.Number, a.Kind, a.Message)
			}

			charged++
		}
	}

	if want.Once && charged > 1 {
		return fmt.Sprintf("trial %d was charged for %d attempts (%s), expected 1", t.Number, charged, t.Attempts[0].Message)
	}

	return ""
}

func (t trialRecord) hits() (n int) {
	for _, a := range t.Attempts {
		if a.Hit {
			n++
		}
	}

	return n
}

func (e expectation) String() string {
	text := e.State
	if len(e.Kinds) > 0 && e.Kinds[0] != "ok" {
		text += " " + strings.Join(e.Kinds, " or ")
	}

	if e.Value != nil {
		text += fmt.Sprintf(" %g", *e.Value)
	}

	return text
}

// judgeSweep returns how a sweep that has ended deviates, trial by trial.
func judgeSweep(o order, d deeds, s sweepRecord) []string {
	wrong := judgePoints(o, s)
	succeeded := 0

	for _, t := range s.Trials {
		if text := judgeTrial(o, d, t); text != "" {
			wrong = append(wrong, text)
		}

		if t.State == "succeeded" {
			succeeded++
		}
	}

	if len(wrong) > 0 { // the sweep's own end follows from those
		return wrong
	}

	natural := "failed"
	if succeeded > 0 {
		natural = "succeeded"
	}

	allowed := []string{natural}
	if d.Canceled || d.Terminated {
		allowed = append(allowed, "canceled")
	}

	if d.Stopped {
		allowed = append(allowed, "stopped")
	}

	if d.Forgotten && len(s.Trials) < s.Planned { // it ends as its workflow did, which had the trials
		allowed = append(allowed, "succeeded")
	}

	if !slices.Contains(allowed, s.State) && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s (%s), expected %s", s.State, s.Reason, strings.Join(allowed, " or ")))
	}

	if len(s.Trials) > s.Planned && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s with %d trials, more than the %d of its file", s.State, len(s.Trials), s.Planned))
	}

	if s.State == natural && len(s.Trials) < s.Planned && !d.Canceled && !d.Stopped && !d.Forgotten && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s with %d of %d trials", s.State, len(s.Trials), s.Planned))
	}

	return wrong
}

// judgePoints says which trials have values that are not of the file, or those
// of another trial.
func judgePoints(o order, s sweepRecord) (wrong []string) {
	if jobNamed(o.Job).want(nil).Any {
		return nil
	}

	points := map[string]int{}

	for _, t := range s.Trials {
		if ms, err := strconv.Atoi(t.Values["ms"]); err != nil || !slices.Contains(o.Times, ms) {
			wrong = append(wrong, fmt.Sprintf("trial %d has ms = %q, which is none of %v", t.Number, t.Values["ms"], o.Times))
		}

		point := fmt.Sprint(t.Values) // in the order of their names
		if other, twice := points[point]; twice {
			wrong = append(wrong, fmt.Sprintf("trial %d has the values of trial %d: %s", t.Number, other, point))
		}

		points[point] = t.Number
	}

	return wrong
}

// judgePause says whether a sweep may be paused.
func judgePause(d deeds, s sweepRecord) string {
	if s.State != "paused" || d.Paused {
		return ""
	}

	return "is paused (" + s.Reason + "), and no person asked for it"
}
