package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// ProbeInput names the shape of a ProbeWorkflow, or the key of a StageWorkflow; the rest is
// carried over by continue-as-new.
type ProbeInput struct {
	ShapeKey string   `json:"shape_key"`
	StageKey string   `json:"stage_key,omitempty"` // of a StageWorkflow
	Waiting  []string `json:"waiting,omitempty"`   // workflow ids of trials that wait for the footprint, in order of arrival
	Beside   []string `json:"beside,omitempty"`    // of them, the trials told to run until then
	Carrier  string   `json:"carrier,omitempty"`   // the trial whose run measures; empty = none
	Capped   bool     `json:"capped,omitempty"`    // the carrier runs longer than it may; the next one measures short
	Asked    bool     `json:"asked,omitempty"`     // a trial that waits beside the carrier was asked for the short run
}

// ProbeResult says how a probe ended.
type ProbeResult struct {
	Known bool `json:"known"` // the footprint is known
}

// ProbeWorkflow makes one of the trials that wait for a shape measure it and
// tells the others when it is done. It is shared by all sweeps.
//
// The measuring run is the chosen trial's own first attempt, so that in full
// mode its result counts and probing costs nothing. The others run beside it at
// the size of a shape that is not measured, where that fits: no machine idles
// for a carrier that waits, is paused or is slow, and whichever run ends first
// measures the shape. When the measuring run fails, the next trial takes over.
func ProbeWorkflow(ctx workflow.Context, in ProbeInput) (ProbeResult, error) {
	return elect(ctx, in, ProbeWorkflow)
}

// StageWorkflow makes one of the trials that need a stage run it, as an attempt of its own,
// and tells the others when the output is there. It is shared by all sweeps. When the trial
// ends without an output, the others look whether the stage has failed for them, and the next
// trial takes over.
func StageWorkflow(ctx workflow.Context, in ProbeInput) (ProbeResult, error) {
	return elect(ctx, in, StageWorkflow)
}

// elect is a ProbeWorkflow or a StageWorkflow, self.
func elect(ctx workflow.Context, in ProbeInput, self any) (ProbeResult, error) {
	p := &probe{ProbeInput: in, want: workflow.GetSignalChannel(ctx, SignalWant), done: workflow.GetSignalChannel(ctx, SignalMeasured)}

	for {
		p.receive()

		known, err := p.known(ctx)
		if err != nil {
			return ProbeResult{}, err
		}

		if known || p.failed {
			p.release(ctx)
			p.failed = false
		}

		if len(p.Waiting) == 0 && (p.Carrier == "" || known) {
			if p.news() {
				continue // a signal came during the steps above, and waiting would miss it
			}

			return ProbeResult{Known: known}, nil
		}

		if err := p.lookAtSweeps(ctx); err != nil {
			return ProbeResult{}, err
		}

		if p.Carrier == "" && p.candidate() >= 0 {
			p.choose(ctx)

			continue
		}

		if p.StageKey == "" {
			p.runWaitingBeside(ctx)
		}

		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !p.news() {
			return ProbeResult{}, workflow.NewContinueAsNewError(ctx, self, p.ProbeInput)
		}

		if err := p.await(ctx); err != nil {
			return ProbeResult{}, err
		}
	}
}

// probe is the state of one ProbeWorkflow, or StageWorkflow.
type probe struct {
	ProbeInput

	failed   bool     // a carrier's trial ended
	paused   []string // of the trials of a stage, those whose sweeps are paused
	timedOut bool     // no signal came for a while

	want, done workflow.ReceiveChannel
}

// news reports whether a signal waits.
func (p *probe) news() bool { return p.want.Len() > 0 || p.done.Len() > 0 }

// receive takes in all pending signals.
func (p *probe) receive() {
	var (
		want ProbeWanted
		done ProbeMeasured
	)

	for p.want.ReceiveAsync(&want) {
		p.join(want.WorkflowID)
	}

	for p.done.ReceiveAsync(&done) {
		p.Capped = p.Capped || done.Capped

		if done.WorkflowID == p.Carrier {
			p.Carrier, p.failed = "", done.Failed
		}

		p.leave(done.WorkflowID)
	}
}

func (p *probe) join(workflowID string) {
	p.Beside = without(p.Beside, workflowID) // it did not get its role

	if slices.Contains(p.Waiting, workflowID) {
		return
	}

	if workflowID == p.Carrier { // it lost its role; let it have it again
		p.Carrier = ""
	}

	p.Waiting = append(p.Waiting, workflowID)
}

// leave forgets a trial that does not wait for the footprint any more.
func (p *probe) leave(workflowID string) {
	p.Waiting, p.Beside = without(p.Waiting, workflowID), without(p.Beside, workflowID)
}

func (p *probe) known(ctx workflow.Context) (bool, error) {
	var known bool

	if p.StageKey != "" {
		err := step(ctx, acts.StageKnown, activities.StageRef{Key: p.StageKey}, &known)

		return known, err
	}

	err := step(ctx, acts.FootprintKnown, activities.ShapeRef{ShapeKey: p.ShapeKey}, &known)

	return known, err
}

// takesTrials is the index of the first trial that waits for a stage whose sweep is not paused; -1 = none.
func (p *probe) takesTrials() int {
	if p.StageKey == "" {
		return -1
	}

	return slices.IndexFunc(p.Waiting, func(id string) bool { return !slices.Contains(p.paused, id) })
}

// lookAtSweeps asks which sweeps of a stage's trials are paused, before a carrier is chosen
// and from time to time. A carrier of a paused sweep is asked to yield to one that is not.
func (p *probe) lookAtSweeps(ctx workflow.Context) error {
	if p.StageKey == "" || len(p.Waiting) == 0 || p.Carrier != "" && !p.timedOut {
		return nil
	}

	p.timedOut = false

	err := step(ctx, acts.PausedTrials, activities.PausedInput{WorkflowIDs: append(slices.Clone(p.Waiting), p.Carrier)}, &p.paused)
	if err == nil && slices.Contains(p.paused, p.Carrier) && p.takesTrials() >= 0 {
		p.tell(ctx, p.Carrier, ProbeRole{Ready: true})
	}

	return err
}

// release tells all waiting trials to go on with the footprint, or to look at the ledger.
func (p *probe) release(ctx workflow.Context) {
	p.sendRoles(ctx, p.Waiting, ProbeRole{Ready: true})
	p.Waiting, p.Beside = nil, nil
}

// candidate is the index of the trial that gets the measuring run; -1 = none.
// It is the first that was not told to run beside it, if one can a trial of a sweep that is not paused. When all were, and the
// carrier takes too long, the last one is asked once for a short run, because
// it is the most likely to wait still. A running one gets the message when it
// waits again, or has ended.
func (p *probe) candidate() int {
	if i := p.takesTrials(); i >= 0 {
		return i
	}

	first := slices.IndexFunc(p.Waiting, func(id string) bool { return !slices.Contains(p.Beside, id) })
	if first < 0 && p.Capped && !p.Asked {
		return len(p.Waiting) - 1
	}

	return first
}

// choose gives the run to the first candidate, if it still lives.
func (p *probe) choose(ctx workflow.Context) {
	next := p.Waiting[p.candidate()]
	p.Asked = p.Asked || slices.Contains(p.Beside, next)
	p.leave(next)

	if p.tell(ctx, next, ProbeRole{Short: p.Capped}) {
		p.Carrier = next
	}

	what, does := "Shape "+berth.ShortKey(p.ShapeKey), "measures"
	if p.StageKey != "" {
		what, does = "Stage "+berth.ShortKey(p.StageKey), "runs"
	}

	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s**\n\n%s %s it; %d trial(s) wait.", what, p.Carrier, does, len(p.Waiting)))
}

// runWaitingBeside lets the waiting trials run beside the measuring one.
func (p *probe) runWaitingBeside(ctx workflow.Context) {
	told, ended := p.sendRoles(ctx, without(p.Waiting, p.Beside...), ProbeRole{Beside: true})
	p.Beside = append(p.Beside, told...)

	for _, id := range ended {
		p.leave(id)
	}
}

// sendRoles tells trials their role, some at once, and returns the trials that got
// it and the trials that have ended. Each signal takes Temporal's lock on the
// probe's workflow, as the start of a child takes its parent's.
func (p *probe) sendRoles(ctx workflow.Context, ids []string, role ProbeRole) (told, ended []string) {
	role.ShapeKey = p.ShapeKey
	signal, message := SignalProbe, any(role)

	if p.StageKey != "" {
		signal, message = SignalStage, StageRole{Key: p.StageKey, Carry: !role.Ready}
	}

	for some := range slices.Chunk(ids, startMax) {
		sent := make([]workflow.Future, len(some))
		for i, id := range some {
			sent[i] = workflow.SignalExternalWorkflow(ctx, id, "", signal, message)
		}

		for i, id := range some {
			if err := sent[i].Get(ctx, nil); err == nil {
				told = append(told, id)
			} else { // it does not wait any more
				workflow.GetLogger(ctx).Info("a trial that waited has ended", "workflow", id)

				ended = append(ended, id)
			}
		}
	}

	return told, ended
}

func (p *probe) tell(ctx workflow.Context, workflowID string, role ProbeRole) bool {
	told, _ := p.sendRoles(ctx, []string{workflowID}, role)

	return len(told) == 1
}

// await waits for a signal. From time to time it tells every trial its role
// again, in case one died without a word: a live one ignores that.
func (p *probe) await(ctx workflow.Context) error {
	pause, standStill := recheckLongest, p.StageKey != "" && p.Carrier != "" && len(p.Waiting) > 0
	if standStill {
		pause = recheckFirst
	}

	got, err := awaitFor(ctx, pause, "offer the run again", p.news)
	if err != nil || got {
		return err
	}

	p.timedOut = true

	if standStill && slices.Contains(p.paused, p.Carrier) {
		return nil // it was asked to yield
	}

	if p.Carrier != "" && !p.tell(ctx, p.Carrier, ProbeRole{Short: p.Capped}) {
		p.Carrier = ""
	}

	p.Beside = nil

	return nil
}

// without is a list less some of its entries.
func without[T comparable](list []T, entries ...T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(e T) bool { return slices.Contains(entries, e) })
}
