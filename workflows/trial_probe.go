package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// awaitProbe waits until the footprint of the trial's shape is known, or until
// this trial is asked to measure it. The signal is a shortcut: a timer looks
// at the footprint and joins the probe again, in case it was lost.
func (t *trial) awaitProbe(ctx workflow.Context) error {
	var a *activities.Activities

	ref := activities.ProbeRef{
		SweepID: t.in.SweepID, TrialID: t.brief.TrialID, ShapeKey: t.brief.ShapeKey, WorkflowID: t.id,
	}

	t.say(ctx, berth.TrialProbing, "waiting for the probe of its shape", attrShapeKey.ValueSet(berth.ShortKey(t.brief.ShapeKey)))

	for pause := recheckFirst; !t.stopped; pause = min(2*pause, recheckLongest) {
		if err := workflow.ExecuteLocalActivity(steps(ctx), a.JoinProbe, ref).Get(ctx, nil); err != nil {
			return err
		}

		var role ProbeRole

		answered := false

		if _, err := awaitFor(ctx, pause, "look for the footprint", func() bool {
			answered = answered || t.probe.ReceiveAsync(&role)

			return answered || t.stopped
		}); err != nil {
			return err
		}

		if answered {
			t.carries, t.short = !role.Ready, role.Short || (!role.Ready && t.brief.ProbeMode == berth.ProbeShort)

			return nil
		}

		known := false
		if err := workflow.ExecuteLocalActivity(steps(ctx), a.FootprintKnown, activities.ShapeRef{ShapeKey: t.brief.ShapeKey}).
			Get(ctx, &known); err != nil || known {
			return err
		}
	}

	return nil
}

// measured tells the probe that this trial's run has ended, or is taking
// longer than the probe may. It does nothing for a trial that carries none.
func (t *trial) measured(ctx workflow.Context, capped bool) {
	if !t.carries {
		return
	}

	if !capped {
		t.carries = false
	}

	clean, _ := workflow.NewDisconnectedContext(ctx)
	news := ProbeMeasured{WorkflowID: t.id, Capped: capped}

	if err := workflow.SignalExternalWorkflow(clean, ProbeWorkflowID(t.brief.ShapeKey), "", SignalMeasured, news).Get(clean, nil); err != nil {
		workflow.GetLogger(ctx).Warn("telling the probe", "shape_key", t.brief.ShapeKey, "error", err)
	}
}

// ProbeInput names the shape of a ProbeWorkflow.
type ProbeInput struct {
	ShapeKey string   `json:"shape_key"`
	Waiting  []string `json:"waiting,omitempty"` // carried over by continue-as-new
}

// ProbeResult says how a probe ended.
type ProbeResult struct {
	Known bool `json:"known"` // the footprint is there
}

// ProbeWorkflow makes one of the trials that wait for a shape measure it and
// tells the others when it is done. It is shared by all sweeps.
//
// The measuring run is the chosen trial's own first attempt, so that in full
// mode its result counts and probing costs nothing. When the run fails without
// a measurement, the next trial that waits takes over.
func ProbeWorkflow(ctx workflow.Context, in ProbeInput) (ProbeResult, error) {
	p := &probe{
		key: in.ShapeKey, waiting: in.Waiting,
		want: workflow.GetSignalChannel(ctx, SignalWant), done: workflow.GetSignalChannel(ctx, SignalMeasured),
	}

	for {
		p.receive()

		known, err := p.known(ctx)
		if err != nil {
			return ProbeResult{}, err
		}

		if known {
			p.release(ctx)
		}

		if len(p.waiting) == 0 && (p.carrier == "" || known) {
			if p.news() {
				continue // it came during the steps above, and nobody else would hear of it
			}

			return ProbeResult{Known: known}, nil
		}

		if p.carrier == "" {
			p.elect(ctx)

			continue
		}

		if err := p.await(ctx); err != nil {
			return ProbeResult{}, err
		}
	}
}

// probe is the state of one ProbeWorkflow.
type probe struct {
	key        string
	want, done workflow.ReceiveChannel

	waiting []string // workflow ids, in order of arrival
	carrier string   // the trial whose run measures; empty = none
	capped  bool     // the carrier runs longer than it may; the next one measures short
}

// news reports whether a signal waits.
func (p *probe) news() bool { return p.want.Len() > 0 || p.done.Len() > 0 }

// receive takes in all signals that are there.
func (p *probe) receive() {
	var (
		want ProbeWanted
		done ProbeMeasured
	)

	for p.want.ReceiveAsync(&want) {
		p.join(want.WorkflowID)
	}

	for p.done.ReceiveAsync(&done) {
		p.capped = p.capped || done.Capped

		if done.WorkflowID == p.carrier {
			p.carrier = ""
		}
	}
}

func (p *probe) join(workflowID string) {
	if slices.Contains(p.waiting, workflowID) {
		return
	}

	if workflowID == p.carrier { // it lost its role; let it have it again
		p.carrier = ""
	}

	p.waiting = append(p.waiting, workflowID)
}

func (p *probe) known(ctx workflow.Context) (bool, error) {
	var (
		a     *activities.Activities
		known bool
	)

	err := workflow.ExecuteLocalActivity(steps(ctx), a.FootprintKnown, activities.ShapeRef{ShapeKey: p.key}).Get(ctx, &known)

	return known, err
}

// release tells all that wait to go on.
func (p *probe) release(ctx workflow.Context) {
	for _, id := range p.waiting {
		p.tell(ctx, id, ProbeRole{Ready: true})
	}

	p.waiting = nil
}

// elect gives the measuring run to the first that waits and still lives.
func (p *probe) elect(ctx workflow.Context) {
	next := p.waiting[0]
	p.waiting = p.waiting[1:]

	if p.tell(ctx, next, ProbeRole{Short: p.capped}) {
		p.carrier = next
	}

	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Shape %s**\n\n%s measures it; %d trial(s) wait.",
		berth.ShortKey(p.key), p.carrier, len(p.waiting)))
}

func (p *probe) tell(ctx workflow.Context, workflowID string, role ProbeRole) bool {
	err := workflow.SignalExternalWorkflow(ctx, workflowID, "", SignalProbe, role).Get(ctx, nil)
	if err != nil { // it has ended; it does not wait any more
		workflow.GetLogger(ctx).Info("a trial that waited has ended", "workflow", workflowID)
	}

	return err == nil
}

// await waits for a signal. Now and then it offers the role anew, in case the
// carrier died without a word: a live one ignores the offer.
func (p *probe) await(ctx workflow.Context) error {
	got, err := awaitFor(ctx, recheckLongest, "offer the measuring run again", p.news)
	if err != nil || got {
		return err
	}

	if !p.tell(ctx, p.carrier, ProbeRole{Short: p.capped}) {
		p.carrier = ""
	}

	return nil
}
