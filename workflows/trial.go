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

	// state of an earlier run of the workflow; nil in the first
	Carried *CarriedTrial `json:"carried,omitempty"`
}

// CarriedTrial is the state that a run of a TrialWorkflow hands to the next
// one.
type CarriedTrial struct {
	Brief activities.TrialBrief `json:"brief"`

	CarriesStage bool `json:"carries_stage,omitempty"` // this trial's run makes the output of its stage, for all
	Before       int  `json:"before,omitempty"`        // attempts made in earlier stages
	LostInputs   int  `json:"lost_inputs,omitempty"`   // how often it went back to a stage, as its output was gone

	Attempts int              `json:"attempts,omitempty"` // made so far
	Charged  int              `json:"charged,omitempty"`  // of those, the attempts that were the trial's own fault
	OOMs     int              `json:"ooms,omitempty"`
	Last     *berth.LastOOM   `json:"last,omitempty"`
	Carries  bool             `json:"carries,omitempty"` // this trial's run measures its shape
	Short    bool             `json:"short,omitempty"`   // by a short run
	Beside   bool             `json:"beside,omitempty"`  // it runs while another one's run measures its shape
	Guessed  bool             `json:"guessed,omitempty"` // it ran out of memory in the size of a shape that is not measured, which is not its fault
	Away     bool             `json:"away,omitempty"`    // its last attempt was given up because its host did not answer; the host may give it back
	Revived  int              `json:"revived,omitempty"` // requests that were answered with an earlier attempt
	Judged   string           `json:"judged,omitempty"`  // the attempt whose outcome was counted last
	Peak     int64            `json:"peak,omitempty"`
	Status   berth.TrialState `json:"status,omitempty"` // as the search attribute says; a trial starts as waiting
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
	t := &trial{
		in: in, id: workflow.GetInfo(ctx).WorkflowExecution.ID, CarriedTrial: CarriedTrial{Status: berth.TrialWaiting},
		placed: workflow.GetSignalChannel(ctx, SignalPlaced), probe: workflow.GetSignalChannel(ctx, SignalProbe), stop: workflow.GetSignalChannel(ctx, SignalStop),
		stages: workflow.GetSignalChannel(ctx, SignalStage),
	}
	if in.Carried != nil {
		t.CarriedTrial = *in.Carried
	}

	end, err := t.run(ctx)
	if err != nil && !temporal.IsCanceledError(err) {
		return TrialResult{}, err
	}

	if err != nil {
		end = berth.TrialUpdate{State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: "canceled"}
	}

	return t.settle(ctx, end)
}

// trial is the state of one run of a TrialWorkflow.
type trial struct {
	CarriedTrial

	in TrialInput
	id string // of the workflow

	placed, probe, stages, stop workflow.ReceiveChannel

	told      bool // that the sweep starts nothing any more
	inputLost bool // while it waited for a place, the output of an earlier stage was lost
	yielding  bool // while it waited for a place to run a stage, it was asked to leave that to another trial

	strays []string // shapes of earlier stages whose probe has the trial measure them still
}

// stopped reports whether the sweep starts nothing any more.
func (t *trial) stopped() bool {
	for t.stop.ReceiveAsync(nil) {
		t.told = true
	}

	return t.told
}

func (t *trial) run(ctx workflow.Context) (berth.TrialUpdate, error) {
	if t.in.Carried == nil {
		ref := activities.TrialRef{SweepID: t.in.SweepID, Number: t.in.Number}
		if err := step(ctx, acts.BeginTrial, ref, &t.Brief); err != nil {
			return berth.TrialUpdate{}, err
		}
	}

	for {
		if t.Brief.Failed != nil {
			return *t.Brief.Failed, nil
		}

		if changed, err := t.joinStage(ctx); err != nil {
			return berth.TrialUpdate{}, err
		} else if changed {
			continue
		}

		if t.Brief.NeedsProbe {
			if err := t.awaitProbe(ctx); err != nil {
				return berth.TrialUpdate{}, err
			}

			t.Brief.NeedsProbe = false
		}

		// A trial of a stopped sweep asks once more when its host is away: the host gives
		// the running attempt back when it returns. Nothing new is placed.
		if t.stopped() && t.Attempts >= t.Brief.Made && !t.Away {
			return t.notStarted(), nil
		}

		end, done, err := t.attempt(ctx)

		switch {
		case err != nil:
			return end, err
		case done && t.Brief.StageKey != "" && end.State == berth.TrialSucceeded:
			if err := t.nextStage(ctx); err != nil {
				return end, err
			}
		case done:
			return t.stageEnd(end), nil
		case t.Brief.Staged:
			stage := t.Brief.Stage
			if err := t.nextStage(ctx); err != nil {
				return end, err
			}

			if t.Brief.Stage != stage { // its input was lost
				t.LostInputs++
			}

			if t.LostInputs > berth.MaxFreeRetries {
				return berth.TrialUpdate{
					State: berth.TrialFailed, Kind: berth.FailureInfra,
					Message: fmt.Sprintf("the output of a stage was lost %d times before stage %s could read it; the last time: %s", t.LostInputs, stage, end.Message),
				}, nil
			}
		}
	}
}

// notStarted is the end of a trial whose sweep was stopped before it ran, or
// ran again.
func (t *trial) notStarted() berth.TrialUpdate {
	message := "the sweep was stopped before this trial ran"
	if t.Attempts-t.Before > 1 {
		message = "the sweep was stopped while this trial waited to run again"
	}

	return berth.TrialUpdate{State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: message}
}

// made is how many attempts of the trial there were.
func (t *trial) made() int { return t.Attempts - t.Revived }

// attempt makes one attempt and says whether the trial has ended with it.
func (t *trial) attempt(ctx workflow.Context) (end berth.TrialUpdate, done bool, err error) {
	t.Attempts++

	place, err := t.place(ctx)
	if workflow.IsContinueAsNewError(err) {
		return end, true, err // the probe waits for the next run
	}

	if place.lost {
		t.Revived++ // the request had no attempt

		return end, false, nil
	}

	if err != nil || place.end != nil {
		t.measured(ctx, false)

		if place.end != nil {
			end = *place.end
		}

		return end, true, err
	}

	again := place.status.AttemptID == t.Judged // its outcome was counted already
	t.Away, t.Short = false, place.status.Short // a run placed before the trial was asked for a short one stays whole

	if place.status.AttemptID != AttemptID(t.id, t.Attempts) {
		t.Revived++
	}

	outcome, err := t.execute(ctx, place.status)
	if err != nil {
		t.measured(ctx, false)

		return end, true, err
	}

	if !t.Away {
		t.Judged = place.status.AttemptID
	}

	t.Peak = max(t.Peak, outcome.Usage.MemoryPeakBytes)
	policy := outcome.Kind.Policy()

	if again && policy.Next != berth.NextDone {
		return end, false, nil
	}

	if policy.Charges {
		t.Charged++
	}

	if policy.Next == berth.NextDone {
		t.measured(ctx, false)
	}

	if t.Short && outcome.Kind == berth.FailureOK {
		t.Short, t.Charged = false, t.Charged-1 // only the measurement counted

		return end, false, nil
	}

	if outcome.Kind.OutOfMemory() {
		t.OOMs++

		if (t.Beside || t.Brief.Guessed) && !t.Guessed { // all that ran beside the probe paid for the same guess
			t.Guessed, t.OOMs, t.Charged = true, t.OOMs-1, t.Charged-1
		}

		t.Last = &berth.LastOOM{
			Demand: place.asked, PeakBytes: outcome.Usage.MemoryPeakBytes, Count: t.OOMs, Max: t.Brief.MaxAttempts,
		}

		if outcome.Kind == berth.FailureDeviceOOM {
			t.Last.Device, t.Last.PeakBytes = true, outcome.Usage.DevicePeakBytes
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
	case o.Kind == berth.FailurePruned:
		end.State = berth.TrialPruned

		return end, true
	case policy.Next == berth.NextRemove:
		end.State = berth.TrialInfeasible

		return end, true
	case policy.Next == berth.NextDone:
		return end, true
	case policy.Charges && t.Charged >= t.Brief.MaxAttempts:
		if o.Kind.OutOfMemory() && t.OOMs >= t.Brief.MaxAttempts {
			return *t.infeasible(t.Last.Demand), true
		}

		end.Message = fmt.Sprintf("gave up after %d attempts; the last one: %s", t.made()-t.Before, o.Message)

		return end, true
	case t.made()-t.Before-t.Charged >= berth.MaxFreeRetries:
		end.Message = fmt.Sprintf("gave up after %d attempts that failed through no fault of the trial; the last one: %s", t.made()-t.Before, o.Message)

		return end, true
	default:
		return end, false
	}
}

// settle writes the trial's end, which also tells its sweep. It goes on when
// the workflow was canceled.
func (t *trial) settle(ctx workflow.Context, end berth.TrialUpdate) (TrialResult, error) {
	clean, _ := workflow.NewDisconnectedContext(ctx)
	end.SweepID, end.Number = t.in.SweepID, t.in.Number

	if parent := workflow.GetInfo(ctx).ParentWorkflowExecution; parent != nil {
		end.SweepRun = parent.RunID
	}

	if err := step(clean, acts.SettleTrial, end, nil); err != nil {
		return TrialResult{}, err
	}

	tags := []temporal.SearchAttributeUpdate{
		attrPeakMiB.ValueSet(t.Peak >> 20), attrOOMRetries.ValueSet(int64(t.retriesAfterOOM())),
	}
	if end.Value != nil {
		tags = append(tags, attrObjective.ValueSet(*end.Value))
	}

	t.say(clean, end.State, string(end.State)+": "+end.Message, tags...)

	for unheard := true; unheard; unheard = t.probe.Len() > 0 { // after all its attempts: the shape waits for none of them any more
		t.measured(clean, false)
	}

	t.leaveStage(clean, true)

	for t.placed.ReceiveAsync(nil) || t.stop.ReceiveAsync(nil) { // the SDK warns of signals that a workflow leaves
	}

	return TrialResult{State: end.State, Kind: end.Kind, Message: end.Message, Value: end.Value, Attempts: t.made()}, nil
}

func (t *trial) retriesAfterOOM() int {
	if t.Attempts > t.OOMs {
		return t.OOMs
	}

	return max(t.OOMs-1, 0)
}

func (t *trial) purpose() berth.Purpose {
	if t.Carries {
		return berth.PurposeProbe
	}

	return berth.PurposeRun
}

func (t *trial) infeasible(asked berth.Demand) *berth.TrialUpdate {
	return &berth.TrialUpdate{
		State: berth.TrialInfeasible, Kind: berth.FailureTooBig,
		Message: fmt.Sprintf("ran out of memory in %d attempts, the last with %s; "+
			"make the trial smaller, or %s", t.OOMs, demandText(asked), t.roomAdvice()),
	}
}

// roomAdvice is the advice for a trial that ran out of memory.
func (t *trial) roomAdvice() string {
	switch {
	case t.Last == nil || !t.Last.Device:
	case t.Last.Demand.SpillBytes > 0:
		return "use a GPU with more memory, a machine with more, or more attempts (retry.max_attempts)"
	case t.Brief.Spills:
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
		t.in.Number, t.Brief.Values, what, berth.ShortKey(t.Brief.ShapeKey), t.made(), t.OOMs))

	if status != t.Status {
		t.Status = status
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
