package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// TrialInput names the trial of a TrialWorkflow.
type TrialInput struct {
	SweepID string `json:"sweep_id"`
	Number  int    `json:"number"`
}

// TrialResult is how a trial ended.
type TrialResult struct {
	State    berth.TrialState  `json:"state"`
	Kind     berth.FailureKind `json:"kind,omitempty"`
	Message  string            `json:"message,omitempty"`
	Value    *float64          `json:"value,omitempty"`
	Attempts int               `json:"attempts"`
}

// TrialWorkflow takes one trial to its end: waits for or carries out the probe
// of its shape, asks for a place, runs, and asks again with more memory when
// it ran out. Canceling it stops its container.
func TrialWorkflow(ctx workflow.Context, in TrialInput) (TrialResult, error) {
	t := &trial{in: in, id: workflow.GetInfo(ctx).WorkflowExecution.ID, status: berth.TrialWaiting}
	t.listen(ctx)

	end, err := t.run(ctx)
	if err != nil && !temporal.IsCanceledError(err) {
		return TrialResult{}, err
	}

	if err != nil {
		end = berth.TrialUpdate{State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: "canceled"}
	}

	return t.settle(ctx, end)
}

// trial is the state of one TrialWorkflow.
type trial struct {
	in    TrialInput
	id    string // of the workflow
	brief activities.TrialBrief

	placed  workflow.ReceiveChannel
	probe   workflow.ReceiveChannel
	stopped bool // the sweep starts nothing any more

	attempts int // made so far
	charged  int // of those, the ones that were the trial's own fault
	noRoom   int // of those, the ones whose host had no room for their checkpoint
	ooms     int
	last     *berth.LastOOM
	carries  bool   // this trial's run measures its shape
	short    bool   // by a short run
	beside   bool   // it runs while another one's run measures its shape
	guessed  bool   // it ran out of memory in the size of a shape that is not measured, which is not its fault
	away     bool   // its last attempt was given up because its host did not answer; the host may give it back
	revived  int    // requests that were answered with an earlier attempt
	judged   string // the attempt whose outcome was counted last
	peak     int64
	status   berth.TrialState // as the search attribute says; a trial starts as waiting
}

// listen receives stop signals whenever they come.
func (t *trial) listen(ctx workflow.Context) {
	t.placed = workflow.GetSignalChannel(ctx, SignalPlaced)
	t.probe = workflow.GetSignalChannel(ctx, SignalProbe)
	stop := workflow.GetSignalChannel(ctx, SignalStop)

	workflow.Go(ctx, func(ctx workflow.Context) {
		stop.Receive(ctx, nil)
		t.stopped = true
	})
}

func (t *trial) run(ctx workflow.Context) (berth.TrialUpdate, error) {
	var a *activities.Activities

	ref := activities.TrialRef{SweepID: t.in.SweepID, Number: t.in.Number}
	if err := workflow.ExecuteLocalActivity(steps(ctx), a.BeginTrial, ref).Get(ctx, &t.brief); err != nil {
		return berth.TrialUpdate{}, err
	}

	if t.brief.NeedsProbe {
		if err := t.awaitProbe(ctx); err != nil {
			return berth.TrialUpdate{}, err
		}
	}

	for {
		if t.stopped && t.attempts >= t.brief.Made && !t.mayComeBack(ctx) {
			return t.notStarted(), nil
		}

		end, done, err := t.attempt(ctx)
		if err != nil || done {
			return end, err
		}
	}
}

// notStarted is the end of a trial whose sweep was stopped before it ran, or
// ran again.
func (t *trial) notStarted() berth.TrialUpdate {
	message := "the sweep was stopped before this trial ran"
	if t.attempts > 1 {
		message = "the sweep was stopped while this trial waited to run again"
	}

	return berth.TrialUpdate{State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: message}
}

// made is how many attempts of the trial there were.
func (t *trial) made() int { return t.attempts - t.revived }

// mayComeBack reports whether a trial of a stopped sweep asks once more: its
// host was away, and gives the running attempt back when it returns. Nothing new
// is placed for a sweep that was stopped.
func (t *trial) mayComeBack(ctx workflow.Context) bool {
	return t.away && workflow.GetVersion(ctx, changeAwaitHost, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// attempt makes one attempt and says whether the trial has ended with it.
func (t *trial) attempt(ctx workflow.Context) (end berth.TrialUpdate, done bool, err error) {
	t.attempts++

	place, err := t.place(ctx)
	if err != nil || place.end != nil {
		t.measured(ctx, false)

		if place.end != nil {
			end = *place.end
		}

		return end, true, err
	}

	again := place.status.AttemptID == t.judged // its outcome was counted already
	t.away, t.short = false, t.short || place.status.Short

	if place.status.AttemptID != AttemptID(t.id, t.attempts) {
		t.revived++

		if workflow.GetVersion(ctx, changeGivenBack, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
			t.short = place.status.Short // it began before the trial was asked for a short run
		}
	}

	outcome, err := t.execute(ctx, place.status)
	if err != nil {
		t.measured(ctx, false)

		return end, true, err
	}

	if !t.away {
		t.judged = place.status.AttemptID
	}

	t.peak = max(t.peak, outcome.Usage.MemoryPeakBytes)
	policy := outcome.Kind.Policy()

	if again && policy.Next != berth.NextDone {
		return end, false, nil
	}

	if policy.Charges {
		t.charged++
	} else if outcome.NoRoom {
		t.noRoom++
	}

	if policy.Next == berth.NextDone {
		t.measured(ctx, false)
	}

	if t.short && outcome.Kind == berth.FailureOK {
		t.short, t.charged = false, t.charged-1 // only the measurement counted

		return end, false, nil
	}

	if outcome.Kind.OutOfMemory() {
		t.ooms++

		if (t.beside || t.brief.Guessed) && !t.guessed { // all that ran beside the probe paid for the same guess
			t.guessed, t.ooms, t.charged = true, t.ooms-1, t.charged-1
		}

		t.last = &berth.LastOOM{
			Demand: place.asked, PeakBytes: outcome.Usage.MemoryPeakBytes, Count: t.ooms, Max: t.brief.MaxAttempts,
		}

		if outcome.Kind == berth.FailureDeviceOOM {
			t.last.Device, t.last.PeakBytes = true, outcome.Usage.DevicePeakBytes
		}
	}

	end, done = t.judge(outcome, policy)

	return end, done, nil
}

// judge says whether a trial ends after an attempt with this outcome.
func (t *trial) judge(o berth.Outcome, policy berth.FailurePolicy) (berth.TrialUpdate, bool) {
	end := berth.TrialUpdate{State: berth.TrialFailed, Kind: o.Kind, Message: o.Message}

	switch {
	case o.Kind == berth.FailureOK:
		return berth.TrialUpdate{State: berth.TrialSucceeded, Kind: o.Kind, Message: o.Message, Value: o.Value}, true
	case o.Kind == berth.FailureCanceled:
		end.State = berth.TrialCanceled

		return end, true
	case policy.Next == berth.NextRemove:
		end.State = berth.TrialInfeasible

		return end, true
	case policy.Next == berth.NextDone:
		return end, true
	case policy.Charges && t.charged >= t.brief.MaxAttempts:
		if o.Kind.OutOfMemory() && t.ooms >= t.brief.MaxAttempts {
			return *t.infeasible(t.last.Demand), true
		}

		end.Message = fmt.Sprintf("gave up after %d attempts; the last one: %s", t.made(), o.Message)

		return end, true
	case t.made()-t.charged-t.noRoom >= berth.MaxFreeRetries, t.noRoom >= berth.MaxNoRoom:
		end.Message = fmt.Sprintf("gave up after %d attempts that failed through no fault of the trial; the last one: %s", t.made(), o.Message)

		return end, true
	default:
		return end, false
	}
}

// settle writes the trial's end, which also tells its sweep. It goes on when
// the workflow was canceled.
func (t *trial) settle(ctx workflow.Context, end berth.TrialUpdate) (TrialResult, error) {
	var a *activities.Activities

	clean, _ := workflow.NewDisconnectedContext(ctx)
	end.SweepID, end.Number = t.in.SweepID, t.in.Number

	if parent := workflow.GetInfo(ctx).ParentWorkflowExecution; parent != nil {
		end.SweepRun = parent.RunID
	}

	if err := workflow.ExecuteLocalActivity(steps(clean), a.SettleTrial, end).Get(clean, nil); err != nil {
		return TrialResult{}, err
	}

	tags := []temporal.SearchAttributeUpdate{
		attrPeakMiB.ValueSet(t.peak >> 20), attrOOMRetries.ValueSet(int64(t.retriesAfterOOM())),
	}
	if end.Value != nil {
		tags = append(tags, attrObjective.ValueSet(*end.Value))
	}

	t.say(clean, end.State, string(end.State)+": "+end.Message, tags...)

	for unheard := true; unheard; unheard = t.probe.Len() > 0 { // after all its attempts: the shape waits for none of them any more
		t.measured(clean, false)
	}

	for t.placed.ReceiveAsync(nil) { // the SDK warns of signals that a workflow leaves
	}

	return TrialResult{State: end.State, Kind: end.Kind, Message: end.Message, Value: end.Value, Attempts: t.made()}, nil
}

func (t *trial) retriesAfterOOM() int {
	if t.attempts > t.ooms {
		return t.ooms
	}

	return max(t.ooms-1, 0)
}

func (t *trial) purpose() berth.Purpose {
	if t.carries {
		return berth.PurposeProbe
	}

	return berth.PurposeRun
}

func (t *trial) infeasible(asked berth.Demand) *berth.TrialUpdate {
	return &berth.TrialUpdate{
		State: berth.TrialInfeasible, Kind: berth.FailureTooBig,
		Message: fmt.Sprintf("ran out of memory in %d attempts, the last with %s; "+
			"make the trial smaller, or %s", t.ooms, demandText(asked), t.roomier()),
	}
}

// roomier is what would help a trial that ran out of memory.
func (t *trial) roomier() string {
	switch {
	case t.last == nil || !t.last.Device:
	case t.last.Demand.SpillBytes > 0:
		return "use a GPU with more memory, a machine with more, or more attempts (retry.max_attempts)"
	case t.brief.Spills:
		return "use a GPU with more memory, or more attempts (retry.max_attempts), of which the last runs in unified memory"
	default:
		return "use a GPU with more memory, or resources.gpu_memory_spill, which lets a trial that is larger than any GPU run in unified memory"
	}

	return "give resources.memory and a machine that has as much"
}

// say shows where the trial stands on its page in Temporal's UI. Search
// attributes are set only when something changed: each write is a transaction.
func (t *trial) say(ctx workflow.Context, status berth.TrialState, what string, tags ...temporal.SearchAttributeUpdate) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Trial %d** (%s)\n\n%s\n\nshape %s, attempt %d, %d out of memory",
		t.in.Number, t.brief.Values, what, berth.ShortKey(t.brief.ShapeKey), t.made(), t.ooms))

	if status != t.status {
		t.status = status
		tags = append(tags, attrTrialStatus.ValueSet(string(status)))
	}

	if len(tags) > 0 {
		tag(ctx, tags...)
	}
}

func demandText(d berth.Demand) string {
	cores := "cores"
	if d.CPUMilli == 1000 {
		cores = "core"
	}

	text := fmt.Sprintf("%d MiB of memory and %g %s", d.MemoryBytes>>20, float64(d.CPUMilli)/1000, cores)
	if d.DeviceBytes > 0 {
		text += fmt.Sprintf(", %d MiB of GPU memory", d.DeviceBytes>>20)
	}

	if d.SpillBytes > 0 {
		text += fmt.Sprintf(" and %d MiB of the host's for what that does not hold", d.SpillBytes>>20)
	}

	switch {
	case d.Exclusive:
		text += ", alone"
	case d.ExclusiveDevice:
		text += ", alone on its GPU"
	}

	return text
}

func firstOf(reasons []string) string {
	if len(reasons) == 0 {
		return "no reason was stored"
	}

	return reasons[0]
}
