// Package report computes a sweep's use and the saving by packing: reserved and
// measured memory against TensorFlow's default mode, and hours of GPUs against
// one trial per GPU. It is pure: attempts in, figures and sentences out.
//
// An attempt counts from the start of its container to its end, by its host's
// clock. A reservation lasts a moment longer on both sides; that is not counted.
//
// A GPU used by two sweeps at once is charged to them at each moment by their
// share of the memory reserved on it, so that the charged times of all sweeps add
// up to the time in which the GPU was in use. Attempts of deleted sweeps are not
// known any more: the others are charged for their share.
package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// MaxAttempts is how many attempts a report reads at most, including other
// sweeps' on the same GPUs. A sweep of 10,000 trials has 10,000 to 30,000 of its
// own; the rest leaves room for neighbours.
const MaxAttempts = 200_000

// Attempt is the part of an attempt that a report reads.
type Attempt struct {
	ID       string
	SweepID  string
	Trial    int // number in its sweep
	Number   int // from 1 in its trial
	Stage    string
	ShapeKey string
	Purpose  berth.Purpose
	Short    bool // a short probe, whose result is thrown away
	Kind     berth.FailureKind

	HostID      string
	HostName    string
	DeviceID    string            // empty = the host's cores
	Class       berth.DeviceClass // of the device when it was placed
	MemoryBytes int64             // of the device, or of the host without one

	ReservedBytes int64 // of that memory
	PeakBytes     int64 // of that memory; 0 = not measured
	PeakPartial   bool  // the peak is a lower bound, as a part of the run was not measured
	CPUMilli      int64 // reserved
	CPU           time.Duration
	Wall          time.Duration // in which CPU was measured; 0 = it was not
	HeldBack      float64       // the part of it in which its limit of cores held it back

	Activity  berth.DeviceActivity // of the GPU, in the mean over ActiveFor
	ActiveFor time.Duration        // while it held memory there; 0 = its activity is not known

	StartedAt  *time.Time // nil = its container did not start
	FinishedAt *time.Time // nil = it runs
}

// Input is the input of a report.
type Input struct {
	SweepID   string
	State     berth.SweepState
	Trials    int        // created so far
	Succeeded int        // trials, counted before Attempts was read
	AsOf      time.Time  // running attempts count until then
	Attempts  []Attempt  // of the sweep, and others that shared a GPU or host with them; in any order
	Stages    []Stage    // in the order in which they run
	FirstFits []FirstFit // by trial; of a sweep without stages
}

// Stage is what the succeeded trials of a sweep had of a stage.
type Stage struct {
	Name   string
	Trials int           // that read its outputs
	Runs   int           // of the sweep; others were made by earlier sweeps
	Spent  time.Duration // these took
	Alone  time.Duration // they would have taken, if each trial ran the stage itself
}

// Report is a sweep's use, so far when it has not ended.
type Report struct {
	AsOf    time.Time
	Ended   bool
	GPU     Totals // attempts on GPUs
	Cores   Totals // attempts on hosts' cores
	Places  []Place
	Losses  []Loss // most time first
	Trials  []Trial
	Stages  []Stage
	Missing int      // trials with a result whose attempts are not in the database
	Notes   []string // the figures in plain sentences
}

// Trial is the use of a trial's attempts, first to last.
type Trial struct {
	Number   int
	Attempts []TrialAttempt
}

// TrialAttempt is the use of an attempt.
type TrialAttempt struct {
	Attempt

	DefaultBytes int64         // DefaultModeBytes of its GPU; 0 = it ran on cores
	SlackPercent *float64      // of the reservation, not used at the peak; nil = the peak is not known; < 0 = it used more
	Took         time.Duration // 0 = its container did not start
	Alone        bool          // no other attempt was on its GPU, or its host's cores, during its run
}

// Loss is the time of attempts that gave no result, by cause.
type Loss struct {
	Cause    string // the failure kind, or CauseShortProbe
	Attempts int
	Repeated int // were followed by another attempt of their trial
	Time     time.Duration
}

// CauseShortProbe is the cause of a Loss: the probe measured its shape, and its
// result was thrown away.
const CauseShortProbe = "short_probe"

// Make works out a report.
func Make(in Input) Report {
	// Sums of floating-point numbers depend on the order in which they are made.
	in.Attempts = slices.SortedFunc(slices.Values(in.Attempts), func(a, b Attempt) int { return cmp.Compare(a.ID, b.ID) })

	places := placesOf(in)
	trials := trialsOf(in, places)
	r := Report{
		AsOf: in.AsOf, Ended: in.State.Terminal(), Trials: trials, Losses: lossesOf(trials),
		Missing: missing(in.Succeeded, trials), Stages: in.Stages,
	}

	alone := aloneTimes(trials)
	first, last := span(in)

	for _, p := range places {
		if p.Attempts == 0 { // no attempt of the sweep began
			continue
		}

		if last.After(first) {
			p.BusyShare = p.Used.Seconds() / last.Sub(first).Seconds()
		}

		r.Places = append(r.Places, p.Place)
	}

	slices.SortFunc(r.Places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.DeviceID, a.DeviceID), cmp.Compare(a.HostName, b.HostName), cmp.Compare(a.HostID, b.HostID))
	})
	slices.SortStableFunc(r.Places, func(a, b Place) int { return onCores(a) - onCores(b) })

	r.GPU = totalsOf(r.Places, trials, alone, true)
	r.Cores = totalsOf(r.Places, trials, alone, false)
	r.Notes = notes(r, in)

	return r
}

func onCores(p Place) int {
	if p.DeviceID == "" {
		return 1
	}

	return 0
}

// interval is the attempt's time on its GPU. Clocks of hosts differ: an attempt
// that ended before it started took no time.
func (a Attempt) interval(asOf time.Time) (from, to time.Time, began bool) {
	if a.StartedAt == nil {
		return from, to, false
	}

	from, to = *a.StartedAt, asOf
	if a.FinishedAt != nil {
		to = *a.FinishedAt
	}

	if to.Before(from) {
		to = from
	}

	return from, to, true
}

// span is from the sweep's first start to its last end.
func span(in Input) (first, last time.Time) {
	for _, a := range in.Attempts {
		from, to, began := a.interval(in.AsOf)
		if !began || a.SweepID != in.SweepID {
			continue
		}

		if first.IsZero() || from.Before(first) {
			first = from
		}

		if to.After(last) {
			last = to
		}
	}

	return first, last
}

// trialsOf groups the sweep's attempts by trial, by number.
func trialsOf(in Input, places map[placeKey]*use) []Trial {
	var own []TrialAttempt

	for _, a := range in.Attempts {
		if a.SweepID == in.SweepID {
			own = append(own, trialAttempt(a, in.AsOf, places[keyOf(a)]))
		}
	}

	slices.SortFunc(own, func(a, b TrialAttempt) int {
		return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Number, b.Number))
	})

	var trials []Trial

	for _, a := range own {
		if n := len(trials); n == 0 || trials[n-1].Number != a.Trial {
			trials = append(trials, Trial{Number: a.Trial})
		}

		t := &trials[len(trials)-1]
		t.Attempts = append(t.Attempts, a)
	}

	return trials
}

func trialAttempt(a Attempt, asOf time.Time, on *use) TrialAttempt {
	out := TrialAttempt{Attempt: a}

	if a.DeviceID != "" {
		out.DefaultBytes = DefaultModeBytes(a.MemoryBytes)
	}

	out.PeakPartial = a.PeakPartial || a.Kind.OutOfMemory() // it wanted more than it had, and more than the last sample saw

	if a.PeakBytes > 0 && a.ReservedBytes > 0 && !out.PeakPartial {
		out.SlackPercent = new(percent(float64(a.ReservedBytes-a.PeakBytes), float64(a.ReservedBytes)))
	}

	if from, to, began := a.interval(asOf); began {
		out.Took, out.Alone = to.Sub(from), !on.beside[a.ID]
	}

	return out
}

// lossesOf adds up attempts without a result by cause. A pruned attempt gave the
// values that it was stopped for: it is no loss.
func lossesOf(trials []Trial) []Loss {
	byCause := make(map[string]*Loss)

	for _, t := range trials {
		for i, a := range t.Attempts {
			cause := causeOf(a)
			if cause == "" {
				continue
			}

			if byCause[cause] == nil {
				byCause[cause] = &Loss{Cause: cause}
			}

			loss := byCause[cause]
			loss.Attempts++
			loss.Time += a.Took

			if i < len(t.Attempts)-1 {
				loss.Repeated++
			}
		}
	}

	var losses []Loss
	for _, loss := range byCause {
		losses = append(losses, *loss)
	}

	slices.SortFunc(losses, func(a, b Loss) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Cause, b.Cause)) })

	return losses
}

func causeOf(a TrialAttempt) string {
	switch {
	case a.Kind == "" || a.Kind == berth.FailurePruned:
		return ""
	case a.Kind != berth.FailureOK:
		return string(a.Kind)
	case a.Short:
		return CauseShortProbe
	default:
		return ""
	}
}

// missing is the number of succeeded trials without a known attempt with a result.
func missing(succeeded int, trials []Trial) int {
	known := 0

	for _, t := range trials {
		if slices.ContainsFunc(t.Attempts, func(a TrialAttempt) bool { return a.Kind == berth.FailureOK && !a.Short && a.Stage == berth.StageMain }) {
			known++
		}
	}

	return max(succeeded-known, 0)
}

func percent(part, whole float64) float64 {
	const hundred = 100

	return hundred * part / whole
}
