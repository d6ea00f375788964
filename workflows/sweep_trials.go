package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// What a sweep does with its trials: how many it opens, how it starts them, and
// how it learns of their ends.

const (
	// windowMin is the least number of open trials, so that several shapes are
	// probed at once on a small machine.
	windowMin = 16
	// startMax is how many trials are started at once. Each start takes Temporal's
	// lock on the sweep's workflow, for up to 50 ms on a busy server. A start that
	// waits 500 ms for it is put off for seconds (its
	// history.cacheNonUserContextLockTimeout and 3 s of back-off), and no other starts
	// until then.
	startMax = 8
	// topUp is how long a sweep waits before it starts trials that have no place
	// yet: when many trials end at one moment, the waiting ones are placed and
	// started in this time. A burst of 16 takes Temporal 400 ms with its database
	// in a file.
	topUp = 400 * time.Millisecond
	// A search that learns chooses late, while few trials wait (SlackOf), of which some may have
	// got a place at any time, since another sweep's trial ended. The sweep asks again after
	// askFirst, then twice as long each time, up to askMost.
	askFirst = 500 * time.Millisecond
	askMost  = time.Minute
)

// room is how many more trials may be opened now.
func (s *sweep) room() int {
	if s.Paused || s.Ending.State != "" {
		return 0
	}

	room := s.window() - len(s.Open)
	if s.plan.MaxTrials > 0 {
		room = min(room, s.plan.MaxTrials-s.Created)
	}

	return max(room, 0)
}

// window is how many trials are open at once: twice as many as can run, so that
// all places are filled at once when they free at one moment. A search that learns has few
// more than can run once it chooses by results: values that wait were chosen with less
// knowledge. Trials that wait for a stage fill no place: they do not count.
func (s *sweep) window() int { return s.windowOf(s.Capacity) }

// windowOf is the window on machines that hold capacity attempts.
func (s *sweep) windowOf(capacity int) int {
	open := max(s.running(capacity)*2, windowMin)
	if s.plan.Learns && s.Created >= s.plan.Startup {
		open = s.running(capacity) + activities.SlackOf(s.running(capacity))
	}

	return min(open+s.Blocked, berth.MaxOpenTrials)
}

// running is how many trials can run at once on machines that hold capacity
// attempts.
func (s *sweep) running(capacity int) int {
	if s.plan.MaxParallel > 0 {
		return min(max(capacity, 1), s.plan.MaxParallel)
	}

	return capacity
}

// due reports whether trials that there is room for are started now: at once
// when a place may be free for one, else when nothing else was for a moment.
func (s *sweep) due(ctx workflow.Context) bool {
	switch {
	case s.room() == 0:
		s.roomSince = time.Time{}

		return false
	case s.askAt.After(workflow.Now(ctx)):
		return false
	case len(s.Open)-s.Blocked < max(s.running(s.Capacity), 1):
		return true
	case s.roomSince.IsZero():
		s.roomSince = workflow.Now(ctx)
	}

	return s.dueIn(ctx) <= 0
}

// dueIn is how long trials that there is room for wait still, or the next look at the machines.
func (s *sweep) dueIn(ctx workflow.Context) time.Duration {
	if s.plan.Staged && s.full() {
		return max(s.lookAt.Sub(workflow.Now(ctx)), time.Millisecond)
	}

	if left := s.askAt.Sub(workflow.Now(ctx)); left > 0 && s.room() > 0 {
		return left
	}

	if s.roomSince.IsZero() || s.room() == 0 {
		return 0
	}

	return topUp - workflow.Now(ctx).Sub(s.roomSince)
}

// lookAtHosts asks how much the machines hold when the window is full, and the
// last answer is from before a trial's end or old: an answer from a bad moment,
// with a host away, would keep the window narrow until nearly all trials had
// ended. A sweep with stages looks again from time to time: more of its trials may wait
// for one by now.
func (s *sweep) lookAtHosts(ctx workflow.Context) error {
	if !s.full() || s.looked && (!s.plan.Staged || s.lookAt.After(workflow.Now(ctx))) {
		return nil
	}

	s.looked = true
	s.lookPause = longer(s.lookPause)
	s.lookAt = workflow.Now(ctx).Add(s.lookPause)

	return step(ctx, acts.Capacity, activities.SweepRef{SweepID: s.id}, &s.Room)
}

// longer is the pause before the next question, after one that changed nothing.
func longer(pause time.Duration) time.Duration { return min(max(2*pause, askFirst), askMost) }

// full reports whether a wider window would let more trials be opened.
func (s *sweep) full() bool {
	return !s.Paused && s.Ending.State == "" && len(s.Open) >= s.window() && s.window() < s.windowOf(berth.MaxOpenTrials) &&
		(s.plan.MaxTrials == 0 || s.Created < s.plan.MaxTrials)
}

// fill suggests and starts trials when there is room, and reports whether there
// is room for more than may be started at once. A cancellation does not
// interrupt it.
func (s *sweep) fill(ctx workflow.Context) (more bool, err error) {
	var result activities.SuggestResult

	if err := s.lookAtHosts(ctx); err != nil {
		return false, err
	}

	if !s.due(ctx) || ctx.Err() != nil {
		return false, ctx.Err()
	}

	// Stored trials must end, and cancel asks the known ones to end.
	clean, _ := workflow.NewDisconnectedContext(ctx)
	room := s.room()
	in := activities.SuggestInput{SweepID: s.id, First: s.Created + 1, Count: min(room, startMax)}

	if err := step(clean, acts.SuggestTrials, in, &result); err != nil {
		return false, err
	}

	s.Exhausted, s.Reason = result.Exhausted, result.Reason
	s.Room, s.looked = result.Room, true

	s.askAt = time.Time{}
	if result.Later {
		s.askPause = longer(s.askPause)
		s.askAt = workflow.Now(ctx).Add(s.askPause)
	}

	for _, number := range result.Numbers {
		s.Created = max(s.Created, number)
		s.Open = append(s.Open, number)
	}

	if err := s.start(clean, result.Numbers); err != nil {
		return false, err
	}

	if s.room() == 0 {
		s.roomSince = time.Time{}
	}

	s.decide(ctx)

	return room > in.Count && !s.Exhausted && !result.Later, nil
}

// start starts the workflows of trials, which outlive this run of the sweep.
func (s *sweep) start(ctx workflow.Context, numbers []int) error {
	children := make([]workflow.ChildWorkflowFuture, len(numbers))

	for i, number := range numbers { // all in one workflow task
		children[i] = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, trialOptions(s.id, s.plan.Name, number)),
			TrialWorkflow, TrialInput{SweepID: s.id, Number: number})
	}

	var there []int

	for i, number := range numbers {
		err := children[i].GetChildWorkflowExecution().Get(ctx, nil)

		switch {
		case temporal.IsWorkflowExecutionAlreadyStartedError(err): // by an earlier run of this sweep
			there = append(there, number)
		case err != nil:
			return err
		default:
			s.mine = append(s.mine, number)
			workflow.Go(ctx, func(ctx workflow.Context) { s.attend(ctx, number, children[i]) })
		}

		if s.ended() { // stopped while this trial was being started
			s.signalStop(ctx, number)
		}
	}

	if len(there) == 0 {
		return nil
	}

	return s.lookUp(ctx, there, true) // they may have ended long ago, in a database that was restored
}

// receive takes in the ends of trials.
func (s *sweep) receive(ctx workflow.Context, finished workflow.ReceiveChannel) {
	s.readSignals(finished)

	news, best := s.news, s.BestTrial
	s.news = nil

	for _, end := range news {
		s.end(end)
	}

	if s.BestTrial != best {
		tag(ctx, attrObjective.ValueSet(*s.Best))
	}
}

// readSignals reads the pending signals: ends of trials, and the request to look them
// up.
func (s *sweep) readSignals(finished workflow.ReceiveChannel) {
	var end berth.TrialEnd

	for finished.ReceiveAsync(&end) {
		if end.Number == 0 {
			s.asked = true
		} else {
			s.news = append(s.news, end)
		}

		// Decoding into a used value would keep absent fields of the end before,
		// and overwrite the number that its pointer shares.
		end = berth.TrialEnd{}
	}
}

// end counts a trial that ended, once.
func (s *sweep) end(news berth.TrialEnd) {
	i := slices.Index(s.Open, news.Number)
	if i < 0 {
		return
	}

	s.Open = slices.Delete(s.Open, i, i+1)
	s.looked = false
	s.askAt, s.askPause, s.lookPause = time.Time{}, 0, 0

	switch news.State {
	case berth.TrialSucceeded:
		s.Succeeded++
	case berth.TrialCanceled:
		s.Canceled++
	case berth.TrialInfeasible:
		s.Infeasible++
	case berth.TrialPruned:
		s.Pruned++
	default:
		s.Failed++
	}

	s.Streak.add(news)

	if o := s.plan.Objective; o != nil && news.Value != nil && (s.Best == nil || o.Better(*news.Value, *s.Best)) {
		s.Best, s.BestTrial = news.Value, news.Number
	}
}

// attend waits for a trial's end. One that ended without settling, because its
// workflow was terminated or broke, is settled here.
func (s *sweep) attend(ctx workflow.Context, number int, child workflow.ChildWorkflowFuture) {
	var result TrialResult

	err := child.Get(ctx, &result)
	if err == nil {
		s.news = append(s.news, berth.TrialEnd{
			Number: number, State: result.State, Kind: result.Kind, Value: result.Value, Message: result.Message,
		})

		return
	}

	update := berth.TrialUpdate{
		SweepID: s.id, Number: number, SweepRun: workflow.GetInfo(ctx).WorkflowExecution.RunID,
		State: berth.TrialFailed, Kind: berth.FailureInfra, Message: "its workflow failed: " + err.Error(),
	}

	if _, ok := errors.AsType[*temporal.TerminatedError](err); ok || temporal.IsCanceledError(err) {
		update.State, update.Kind, update.Message = berth.TrialCanceled, berth.FailureCanceled, activities.EndedInTemporal
	}

	if err := step(ctx, acts.SettleTrial, update, nil); err != nil {
		workflow.GetLogger(ctx).Error("settling a trial whose workflow ended", "trial", number, "error", err)
	}

	s.news = append(s.news, update.End())
}

// lookUp asks the database, and with closed also Temporal, which of these open
// trials have ended silently.
func (s *sweep) lookUp(ctx workflow.Context, numbers []int, closed bool) error {
	var ended []berth.TrialEnd

	s.seen = workflow.Now(ctx)

	if len(numbers) == 0 {
		return nil
	}

	in := activities.EndedInput{SweepID: s.id, Numbers: slices.Clone(numbers), Closed: closed}
	if err := step(ctx, acts.EndedTrials, in, &ended); err != nil {
		return err
	}

	s.news = append(s.news, ended...)

	return nil
}

// trialOptions are the options of a trial's workflow, which runs on the queue
// of its sweep.
func trialOptions(sweepID, sweepName string, number int) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            TrialWorkflowID(sweepID, number),
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WaitForCancellation:   true, // it counts as ended when it has ended, not when it is asked to
		StaticSummary:         fmt.Sprintf("trial %d of %s", number, sweepName),
		TypedSearchAttributes: TrialAttributes(sweepID),
	}
}
