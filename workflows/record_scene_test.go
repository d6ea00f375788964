//go:build nightly

package workflows_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	berthtemporal "github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/workflows"
)

// scenePatience is how long a scene may take to get where it should.
const scenePatience = 5 * time.Minute

// lostHost is a host that no worker serves.
const lostHost = "lost"

// scene runs a sweep's real workflows on a real Temporal. Its steps are
// answered by hooks, which a test sets before play.
type scene struct {
	temporal client.Client
	name     string // also of its queues
	sweepID  string

	plan     activities.SweepPlan
	total    int // trials that the search has
	capacity int
	brief    func(trial int) activities.TrialBrief

	begins func(ctx context.Context, trial int)                                       // a trial; may wait
	places func(in activities.PlaceInput) (state berth.RequestState, host string)     // an attempt
	given  func(in activities.PlaceInput) (attemptID string)                          // that a request is answered with
	runs   func(ctx context.Context, in activities.PlaceInput) (berth.Outcome, error) // an attempt

	mu     sync.Mutex
	status map[string]berth.PlacementStatus // by attempt
	asked  map[string]activities.PlaceInput // by attempt
	ended  map[int]berth.TrialEnd           // by trial
	sweeps []string                         // runs of the sweep's workflow
	known  bool                             // the footprint of the shape
	ran    time.Time                        // when the first trial got its place
}

func newScene(c client.Client, name string) *scene {
	s := &scene{
		temporal: c, name: name, sweepID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String(),
		plan: activities.SweepPlan{
			Name: name, State: berth.SweepRunning, Objective: &berth.Objective{Metric: "val", Goal: berth.GoalMaximize},
		},
		total: 1, capacity: 2,
		status: make(map[string]berth.PlacementStatus), asked: make(map[string]activities.PlaceInput), ended: make(map[int]berth.TrialEnd),
	}
	s.brief = func(int) activities.TrialBrief { return s.standard() }
	s.begins = func(context.Context, int) {}
	s.places = func(activities.PlaceInput) (berth.RequestState, string) { return berth.RequestPlaced, s.name }
	s.given = func(in activities.PlaceInput) string { return in.AttemptID }
	s.runs = func(_ context.Context, in activities.PlaceInput) (berth.Outcome, error) { return worked(in), nil }

	return s
}

// standard is the input of a trial without a probe.
func (s *scene) standard() activities.TrialBrief {
	return activities.TrialBrief{
		TrialID: s.name, Values: "lr=0.1", ShapeKey: s.name, MaxAttempts: 3, ProbeMode: berth.ProbeFull,
		MaxDuration: berth.Duration(time.Hour), Heartbeat: berth.Duration(time.Minute),
		HostPatience: berth.Duration(time.Minute), ProbeMaxDuration: berth.Duration(time.Minute),
	}
}

// hasty makes trials wait for a silent host for 5 s.
func (s *scene) hasty() {
	s.brief = func(int) activities.TrialBrief {
		b := s.standard()
		b.HostPatience = berth.Duration(5 * time.Second)

		return b
	}
}

// runsUntil makes every attempt succeed once something is so.
func (s *scene) runsUntil(so func(in activities.PlaceInput) bool) {
	s.runs = func(ctx context.Context, in activities.PlaceInput) (berth.Outcome, error) {
		s.until(ctx, func() bool { return so(in) })

		return worked(in), ctx.Err()
	}
}

// probed makes the trials wait for a probe of this mode.
func (s *scene) probed(mode berth.ProbeMode) {
	s.brief = func(int) activities.TrialBrief {
		b := s.standard()
		b.NeedsProbe, b.ProbeMode, b.ProbeMaxDuration = true, mode, berth.Duration(500*time.Millisecond)

		return b
	}
}

func worked(in activities.PlaceInput) berth.Outcome {
	value := float64(in.Trial)

	return berth.Outcome{Kind: berth.FailureOK, Message: "finished", Value: &value}
}

// failedWith makes an attempt end as one does on a host.
func failedWith(kind berth.FailureKind) (berth.Outcome, error) {
	o := berth.Outcome{Kind: kind, Message: string(kind), Usage: berth.Usage{MemoryPeakBytes: 500 * mib}}

	return o, temporal.NewApplicationErrorWithOptions(o.Message, string(kind), temporal.ApplicationErrorOptions{
		NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign, Details: []any{o},
	})
}

// play serves the queues and starts the sweep.
func (s *scene) play(t *testing.T) {
	t.Helper()

	steps := &sceneSteps{s}

	shared := worker.New(s.temporal, s.name, worker.Options{WorkerStopTimeout: time.Second})
	workflows.Register(shared)
	shared.RegisterActivity(steps)
	require.NoError(t, shared.Start())
	t.Cleanup(shared.Stop)

	host := worker.New(s.temporal, workflows.HostQueue(s.name), worker.Options{
		DisableWorkflowWorker: true, WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: 200 * time.Millisecond,
	})
	host.RegisterActivity(steps)
	require.NoError(t, host.Start())
	t.Cleanup(host.Stop)

	_, err := s.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: workflows.SweepWorkflowID(s.sweepID), TaskQueue: s.name,
	}, workflows.SweepWorkflow, workflows.SweepInput{SweepID: s.sweepID})
	require.NoError(t, err)
}

// finish waits until the sweep has ended in a state.
func (s *scene) finish(t *testing.T, state berth.SweepState) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), scenePatience)
	defer cancel()

	var view workflows.SweepView
	require.NoError(t, s.temporal.GetWorkflow(ctx, workflows.SweepWorkflowID(s.sweepID), "").Get(ctx, &view))
	require.Equal(t, state, view.State)
}

func (s *scene) trial(number int) string { return workflows.TrialWorkflowID(s.sweepID, number) }

// update steers the sweep.
func (s *scene) update(t *testing.T, name string, args ...any) {
	t.Helper()

	_, err := berthtemporal.NewClient(s.temporal, "default", s.name).Update(t.Context(), s.sweepID, name, args...)
	require.NoError(t, err)
}

func (s *scene) cancel(t *testing.T) {
	t.Helper()
	require.NoError(t, s.temporal.CancelWorkflow(t.Context(), workflows.SweepWorkflowID(s.sweepID), ""))
}

// until waits in a hook until something is so; its context ends the wait.
func (s *scene) until(ctx context.Context, so func() bool) {
	beat := time.NewTicker(20 * time.Millisecond)
	defer beat.Stop()

	for ctx.Err() == nil {
		s.mu.Lock()
		is := so()
		s.mu.Unlock()

		if is {
			return
		}

		select {
		case <-ctx.Done():
		case <-beat.C:
			if activity.IsActivity(ctx) && !activity.GetInfo(ctx).IsLocalActivity {
				activity.RecordHeartbeat(ctx) // by which it gets a cancellation
			}
		}
	}
}

// asks reports whether a trial has asked for a place.
func (s *scene) asks(trial int) bool {
	_, ok := s.asked[workflows.AttemptID(s.trial(trial), 1)]

	return ok
}

// hears waits until the history of a workflow has a line.
func (s *scene) hears(t *testing.T, workflowID, line string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), scenePatience)
	defer cancel()

	s.until(ctx, func() bool {
		h, err := s.history(ctx, workflowID, "") // fails until a trial has begun

		return err == nil && slices.Contains(story(h), line)
	})
	require.NoError(t, ctx.Err(), "%s did not come to %q", workflowID, line)
}

// history reads a workflow's history from Temporal; without a run id its newest run's.
func (s *scene) history(ctx context.Context, workflowID, runID string) (*history.History, error) {
	var h history.History

	events := s.temporal.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}

		h.Events = append(h.Events, e)
	}

	return &h, nil
}

// locked reads something of a scene.
func locked[T any](s *scene, read func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()

	return read()
}

// sceneSteps answers the steps of a scene's workflows, under the names of
// activities.Activities.
type sceneSteps struct{ scene *scene }

func (a *sceneSteps) BeginSweep(_ context.Context, in activities.SweepRun) (activities.SweepPlan, error) {
	s := a.scene

	s.mu.Lock()
	defer s.mu.Unlock()

	if !slices.Contains(s.sweeps, in.RunID) {
		s.sweeps = append(s.sweeps, in.RunID)
	}

	return s.plan, nil
}

func (a *sceneSteps) SuggestTrials(_ context.Context, in activities.SuggestInput) (activities.SuggestResult, error) {
	a.scene.mu.Lock()
	defer a.scene.mu.Unlock()

	result := activities.SuggestResult{Capacity: a.scene.capacity}
	for n := in.First; n < in.First+in.Count && n <= a.scene.total; n++ {
		result.Numbers = append(result.Numbers, n)
	}

	result.Exhausted = len(result.Numbers) < in.Count

	return result, nil
}

func (a *sceneSteps) Capacity(context.Context, activities.SweepRef) (int, error) {
	return locked(a.scene, func() int { return a.scene.capacity }), nil
}

func (*sceneSteps) SetSweepState(context.Context, activities.SweepStateInput) error { return nil }

func (a *sceneSteps) SetMaxParallel(_ context.Context, in activities.MaxParallelInput) error {
	a.scene.mu.Lock()
	defer a.scene.mu.Unlock()

	a.scene.plan.MaxParallel = in.MaxParallel

	return nil
}

func (a *sceneSteps) FirstTrialRan(context.Context, activities.SweepRef) (time.Time, error) {
	return locked(a.scene, func() time.Time { return a.scene.ran }), nil
}

func (*sceneSteps) FinishSweep(_ context.Context, in activities.SweepStateInput) (berth.Sweep, error) {
	return berth.Sweep{ID: in.SweepID, State: in.State, Reason: in.Reason}, nil
}

func (a *sceneSteps) EndedTrials(_ context.Context, in activities.EndedInput) ([]berth.TrialEnd, error) {
	a.scene.mu.Lock()
	defer a.scene.mu.Unlock()

	var ended []berth.TrialEnd

	for _, n := range in.Numbers {
		if end, ok := a.scene.ended[n]; ok {
			ended = append(ended, end)
		}
	}

	return ended, nil
}

func (a *sceneSteps) BeginTrial(ctx context.Context, in activities.TrialRef) (activities.TrialBrief, error) {
	a.scene.begins(ctx, in.Number)

	return a.scene.brief(in.Number), nil
}

func (a *sceneSteps) JoinProbe(ctx context.Context, in activities.ProbeRef) error {
	id := workflows.ProbeWorkflowID(in.ShapeKey)
	_, err := a.scene.temporal.SignalWithStartWorkflow(ctx, id, workflows.SignalWant, workflows.ProbeWanted{WorkflowID: in.WorkflowID},
		client.StartWorkflowOptions{ID: id, TaskQueue: a.scene.name}, workflows.ProbeWorkflow, workflows.ProbeInput{ShapeKey: in.ShapeKey})

	return err
}

func (a *sceneSteps) FootprintKnown(context.Context, activities.ShapeRef) (bool, error) {
	return locked(a.scene, func() bool { return a.scene.known }), nil
}

// SettleTrial tells the sweep by a signal when another run of it started the trial.
func (a *sceneSteps) SettleTrial(ctx context.Context, in berth.TrialUpdate) error {
	s := a.scene
	end := berth.TrialEnd{Number: in.Number, State: in.State, Kind: in.Kind, Value: in.Value}

	s.mu.Lock()
	s.ended[in.Number] = end
	inherited := in.SweepRun != s.sweeps[len(s.sweeps)-1]
	s.mu.Unlock()

	if !inherited {
		return nil
	}

	return s.temporal.SignalWorkflow(ctx, workflows.SweepWorkflowID(s.sweepID), "", workflows.SignalTrialFinished, end)
}

// RequestPlacement answers as a ledger does: a request waits until it is
// placed, and a signal tells the trial.
func (a *sceneSteps) RequestPlacement(ctx context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
	s := a.scene
	demand := berth.Demand{MemoryBytes: 512 * mib, CPUMilli: 1000}

	if in.Last != nil {
		demand.MemoryBytes = 2 * in.Last.Demand.MemoryBytes
	}

	state, host := s.places(in)
	status := berth.PlacementStatus{
		AttemptID: s.given(in), State: state, HostID: host, HostName: host, Token: 7, Demand: demand,
	}

	s.mu.Lock()
	s.asked[in.AttemptID], s.status[in.AttemptID] = in, status

	if s.ran.IsZero() && state == berth.RequestPlaced {
		s.ran = time.Now()
	}

	s.mu.Unlock()

	if state == berth.RequestPlaced {
		status.State = berth.RequestWaiting

		return activities.PlaceResult{Asked: demand, Status: status},
			s.temporal.SignalWorkflow(ctx, in.WorkflowID, "", workflows.SignalPlaced, workflows.Placed{AttemptID: in.AttemptID})
	}

	return activities.PlaceResult{Asked: demand, Status: status}, nil
}

// ResizePlacement places requests that waited for the measurement of their
// shape.
func (a *sceneSteps) ResizePlacement(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
	a.scene.mu.Lock()
	defer a.scene.mu.Unlock()

	status := a.scene.status[in.AttemptID]
	status.State, status.Demand.MemoryBytes = berth.RequestPlaced, 128*mib
	a.scene.status[in.AttemptID] = status

	return activities.PlaceResult{Asked: status.Demand, Status: status}, nil
}

func (a *sceneSteps) CheckPlacement(_ context.Context, in activities.AttemptRef) (berth.PlacementStatus, error) {
	a.scene.mu.Lock()
	defer a.scene.mu.Unlock()

	return a.scene.status[in.AttemptID], nil
}

func (a *sceneSteps) WithdrawPlacement(_ context.Context, in activities.AttemptRef) (berth.PlacementStatus, error) {
	a.scene.mu.Lock()
	defer a.scene.mu.Unlock()

	status := a.scene.status[in.AttemptID]
	if status.State == berth.RequestWaiting {
		status.State = berth.RequestWithdrawn
		a.scene.status[in.AttemptID] = status
	}

	return status, nil
}

func (*sceneSteps) AbandonAttempt(context.Context, activities.AbandonInput) (activities.Abandoned, error) {
	return activities.Abandoned{}, nil
}

// RunTrial runs an attempt, or gives back its place; a successful one measures
// the shape.
func (a *sceneSteps) RunTrial(ctx context.Context, order activities.Order) (berth.Outcome, error) {
	if order.Stop {
		return canceled("given back"), nil
	}

	s := a.scene

	outcome, err := s.runs(ctx, locked(s, func() activities.PlaceInput { return s.asked[order.AttemptID] }))
	if err != nil {
		return outcome, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.known = true

	return outcome, nil
}

// recordingServer starts a Temporal that keeps nothing.
func recordingServer(t *testing.T) client.Client {
	t.Helper()

	search := make(map[string]string)
	for name, kind := range workflows.SearchAttributes() {
		search[name] = kind.String()
	}

	server, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: t.TempDir(), InMemory: true, Headless: true, Search: search})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })

	c, err := client.Dial(client.Options{
		HostPort: server.Address, Identity: "recorder", Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	return c
}
