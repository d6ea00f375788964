package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// deeds are what people and the environment did to a sweep.
type deeds struct {
	Paused      bool         // by the last that a person asked for
	Canceled    bool         // asked for, acknowledged or not
	Stopped     bool         // the same
	Terminated  bool         // a person ended its workflow in Temporal
	TrialsEnded map[int]bool // the same of single trials
	Restored    bool         // the database was put back to before its end
	Ruled       bool         // a rule of its own file ends it

	// What was acknowledged has happened, and is demanded, unless a restored
	// database may have forgotten it. Zero times = it was not.
	Pauses     []span // in which nothing may be placed, each until the next resume was asked for
	StoppedAt  time.Time
	CanceledAt time.Time
	CancelDue  time.Time // when everybody has heard of the cancellation
	Resuming   bool      // a resume was not answered, and may come after the next pause
}

// span is a time; without an end it lasts.
type span struct{ from, until time.Time }

func (s span) holds(at time.Time) bool {
	return at.After(s.from) && (s.until.IsZero() || at.Before(s.until))
}

// placeLate is how long a round of the placer may last (internal/placer): what
// it has read before a pause or a stop it may book until then.
const placeLate = 10 * time.Second

// acknowledged notes that a server has told that it did what a person asked for
// then.
func (d *deeds) acknowledged(what string, now time.Time) {
	switch what {
	case "pause":
		if !d.Resuming && (len(d.Pauses) == 0 || !d.Pauses[len(d.Pauses)-1].until.IsZero()) {
			d.Pauses = append(d.Pauses, span{from: now.Add(placeLate)})
		}
	case "stop":
		if d.StoppedAt.IsZero() {
			d.StoppedAt = now
		}
	case "cancel":
		if d.CanceledAt.IsZero() {
			d.CanceledAt = now
		}
	}
}

// resuming notes that a person asks for a resume, which may happen from now on.
func (d *deeds) resuming(now time.Time) {
	d.Resuming = true

	if n := len(d.Pauses); n > 0 && d.Pauses[n-1].until.IsZero() {
		d.Pauses[n-1].until = now
	}
}

// forget leaves out what a restored database may not know.
func (d *deeds) forget() {
	d.Restored = true
	d.Pauses, d.StoppedAt, d.CanceledAt, d.CancelDue = nil, time.Time{}, time.Time{}, time.Time{}
}

// attemptRecord and the others are what Berth says of a sweep, as far as the
// oracle looks at it.
type attemptRecord struct {
	ID            string
	Number        int
	Kind, Message string
	ReservedBytes int64
	PlacedAt      time.Time
	FinishedAt    time.Time // zero = it has not ended
	Started       bool      // its container ran
	Hit           bool      // a person killed or removed its container
	Host          string
	// Unprovoked: it ended through no fault of its trial, and nothing befell its
	// host that may cost an attempt.
	Unprovoked bool
	// Device is the GPU that it had; empty = none. It reserves and has held so much of it.
	Device                  string
	DeviceBytes, DevicePeak int64
	MPS                     bool // which keeps it within that
	// Heard is what it reported and printed, of an attempt that ended well; nil =
	// it was not asked for.
	Heard *heard
}

// heard is what Berth keeps of what a job says.
type heard struct {
	Points map[int64]float64 // of val, by step
	Log    string
}

type trialRecord struct {
	Number               int
	State, Kind, Message string
	Value                *float64
	Values               map[string]string
	FinishedAt           time.Time
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

	if text := cmp.Or(judgeAttempts(want, t), judgeDevices(jobNamed(o.Job).onGPU, want.Outgrows, t)); text != "" {
		return text
	}

	if want.Any {
		if t.Kind == "infra" {
			return fmt.Sprintf("trial %d ended %s infra (%s), expected an end that names what is wrong with its file", t.Number, t.State, t.Message)
		}

		return ""
	}

	if t.State == want.State && (len(want.Kinds) == 0 || slices.Contains(want.Kinds, t.Kind)) {
		return cmp.Or(judgeValue(want, t), judgeHeard(want, d, t))
	}

	if t.State == "failed" && t.Kind == "killed" && t.hits() >= maxAttempts {
		return "" // a person killed every attempt that it has
	}

	return fmt.Sprintf("trial %d ended %s %s (%s), expected %s", t.Number, t.State, t.Kind, t.Message, want)
}

// judgeCanceled says what is wrong with a trial that was canceled. A stop, by a
// person or a rule, cancels those that have not started, or wait to run again.
func judgeCanceled(want expectation, d deeds, t trialRecord) string {
	if d.Canceled || d.Terminated || d.TrialsEnded[t.Number] || want.Any {
		return ""
	}

	if !d.Stopped && !d.Ruled {
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

// judgeHeard says what is wrong with the curve and the log of a trial, which are
// results as much as its value is. A restored database may lack those of a run
// that ended since the copy was made.
func judgeHeard(want expectation, d deeds, t trialRecord) string {
	if d.Restored {
		return ""
	}

	points, log := map[int64]float64{}, ""
	for i, value := range want.Epochs {
		points[int64(i+1)] = value
		log += fmt.Sprintf("{\"epoch\": %d, \"val\": %g}\n", i+1, value)
	}

	for _, a := range t.Attempts {
		switch {
		case a.Heard == nil:
		case !maps.Equal(a.Heard.Points, points):
			return fmt.Sprintf("trial %d has the points %v of attempt %d, expected %v", t.Number, a.Heard.Points, a.Number, points)
		case a.Heard.Log != log:
			return fmt.Sprintf("trial %d has the log %q of attempt %d, expected %q", t.Number, a.Heard.Log, a.Number, log)
		}
	}

	return ""
}

// judgeAttempts looks at what each attempt was given and charged for.
func judgeAttempts(want expectation, t trialRecord) string {
	charged := 0

	for _, a := range t.Attempts {
		switch {
		case a.Unprovoked && !a.Hit && !t.Forgotten && !want.Any:
			return fmt.Sprintf("trial %d lost attempt %d (%s: %s), and nothing befell %s that may cost an attempt from %s to %s",
				t.Number, a.Number, a.Kind, a.Message, a.Host, a.PlacedAt.Format(time.TimeOnly), a.FinishedAt.Format(time.TimeOnly))
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

// judgeDevices looks at the GPU that each attempt had, and what it held of it.
func judgeDevices(onGPU, outgrows bool, t trialRecord) string {
	for _, a := range t.Attempts {
		switch {
		case onGPU != (a.Device != ""):
			return fmt.Sprintf("trial %d had GPU %q in attempt %d", t.Number, a.Device, a.Number)
		case a.DevicePeak > a.DeviceBytes && (a.MPS || !outgrows):
			return fmt.Sprintf("trial %d held %d MiB of its GPU in attempt %d and had reserved %d", t.Number, a.DevicePeak/mib, a.Number, a.DeviceBytes/mib)
		}
	}

	return ""
}

// trouble is what befell a host, or all of them ("").
type trouble struct {
	span

	kind troubleKind
	host string
}

type troubleKind int

const (
	absence   troubleKind = iota // a worker is dead or frozen: its successor adopts what runs, if it comes in time
	silence                      // Temporal, a worker's way to it, or the whole machine does not answer
	cardFault                    // of a GPU
	breakdown                    // of Docker, of the host for good, or of the database into an older one
)

// How long after its end a trouble may cost an attempt.
var aftermath = map[troubleKind]time.Duration{
	absence:   time.Second,
	silence:   45 * time.Second, // gRPC finds a dead connection after 30 s + 15 s (the SDK's keepalive)
	cardFault: 10 * time.Second, // a worker that starts again reads its GPUs every second
	breakdown: 15 * time.Second, // a question to Docker ends after 10 s
}

const (
	// fastHost is how long an attempt of a cluster waits for its host.
	fastHost = 8 * time.Second
	// awayLong is how long a worker may be away and cost no attempt. It has 2 s
	// to ask for work.
	awayLong = fastHost - 2*time.Second
)

// unanswered is what Berth says of an attempt whose host took too long. All else
// that ends attempts through no fault of their trials is about Docker.
const unanswered = "did not answer"

// cardFailed is what Berth says of an attempt whose GPU failed.
const cardFailed = "its GPU failed under it"

// dockerLeft is what Berth says of an attempt whose exit may be Docker's doing, or
// whose output Docker may have lost.
var dockerLeft = []string{"Docker went away", "while Docker was away"}

// leavingFor is how long before Docker stops to answer an exit may be its doing, as
// it stops its containers first (docker's daemonLostWindow).
const leavingFor = 30 * time.Second

// failedFor is how long behind the end of an attempt its worker may look at its GPU, on a busy machine.
const failedFor = 10 * time.Second

// provoked reports whether something befell a host between the placement and
// the end of an attempt that explains it.
func provoked(all []trouble, host, message string, placed, finished time.Time) bool {
	away, known := time.Duration(0), finished
	if slices.ContainsFunc(dockerLeft, func(words string) bool { return strings.Contains(message, words) }) {
		known = finished.Add(leavingFor)
	}

	if strings.Contains(message, cardFailed) {
		known = finished.Add(failedFor)
	}

	for _, t := range all {
		from, until := t.from, t.until
		if from.Before(placed) {
			from = placed
		}

		if until.IsZero() || until.After(finished) {
			until = finished
		}

		if t.host != "" && t.host != host || t.from.After(known) || until.Add(aftermath[t.kind]).Before(placed) {
			continue
		}

		switch {
		case t.kind == breakdown, t.kind == silence && strings.Contains(message, unanswered), t.kind == cardFault && strings.Contains(message, cardFailed):
			return true
		case t.kind == absence:
			away += until.Sub(from)
		}
	}

	return away > awayLong && strings.Contains(message, unanswered)
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

// judgeTrials returns how trials that have ended deviate.
func judgeTrials(o order, d deeds, trials []trialRecord) (wrong []string) {
	d.Ruled = ruled(o.rules(trials))

	for _, t := range trials {
		if text := judgeTrial(o, d, t); text != "" {
			wrong = append(wrong, text)
		}
	}

	return wrong
}

// judgeSweep returns how a sweep that has ended deviates, trial by trial.
func judgeSweep(o order, d deeds, s sweepRecord) []string {
	wrong := slices.Concat(judgePoints(o, s), judgeDeeds(d, s), judgeTrials(o, d, s.Trials))
	if len(wrong) > 0 { // the sweep's own end follows from those
		return wrong
	}

	rules := o.rules(s.Trials)

	natural := "failed"
	if slices.ContainsFunc(s.Trials, func(t trialRecord) bool { return t.State == "succeeded" }) {
		natural = "succeeded"
	}

	allowed := []string{natural}
	if d.Canceled || d.Terminated {
		allowed = append(allowed, "canceled")
	}

	if d.Stopped {
		allowed = append(allowed, "stopped")
	}

	if !slices.Contains(allowed, s.State) && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s (%s), expected %s", s.State, s.Reason, strings.Join(allowed, " or ")))
	}

	if len(s.Trials) > s.Planned && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s with %d trials, more than the %d of its file", s.State, len(s.Trials), s.Planned))
	}

	if s.State == natural && len(s.Trials) < s.Planned && !d.Canceled && !d.Stopped && !ruled(rules) && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s with %d of %d trials", s.State, len(s.Trials), s.Planned))
	}

	return append(wrong, judgeRules(rules, d, s)...)
}

// rule is one that a sweep's file has: what the reason of a sweep says that it
// has ended, and whether it held.
type rule struct {
	says  string
	holds bool
}

// rules are those that the file has, with how they stand by these trials.
func (o order) rules(trials []trialRecord) (all []rule) {
	reached, failed := false, 0

	for _, t := range trials {
		reached = reached || t.State == "succeeded" && t.Value != nil && *t.Value <= float64(o.Target)

		if t.State == "failed" {
			failed++
		}
	}

	if o.Target > 0 {
		all = append(all, rule{"reached the target", reached})
	}

	if o.MaxFailed > 0 {
		all = append(all, rule{"more than limits.max_failed_trials", failed > o.MaxFailed})
	}

	return all
}

func ruled(all []rule) bool {
	return slices.ContainsFunc(all, func(r rule) bool { return r.holds })
}

// judgeRules compares the reason of a sweep that no person ended with the rules
// of its file. A person who ends the workflow of a trial may keep its result from
// the sweep, and a restored database may say only that the workflow had ended.
func judgeRules(rules []rule, d deeds, s sweepRecord) (wrong []string) {
	if d.Stopped || d.Canceled || d.Terminated || d.Restored || len(d.TrialsEnded) > 0 {
		return nil
	}

	for _, r := range rules {
		if says := strings.Contains(s.Reason, r.says); says == r.holds {
			continue
		}

		expected := "expected %q in its reason"
		if !r.holds {
			expected = "expected %q not to be in its reason"
		}

		wrong = append(wrong, fmt.Sprintf("ended %s (%s), "+expected, s.State, s.Reason, r.says))
	}

	return wrong
}

// judgeDeeds says what was done although a person had forbidden it, and a server
// had acknowledged that.
func judgeDeeds(d deeds, s sweepRecord) (wrong []string) {
	late := false // a trial ended after the cancellation was acknowledged

	for _, t := range s.Trials {
		late = late || t.FinishedAt.After(d.CanceledAt)

		for _, a := range t.Attempts {
			var after string

			switch {
			case slices.ContainsFunc(d.Pauses, func(p span) bool { return p.holds(a.PlacedAt) }):
				after = "a pause"
			case !d.StoppedAt.IsZero() && a.PlacedAt.After(d.StoppedAt.Add(placeLate)):
				after = "a stop"
			case !d.CancelDue.IsZero() && a.PlacedAt.After(d.CancelDue):
				after = "a cancellation"
			default:
				continue
			}

			wrong = append(wrong, fmt.Sprintf("trial %d was placed in attempt %d at %s, after %s that was acknowledged",
				t.Number, a.Number, a.PlacedAt.Format("15:04:05.000"), after))
		}
	}

	// A trial that ends now tells its sweep's workflow, which has the cancellation already.
	if !d.CanceledAt.IsZero() && late && s.State != "canceled" {
		wrong = append(wrong, fmt.Sprintf("ended %s (%s), although its cancellation was acknowledged at %s, before its last trial ended",
			s.State, s.Reason, d.CanceledAt.Format("15:04:05.000")))
	}

	return wrong
}

// judgeMeasured says which attempt of a small shape reserves more than it was
// measured to need.
func judgeMeasured(s sweepRecord) string {
	for _, t := range s.Trials {
		for _, a := range t.Attempts {
			if a.ReservedBytes > measuredBytes {
				return fmt.Sprintf("trial %d reserved %d MiB in attempt %d, expected at most %d", t.Number, a.ReservedBytes/mib, a.Number, measuredBytes/mib)
			}
		}
	}

	return ""
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
