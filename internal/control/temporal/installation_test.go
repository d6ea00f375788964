//go:build integration

package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/workflows"
)

// startTemporal runs a Temporal that keeps nothing, and connects to it.
func startTemporal(t *testing.T) client.Client {
	t.Helper()

	server, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: t.TempDir(), InMemory: true, Headless: true, Search: searchTypes()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })

	c, err := client.Dial(client.Options{
		HostPort: server.Address, Logger: temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	return c
}

func searchTypes() map[string]string {
	named := make(map[string]string)
	for name, kind := range workflows.SearchAttributes() {
		named[name] = kind.String()
	}

	return named
}

// database is the state of an installation's database.
type database struct {
	mu           sync.Mutex
	installation berth.Installation
	sweeps       []berth.Sweep
	trials       map[string][]berth.Trial
	histories    int   // of events that were begun
	unreadable   error // why the sweeps cannot be listed
}

func newDatabase(sweeps ...berth.Sweep) *database {
	return &database{
		installation: berth.Installation{ID: uuid.NewString()}, sweeps: sweeps,
		trials: make(map[string][]berth.Trial),
	}
}

func (d *database) FirstTrialRan(_ context.Context, id string) (time.Time, error) {
	for _, trial := range d.trials[id] {
		if trial.StartedAt != nil {
			return *trial.StartedAt, nil
		}
	}

	return time.Time{}, nil
}

// identity is a process of the installation, as it starts.
func (d *database) identity(c client.Client) *temporal.Identity {
	return &temporal.Identity{
		Ledger: d, Client: temporal.NewClient(c, "default", d.installation.ID), Log: slog.New(slog.DiscardHandler), Patience: time.Nanosecond,
	}
}

// check finds that the namespace is the installation's.
func (d *database) check(t *testing.T, c client.Client) {
	t.Helper()

	bound, err := d.identity(c).Check(t.Context())
	require.NoError(t, err)
	require.True(t, bound)
}

func (d *database) orphans(c client.Client) *temporal.Orphans {
	identity := d.identity(c)

	return &temporal.Orphans{Ledger: d, Identity: identity, Client: identity.Client, Log: identity.Log}
}

func (d *database) Installation(context.Context) (berth.Installation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.installation, nil
}

func (d *database) BindTemporal(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	now := time.Now()
	d.installation.BoundAt = &now

	return nil
}

func (d *database) SetAlarm(_ context.Context, text string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	changed := d.installation.Alarm != text
	d.installation.Alarm = text

	return changed, nil
}

func (d *database) BeginHistory(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.histories++

	return nil
}

func (d *database) SweepRecord(_ context.Context, id string) (berth.Sweep, error) {
	for _, s := range d.sweeps {
		if s.ID == id {
			return s, nil
		}
	}

	return berth.Sweep{}, berth.Errorf(berth.KindNotFound, "no sweep %s", id)
}

func (d *database) GetSweep(ctx context.Context, id string) (berth.Sweep, error) {
	return d.SweepRecord(ctx, id)
}

func (d *database) Lead(ctx context.Context, _ string, lead func(ctx context.Context) error) error {
	return lead(ctx)
}

func (*database) NoteRound(context.Context, string, error) {}

func (d *database) ListSweepRecords(_ context.Context, _ []string, _ time.Time, beforeID string, _ int) ([]berth.Sweep, error) {
	if beforeID != "" || d.unreadable != nil {
		return nil, d.unreadable
	}

	var open []berth.Sweep

	for _, s := range d.sweeps {
		if !s.State.Terminal() {
			open = append(open, s)
		}
	}

	return open, nil
}

func (d *database) ListTrials(_ context.Context, sweepID string, _ []string, after, _ int) ([]berth.Trial, error) {
	var open []berth.Trial

	for _, trial := range d.trials[sweepID] {
		if !trial.State.Terminal() && trial.Number > after {
			open = append(open, trial)
		}
	}

	return open, nil
}

func (d *database) SetTrialState(_ context.Context, u berth.TrialUpdate) (bool, error) {
	for i, trial := range d.trials[u.SweepID] {
		if trial.Number == u.Number {
			d.trials[u.SweepID][i].State = u.State
		}
	}

	return true, nil
}

// Suggest makes all requested trials.
func (d *database) Suggest(
	_ context.Context, sweepID string, first, _ int, _ bool, suggest func(berth.Tried) ([]berth.NewTrial, bool, error),
) (numbers []int, exhausted bool, err error) {
	if len(d.trials[sweepID]) >= first {
		return []int{first}, false, nil
	}

	trials, exhausted, err := suggest(berth.Tried{Made: len(d.trials[sweepID])})
	for range trials {
		d.trials[sweepID] = append(d.trials[sweepID], berth.Trial{Number: len(d.trials[sweepID]) + 1, State: berth.TrialPending})
	}

	for n := first; n <= len(d.trials[sweepID]); n++ {
		numbers = append(numbers, n)
	}

	return numbers, exhausted, err
}

func (d *database) SetSweepState(_ context.Context, id string, state berth.SweepState, reason string) (bool, error) {
	for i := range d.sweeps {
		if d.sweeps[i].ID == id {
			d.sweeps[i].State, d.sweeps[i].Reason = state, reason
		}
	}

	return true, nil
}

func (d *database) FollowSweepRun(_ context.Context, id, known, runID string) (bool, error) {
	for i, s := range d.sweeps {
		if s.ID == id && s.RunID == known {
			d.sweeps[i].RunID = runID

			return true, nil
		}
	}

	return false, nil
}

// SilentTrials returns open trials.
func (d *database) SilentTrials(_ context.Context, after berth.Trial, _ time.Duration, limit int) ([]berth.Trial, error) {
	var open []berth.Trial

	for _, s := range d.sweeps {
		for _, trial := range d.trials[s.ID] {
			if !trial.State.Terminal() && (s.ID != after.SweepID || trial.Number > after.Number) && len(open) < limit {
				open = append(open, berth.Trial{ID: trial.ID, SweepID: s.ID, Number: trial.Number})
			}
		}
	}

	return open, nil
}

func (d *database) states() []berth.SweepState {
	states := make([]berth.SweepState, len(d.sweeps))
	for i, s := range d.sweeps {
		states[i] = s.State
	}

	return states
}

func running(n int) []berth.Sweep {
	space := berth.Spec{Parameters: []berth.Parameter{{Name: "x", Type: berth.ParameterInt, Min: new(1.0), Max: new(9.0)}}}
	space.Search.Algorithm = berth.SearchGrid

	sweeps := make([]berth.Sweep, n)
	for i := range sweeps {
		sweeps[i] = berth.Sweep{
			ID: uuid.NewString(), Name: fmt.Sprintf("s%d", i), State: berth.SweepRunning, CreatedAt: time.Now().UTC().Round(0), Spec: space,
		}
	}

	return sweeps
}

// begin starts the workflows of sweeps, on a queue that no worker serves.
func begin(t *testing.T, c client.Client, installation string, sweeps ...berth.Sweep) {
	t.Helper()

	for _, s := range sweeps {
		require.NoError(t, temporal.NewClient(c, "default", installation).StartSweep(t.Context(), s.ID))
	}
}

// Two installations in one namespace refuse each other with a sentence.
func TestIdentity_OneInstallationInANamespace(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	first, second := newDatabase(), newDatabase()

	for range 2 { // at the first start, and at every later one
		first.check(t, c)
		require.NotNil(t, first.installation.BoundAt)
	}

	_, err := second.identity(c).Check(t.Context())
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))

	for _, text := range []string{first.installation.ID, second.installation.ID, "--temporal-namespace", "--postgres-url"} {
		require.ErrorContains(t, err, text)
	}

	require.Nil(t, second.installation.BoundAt)

	_, err = second.identity(c).Restore(t.Context(), second)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err), "a person's word does not take a namespace from another")
	require.Zero(t, second.histories)
}

// A second server has a wrong --temporal-address, or is a `berth dev` in a shell that names a
// team's database. Its Temporal does not know the installation: that is no alarm while the
// earlier server is bound to one that does.
func TestIdentity_AnotherTemporalIsNoLoss(t *testing.T) {
	t.Parallel()

	d := newDatabase()
	right, wrong := d.identity(startTemporal(t)), d.identity(startTemporal(t))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- right.Run(ctx) }() // joined below

	bound := func() time.Time {
		i, err := d.Installation(t.Context())
		require.NoError(t, err)

		if i.BoundAt == nil {
			return time.Time{}
		}

		return *i.BoundAt
	}
	require.Eventually(t, func() bool { return right.Bound() && !bound().IsZero() }, 30*time.Second, 10*time.Millisecond)

	wrong.Patience = 0 // as it is served

	first := bound()
	require.Eventually(t, func() bool { // of several looks of the other
		found, err := wrong.Check(t.Context())

		return err != nil || found || d.alarm(t) != "" || bound().Sub(first) > 35*time.Second
	}, 2*time.Minute, time.Second)
	require.Empty(t, d.alarm(t))
	require.Greater(t, bound().Sub(first), 35*time.Second, "it was bound, or could not look")
	require.False(t, wrong.Bound())

	stop()
	require.ErrorIs(t, <-ended, context.Canceled)

	// Without the other it is, and the alarm is over once that is back.
	require.Eventually(t, func() bool {
		_, err := wrong.Check(t.Context())

		return err == nil && d.alarm(t) != ""
	}, time.Minute, time.Second)
	require.Contains(t, d.alarm(t), "its store was lost")

	_, err := right.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, d.alarm(t))
}

func (d *database) alarm(t *testing.T) string {
	t.Helper()

	i, err := d.Installation(t.Context())
	require.NoError(t, err)

	return i.Alarm
}

// A person may end the workflow that keeps the id: it tells whose the namespace
// was, and is started again.
func TestIdentity_TheKeeperWasTerminated(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase()

	d.check(t, c)
	require.NoError(t, c.TerminateWorkflow(t.Context(), "berth-installation", "", "a test"))

	_, err := newDatabase().identity(c).Check(t.Context())
	require.ErrorContains(t, err, d.installation.ID)

	d.check(t, c)

	got, err := c.DescribeWorkflowExecution(t.Context(), "berth-installation", "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, got.GetWorkflowExecutionInfo().GetStatus())
}

// Temporal's store was lost: Orphans ends nothing. At a person's word all goes
// on from the database's state.
func TestOrphans_LostStore(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase(running(5)...)
	first := &d.sweeps[0]
	first.Counts = berth.Counts{Total: 3, Succeeded: 1, Infeasible: 1, Running: 1}
	d.trials[first.ID] = []berth.Trial{
		{Number: 1, State: berth.TrialSucceeded, StartedAt: new(time.Now().Add(-65 * time.Hour))}, {Number: 2, State: berth.TrialInfeasible}, {Number: 3, State: berth.TrialRunning},
	}
	require.NoError(t, d.BindTemporal(t.Context())) // to the store that is lost

	before := d.states()
	orphans := d.orphans(c)
	require.NoError(t, orphans.Round(t.Context()))
	require.Equal(t, before, d.states())
	require.Equal(t, berth.TrialRunning, d.trials[first.ID][2].State)
	require.Contains(t, d.installation.Alarm, "its store was lost")
	require.False(t, orphans.Identity.Bound())

	done, err := d.identity(c).Restore(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, temporal.Restored{Sweeps: 5, Trials: 1}, done)
	require.Empty(t, d.installation.Alarm)

	require.NoError(t, orphans.Round(t.Context()))
	require.Equal(t, before, d.states())
	require.Empty(t, d.installation.Alarm)
	require.True(t, orphans.Identity.Bound())

	got := carried(t, c, first.ID)
	require.WithinDuration(t, time.Now(), got.Clock.Began, time.Minute, "it has run, and has its time anew")

	require.Equal(t, workflows.CarriedState{
		Clock: workflows.Clock{Began: got.Clock.Began}, StartedAt: first.CreatedAt, Created: 3, Open: []int{3}, Succeeded: 1, Infeasible: 1, Doubt: workflows.Doubt{Told: true},
	}, got)

	trial, err := c.DescribeWorkflowExecution(t.Context(), workflows.TrialWorkflowID(first.ID, 3), "")
	require.NoError(t, err)
	require.Equal(t, "berth-"+d.installation.ID, trial.GetWorkflowExecutionInfo().GetTaskQueue())

	done, err = d.identity(c).Restore(t.Context(), d)
	require.NoError(t, err)
	require.Zero(t, done, "all is there")
}

// carried is the state with which the workflow of a sweep began.
func carried(t *testing.T, c client.Client, sweepID string) workflows.CarriedState {
	t.Helper()

	history := c.GetWorkflowHistory(t.Context(), workflows.SweepWorkflowID(sweepID), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	require.True(t, history.HasNext())

	event, err := history.Next()
	require.NoError(t, err)

	var in workflows.SweepInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(event.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in))
	require.NotNil(t, in.Carried)

	return *in.Carried
}

// Many that vanish at once, or all, are an alarm, also in a namespace that
// knows the installation: its store was restored from an older copy, or
// something broke them all. A few that a person ended are ended.
func TestOrphans_ManyAtOnce(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)

	end := func(sweeps ...berth.Sweep) {
		for _, s := range sweeps {
			require.NoError(t, c.TerminateWorkflow(t.Context(), workflows.SweepWorkflowID(s.ID), "", "a test"))
		}
	}

	d := newDatabase(running(6)...)
	begin(t, c, d.installation.ID, d.sweeps...)

	first := d.sweeps[0].ID
	d.trials[first] = []berth.Trial{{Number: 1, State: berth.TrialRunning}}
	trial, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: workflows.TrialWorkflowID(first, 1), TaskQueue: "nobody's",
	}, workflows.TrialWorkflow, workflows.TrialInput{SweepID: first, Number: 1})
	require.NoError(t, err)

	orphans := d.orphans(c)
	require.NoError(t, orphans.Round(t.Context()))
	require.Empty(t, d.installation.Alarm)

	end(d.sweeps[:4]...)
	require.NoError(t, c.TerminateWorkflow(t.Context(), trial.GetID(), "", "a test"))

	for range 2 {
		require.NoError(t, orphans.Round(t.Context()))
		require.Equal(t, newStates(6, 0), d.states())
		require.Contains(t, d.installation.Alarm, "4 of 6 open sweeps have no workflow")
		require.Equal(t, berth.TrialRunning, d.trials[first][0].State, "no trial of theirs is judged")
	}

	delete(d.trials, first) // the rest is about sweeps

	// Restore is cut off, or slow: the sweeps that it has not brought back yet are not ended as
	// the few that a person ends.
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ // as Adopt starts the first
		ID: workflows.SweepWorkflowID(first), TaskQueue: "nobody's",
	}, workflows.SweepWorkflow, workflows.SweepInput{SweepID: first, Restored: true})
	require.NoError(t, err)

	for _, d.unreadable = range []error{nil, nil, errors.New("too slow"), nil} { // the round that does not see them does not forget them
		require.ErrorIs(t, orphans.Round(t.Context()), d.unreadable)
		require.Equal(t, newStates(6, 0), d.states())
		require.Contains(t, d.installation.Alarm, "3 of 6 open sweeps have no workflow")
	}

	done, err := d.identity(c).Restore(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, 3, done.Sweeps)
	require.NoError(t, orphans.Round(t.Context()))
	require.Equal(t, newStates(6, 0), d.states())
	require.Empty(t, d.installation.Alarm)

	end(d.sweeps[:2]...)
	require.NoError(t, orphans.Round(t.Context()))
	require.Equal(t, newStates(6, 2), d.states())
	require.Contains(t, d.sweeps[0].Reason, "ended in Temporal")
	require.Empty(t, d.installation.Alarm)
}

// Temporal's store was restored from before a sweep: Orphans does not end that
// sweep, however many others exist.
func TestOrphans_OneIsNotKnown(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase(running(3)...)
	lost := d.sweeps[2].ID
	d.trials[lost] = []berth.Trial{{Number: 1, State: berth.TrialRunning}}

	d.check(t, c)
	begin(t, c, d.installation.ID, d.sweeps[:2]...)
	require.NoError(t, d.orphans(c).Round(t.Context()))
	require.Equal(t, newStates(3, 0), d.states())
	require.Equal(t, berth.TrialRunning, d.trials[lost][0].State)
	require.Contains(t, d.installation.Alarm, "1 of 3 open sweeps have no workflow")
	require.Contains(t, d.installation.Alarm, berth.ShortKey(lost))

	done, err := d.identity(c).Restore(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, temporal.Restored{Sweeps: 1, Trials: 1}, done)
	require.NoError(t, d.orphans(c).Round(t.Context()))
	require.Empty(t, d.installation.Alarm)
	require.Equal(t, newStates(3, 0), d.states())
}

// A dump was restored from before the end of a sweep and of its trials. What
// Temporal knows to have completed is not run again.
func TestRestore_RepeatsNothingThatCompleted(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase(running(2)...)
	over, lost := d.sweeps[0].ID, d.sweeps[1].ID
	queue := "berth-" + d.installation.ID

	serveEnds(t, c, queue)

	d.check(t, c)
	begin(t, c, d.installation.ID, d.sweeps[0])
	require.NoError(t, c.GetWorkflow(t.Context(), workflows.SweepWorkflowID(over), "").Get(t.Context(), nil))

	runs := make(map[string]string)

	for _, sweep := range []string{over, lost} {
		d.trials[sweep] = []berth.Trial{{Number: 1, State: berth.TrialRunning}}

		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: workflows.TrialWorkflowID(sweep, 1), TaskQueue: queue,
		}, workflows.TrialWorkflow, workflows.TrialInput{SweepID: sweep, Number: 1})
		require.NoError(t, err)
		require.NoError(t, run.Get(t.Context(), nil))

		runs[run.GetID()] = run.GetRunID()
	}

	done, err := d.identity(c).Restore(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, 1, done.Sweeps, "the one that Temporal does not know")
	require.Zero(t, done.Trials)
	require.Equal(t, []int{1}, carried(t, c, lost).Open)

	for id, run := range runs {
		got, err := c.DescribeWorkflow(t.Context(), id, "")
		require.NoError(t, err)
		require.Equal(t, run, got.WorkflowExecution.RunID, "%s was run again", id)
	}

	require.NoError(t, d.orphans(c).Round(t.Context()))
	require.Equal(t, berth.TrialSucceeded, d.trials[over][0].State)
	require.Equal(t, berth.SweepSucceeded, d.sweeps[0].State)
}

// ended is how many trials a sweep of serveEnds has.
const ended = 3

// serveEnds serves a queue with workflows that end at once.
func serveEnds(t *testing.T, c client.Client, queue string) {
	t.Helper()

	value := 0.5

	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context, workflows.SweepInput) (workflows.SweepView, error) {
		return workflows.SweepView{State: berth.SweepSucceeded, Created: ended}, nil
	}, workflow.RegisterOptions{Name: "SweepWorkflow"})
	w.RegisterWorkflowWithOptions(func(workflow.Context, workflows.TrialInput) (workflows.TrialResult, error) {
		return workflows.TrialResult{State: berth.TrialSucceeded, Kind: berth.FailureOK, Message: "finished", Value: &value}, nil
	}, workflow.RegisterOptions{Name: "TrialWorkflow"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// A database was restored from before the ends of sweeps: any number of sweeps,
// and their trials, end as their workflows did.
func TestOrphans_EndAsTheirWorkflowsDid(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase(running(5)...)
	serveEnds(t, c, "berth-"+d.installation.ID)

	d.check(t, c)
	begin(t, c, d.installation.ID, d.sweeps...)

	first := d.sweeps[0].ID
	d.trials[first] = []berth.Trial{{Number: 1, State: berth.TrialRunning}, {Number: 2, State: berth.TrialWaiting}} // 3 is forgotten

	for _, number := range []int{1, 3} {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: workflows.TrialWorkflowID(first, number), TaskQueue: "berth-" + d.installation.ID,
		}, workflows.TrialWorkflow, workflows.TrialInput{SweepID: first, Number: number})
		require.NoError(t, err)
		require.NoError(t, run.Get(t.Context(), nil))
	}

	for _, s := range d.sweeps {
		require.NoError(t, c.GetWorkflow(t.Context(), workflows.SweepWorkflowID(s.ID), "").Get(t.Context(), nil))
	}

	require.NoError(t, d.orphans(c).Round(t.Context()))
	require.Empty(t, d.installation.Alarm)

	for _, s := range d.sweeps {
		require.Equal(t, berth.SweepSucceeded, s.State)
		require.Equal(t, "ended as its workflow did, which had completed; the database did not know", s.Reason)
	}

	require.Equal(t, berth.TrialSucceeded, d.trials[first][0].State)
	require.Equal(t, berth.TrialCanceled, d.trials[first][1].State, "Temporal does not know its workflow")
	require.Len(t, d.trials[first], ended)
	require.Equal(t, berth.TrialSucceeded, d.trials[first][2].State)
}

// A database was restored from before a sweep continued as new: it follows the
// sweep to the run that carries it on, and leaves the others as they are.
func TestOrphans_FollowsTheRunThatGoesOn(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase(running(2)...)

	d.check(t, c)
	begin(t, c, d.installation.ID, d.sweeps...)

	var runs []string

	for i, s := range d.sweeps {
		got, err := c.DescribeWorkflow(t.Context(), workflows.SweepWorkflowID(s.ID), "")
		require.NoError(t, err)

		runs = append(runs, got.WorkflowExecution.RunID)
		d.sweeps[i].RunID = runs[i]
	}

	d.sweeps[0].RunID = "an earlier one"
	require.NoError(t, d.orphans(c).Round(t.Context()))
	require.Equal(t, []string{runs[0], runs[1]}, []string{d.sweeps[0].RunID, d.sweeps[1].RunID})
	require.Equal(t, newStates(2, 0), d.states())
}

// A database was restored from before the end of a trial whose sweep goes on:
// the trial ends as its workflow did. Running trials and trials without a
// workflow stay as they are.
func TestOrphans_EndTrialsOfASweepThatGoesOn(t *testing.T) {
	t.Parallel()

	const served = "served"

	c := startTemporal(t)
	d := newDatabase(running(1)...)
	sweep := d.sweeps[0].ID
	serveEnds(t, c, served)

	d.check(t, c)
	begin(t, c, d.installation.ID, d.sweeps...)

	start := func(number int, queue string) client.WorkflowRun {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: workflows.TrialWorkflowID(sweep, number), TaskQueue: queue},
			workflows.TrialWorkflow, workflows.TrialInput{SweepID: sweep, Number: number})
		require.NoError(t, err)

		return run
	}

	const completed, goesOn, terminated, last = 1, 2, 3, 25 // more than a round looks up

	require.NoError(t, start(completed, served).Get(t.Context(), nil))
	start(goesOn, "nobody's")
	require.NoError(t, c.TerminateWorkflow(t.Context(), start(terminated, "nobody's").GetID(), "", "by hand"))
	require.NoError(t, start(last, served).Get(t.Context(), nil))

	for number := range last {
		d.trials[sweep] = append(d.trials[sweep], berth.Trial{Number: number + 1, State: berth.TrialRunning})
	}

	o := d.orphans(c)
	state := func(number int) berth.TrialState { return d.trials[sweep][number-1].State }

	require.NoError(t, o.Round(t.Context()))
	require.Equal(t, berth.TrialSucceeded, state(completed))
	require.Equal(t, berth.TrialCanceled, state(terminated))
	require.NoError(t, o.Round(t.Context()))
	require.Equal(t, berth.TrialSucceeded, state(last))

	for number := 1; number < last; number++ {
		if number != completed && number != terminated {
			require.Equal(t, berth.TrialRunning, state(number), "trial %d", number)
		}
	}

	require.Equal(t, newStates(1, 0), d.states())
}

// newStates returns the states of n sweeps, the first of them canceled.
func newStates(n, canceled int) []berth.SweepState {
	states := make([]berth.SweepState, n)

	for i := range states {
		states[i] = berth.SweepRunning
		if i < canceled {
			states[i] = berth.SweepCanceled
		}
	}

	return states
}

// A relay tells an empty namespace nothing: its messages would be taken for
// delivered, and Temporal's store may come back.
func TestRelay_HoldsWhatAnEmptyNamespaceWouldSwallow(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	d := newDatabase()
	require.NoError(t, d.BindTemporal(t.Context()))

	identity := d.identity(c)
	box := &outbox{messages: []berth.OutboxMessage{placed(7, "sweep-x/trial-1")}}
	relay := &temporal.Relay{Messages: box, Bound: identity.Bound, Client: identity.Client, Log: identity.Log}

	_, err := identity.Check(t.Context())
	require.NoError(t, err)
	require.NoError(t, relay.Run(t.Context()))
	require.Empty(t, box.settled)

	_, err = identity.Restore(t.Context(), d)
	require.NoError(t, err)
	_, err = identity.Check(t.Context())
	require.NoError(t, err)
	require.NoError(t, relay.Run(t.Context()))
	require.Equal(t, []int64{7}, box.settled[0].Delivered)
}
