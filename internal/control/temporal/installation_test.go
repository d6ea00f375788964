//go:build integration

package temporal_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
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

func TestMain(m *testing.M) { pgtest.Main(m) }

// database is an installation's, with running sweeps.
type database struct {
	*postgres.Store

	url        string
	temporal   client.Client
	id         string   // of the installation
	sweeps     []string // oldest first
	unreadable error    // why the sweeps cannot be listed
}

func newDatabase(t *testing.T, c client.Client, sweeps int) *database {
	t.Helper()

	d := &database{url: pgtest.URL(t), temporal: c}

	var err error

	d.Store, err = postgres.Open(t.Context(), postgres.Config{URL: d.url})
	require.NoError(t, err)
	t.Cleanup(d.Close)

	d.id, err = d.RenewInstallation(t.Context()) // copies of one template have one id
	require.NoError(t, err)

	spec := berth.Spec{Name: "s", Parameters: []berth.Parameter{{Name: "x", Type: berth.ParameterInt, Min: new(1.0), Max: new(99.0)}}}
	spec.Search.Algorithm = berth.SearchGrid

	for range sweeps {
		id := uuid.NewString()
		d.sweeps = append(d.sweeps, id)
		_, _, err := d.CreateSweep(t.Context(), berth.NewSweep{ID: id, Spec: spec, ImageDigest: "sha256:x", CreatedBy: "me"})
		require.NoError(t, err)
		_, err = d.BeginSweepRun(t.Context(), id, "an earlier one")
		require.NoError(t, err)
	}

	return d
}

func (d *database) installation(t *testing.T) berth.Installation {
	t.Helper()

	installation, err := d.Installation(t.Context())
	require.NoError(t, err)

	return installation
}

// add gives a sweep trials in these states, as old as trials that Orphans looks up.
func (d *database) add(t *testing.T, sweep string, states ...berth.TrialState) {
	t.Helper()

	_, _, err := d.Suggest(t.Context(), sweep, 1, len(states), berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		trials := make([]berth.NewTrial, len(states))
		for i := range trials {
			trials[i] = berth.NewTrial{ID: uuid.NewString(), Params: berth.Assignment{"x": berth.IntValue(int64(i + 1))}}
		}

		return trials, false, nil
	})
	require.NoError(t, err)

	for i, state := range states {
		for _, state := range []berth.TrialState{berth.TrialRunning, state} {
			trial, err := d.GetTrial(t.Context(), sweep, i+1)
			require.NoError(t, err)
			_, err = d.SetTrialState(t.Context(), berth.TrialUpdate{TrialID: trial.ID, SweepID: sweep, Number: i + 1, State: state})
			require.NoError(t, err)
		}
	}

	pgtest.Exec(t, d.url, "UPDATE trials SET created_at = created_at - interval '1 hour'")
}

func (d *database) ListSweepRecords(ctx context.Context, states []string, before time.Time, beforeID string, limit int) ([]berth.Sweep, error) {
	if d.unreadable != nil {
		return nil, d.unreadable
	}

	return d.Store.ListSweepRecords(ctx, states, before, beforeID, limit)
}

// identity is a process of the installation, as it starts.
func (d *database) identity() *temporal.Identity {
	return &temporal.Identity{Ledger: d, Client: temporal.NewClient(d.temporal, "default", d.id), Log: slog.New(slog.DiscardHandler)}
}

// check finds that the namespace is the installation's.
func (d *database) check(t *testing.T) {
	t.Helper()

	bound, err := d.identity().Check(t.Context())
	require.NoError(t, err)
	require.True(t, bound)
}

func (d *database) restore(t *testing.T) temporal.Restored {
	t.Helper()

	done, err := d.identity().Restore(t.Context(), d)
	require.NoError(t, err)

	return done
}

func (d *database) orphans() *temporal.Orphans {
	identity := d.identity()

	return &temporal.Orphans{Ledger: d, Identity: identity, Client: identity.Client, Log: identity.Log}
}

// requireStates checks that the first of the sweeps are canceled, and all others run.
func (d *database) requireStates(t *testing.T, canceled int) {
	t.Helper()

	for i, id := range d.sweeps {
		want := berth.SweepRunning
		if i < canceled {
			want = berth.SweepCanceled
		}

		require.Equal(t, want, d.sweep(t, i).State, id)
	}
}

func (d *database) sweep(t *testing.T, i int) berth.Sweep {
	t.Helper()

	sweep, err := d.GetSweep(t.Context(), d.sweeps[i])
	require.NoError(t, err)

	return sweep
}

// state is that of a trial.
func (d *database) state(t *testing.T, sweep string, number int) berth.TrialState {
	t.Helper()

	trial, err := d.GetTrial(t.Context(), sweep, number)
	require.NoError(t, err)

	return trial.State
}

// begin starts the workflows of sweeps, on a queue that no worker serves.
func (d *database) begin(t *testing.T, sweeps ...string) {
	t.Helper()

	for _, id := range sweeps {
		require.NoError(t, temporal.NewClient(d.temporal, "default", d.id).StartSweep(t.Context(), id))
	}
}

// start starts the workflow of a trial.
func (d *database) start(t *testing.T, sweep string, number int, queue string) client.WorkflowRun {
	t.Helper()

	run, err := d.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: workflows.TrialWorkflowID(sweep, number), TaskQueue: queue},
		workflows.TrialWorkflow, workflows.TrialInput{SweepID: sweep, Number: number})
	require.NoError(t, err)

	return run
}

// terminate ends workflows as a person does in Temporal.
func (d *database) terminate(t *testing.T, ids ...string) {
	t.Helper()

	for _, id := range ids {
		require.NoError(t, d.temporal.TerminateWorkflow(t.Context(), id, "", "a test"))
	}
}

// runOf is the newest run of a workflow.
func (d *database) runOf(t *testing.T, id string) (run string) {
	t.Helper()

	got, err := d.temporal.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)

	return got.WorkflowExecution.RunID
}

// Two installations in one namespace refuse each other with a sentence.
func TestIdentity_OneInstallationInANamespace(t *testing.T) {
	t.Parallel()

	c := startTemporal(t)
	first, second := newDatabase(t, c, 0), newDatabase(t, c, 0)

	for range 2 { // at the first start, and at every later one
		first.check(t)
		require.NotNil(t, first.installation(t).BoundAt)
	}

	_, err := second.identity().Check(t.Context())
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))

	for _, text := range []string{first.id, second.id, "--temporal-namespace", "--postgres-url"} {
		require.ErrorContains(t, err, text)
	}

	_, err = second.identity().Restore(t.Context(), second)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err), "a person's word does not take a namespace from another")
	require.Nil(t, second.installation(t).BoundAt)

	// A person may end the workflow that keeps the id: it tells whose the namespace was, and is started again.
	first.terminate(t, "berth-installation")

	_, err = second.identity().Check(t.Context())
	require.ErrorContains(t, err, first.id)
	first.check(t)

	got, err := c.DescribeWorkflowExecution(t.Context(), "berth-installation", "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, got.GetWorkflowExecutionInfo().GetStatus())
}

// Temporal's store was lost: Orphans ends nothing, and a relay tells an empty namespace nothing, as its
// messages would be taken for delivered. At a person's word all goes on from the database's state.
func TestOrphans_LostStore(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, startTemporal(t), 5)
	first := d.sweeps[0]
	d.add(t, first, berth.TrialSucceeded, berth.TrialInfeasible, berth.TrialRunning)
	require.NoError(t, d.BindTemporal(t.Context())) // to the store that is lost

	orphans := d.orphans()
	box := &outbox{messages: []berth.OutboxMessage{placed(7, "sweep-x/trial-1")}}
	relay := &temporal.Relay{Messages: box, Bound: orphans.Identity.Bound, Client: orphans.Client, Log: orphans.Log}

	require.NoError(t, orphans.Round(t.Context()))
	require.NoError(t, relay.Run(t.Context()))
	require.Empty(t, box.settled)
	d.requireStates(t, 0)
	require.Equal(t, berth.TrialRunning, d.state(t, first, 3))
	require.Contains(t, d.installation(t).Alarm, "its store was lost")
	require.False(t, orphans.Identity.Bound())

	require.Equal(t, temporal.Restored{Sweeps: 5, Trials: 1}, d.restore(t))
	require.Empty(t, d.installation(t).Alarm)

	require.NoError(t, orphans.Round(t.Context()))
	d.requireStates(t, 0)
	require.Empty(t, d.installation(t).Alarm)
	require.True(t, orphans.Identity.Bound())
	require.NoError(t, relay.Run(t.Context()))
	require.Equal(t, []int64{7}, box.settled[0].Delivered)

	got := d.carried(t, first)
	require.WithinDuration(t, time.Now(), got.Clock.Began, time.Minute, "it has run, and has its time anew")

	require.Equal(t, workflows.CarriedState{
		Clock: workflows.Clock{Began: got.Clock.Began}, StartedAt: *d.sweep(t, 0).StartedAt, Created: 3, Open: []int{3}, Succeeded: 1, Infeasible: 1, Streak: workflows.FailureStreak{Told: true},
	}, got)

	trial, err := d.temporal.DescribeWorkflowExecution(t.Context(), workflows.TrialWorkflowID(first, 3), "")
	require.NoError(t, err)
	require.Equal(t, "berth-"+d.id, trial.GetWorkflowExecutionInfo().GetTaskQueue())
	require.Zero(t, d.restore(t), "all is there")
}

// carried is the state with which the workflow of a sweep began.
func (d *database) carried(t *testing.T, sweepID string) workflows.CarriedState {
	t.Helper()

	history := d.temporal.GetWorkflowHistory(t.Context(), workflows.SweepWorkflowID(sweepID), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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

	d := newDatabase(t, startTemporal(t), 6)
	d.begin(t, d.sweeps...)

	end := func(sweeps ...string) {
		for _, id := range sweeps {
			d.terminate(t, workflows.SweepWorkflowID(id))
		}
	}

	first := d.sweeps[0]
	d.add(t, first, berth.TrialRunning)
	trial := d.start(t, first, 1, "nobody's")

	orphans := d.orphans()
	require.NoError(t, orphans.Round(t.Context()))
	require.Empty(t, d.installation(t).Alarm)

	end(d.sweeps[:4]...)
	d.terminate(t, trial.GetID())

	for range 2 {
		require.NoError(t, orphans.Round(t.Context()))
		d.requireStates(t, 0)
		require.Contains(t, d.installation(t).Alarm, "4 of 6 open sweeps have no workflow")
		require.Equal(t, berth.TrialRunning, d.state(t, first, 1), "no trial of theirs is judged")
	}

	pgtest.Exec(t, d.url, "DELETE FROM trials") // the rest is about sweeps

	// Restore is cut off, or slow: the sweeps that it has not brought back yet are not ended as
	// the few that a person ends.
	_, err := d.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ // as Restore starts the first
		ID: workflows.SweepWorkflowID(first), TaskQueue: "nobody's",
	}, workflows.SweepWorkflow, workflows.SweepInput{SweepID: first, Restored: true})
	require.NoError(t, err)

	for _, d.unreadable = range []error{nil, nil, errors.New("too slow"), nil} { // the round that does not see them does not forget them
		require.ErrorIs(t, orphans.Round(t.Context()), d.unreadable)
		d.requireStates(t, 0)
		require.Contains(t, d.installation(t).Alarm, "3 of 6 open sweeps have no workflow")
	}

	require.Equal(t, 3, d.restore(t).Sweeps)
	require.NoError(t, orphans.Round(t.Context()))
	d.requireStates(t, 0)
	require.Empty(t, d.installation(t).Alarm)

	end(d.sweeps[:2]...)
	require.NoError(t, orphans.Round(t.Context()))
	d.requireStates(t, 2)
	require.Contains(t, d.sweep(t, 0).Reason, "ended in Temporal")
	require.Empty(t, d.installation(t).Alarm)
}

// Temporal's store was restored from before a sweep: Orphans does not end that
// sweep, however many others exist.
func TestOrphans_OneIsNotKnown(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, startTemporal(t), 3)
	lost := d.sweeps[2]
	d.add(t, lost, berth.TrialRunning)

	d.check(t)
	d.begin(t, d.sweeps[:2]...)
	require.NoError(t, d.orphans().Round(t.Context()))
	d.requireStates(t, 0)
	require.Equal(t, berth.TrialRunning, d.state(t, lost, 1))
	require.Contains(t, d.installation(t).Alarm, "1 of 3 open sweeps have no workflow")
	require.Contains(t, d.installation(t).Alarm, berth.ShortKey(lost))

	require.Equal(t, temporal.Restored{Sweeps: 1, Trials: 1}, d.restore(t))
	require.NoError(t, d.orphans().Round(t.Context()))
	require.Empty(t, d.installation(t).Alarm)
	d.requireStates(t, 0)
}

// A dump was restored from before the end of a sweep and of its trials. What
// Temporal knows to have completed is not run again.
func TestRestore_RepeatsNothingThatCompleted(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, startTemporal(t), 2)
	over, lost := d.sweeps[0], d.sweeps[1]
	d.serveEnds(t, "berth-"+d.id)

	d.check(t)
	d.begin(t, over)
	require.NoError(t, d.temporal.GetWorkflow(t.Context(), workflows.SweepWorkflowID(over), "").Get(t.Context(), nil))

	runs := make(map[string]string)

	for _, sweep := range d.sweeps {
		d.add(t, sweep, berth.TrialRunning)

		run := d.start(t, sweep, 1, "berth-"+d.id)
		require.NoError(t, run.Get(t.Context(), nil))

		runs[run.GetID()] = run.GetRunID()
	}

	require.Equal(t, temporal.Restored{Sweeps: 1}, d.restore(t), "the one that Temporal does not know")
	require.Equal(t, []int{1}, d.carried(t, lost).Open)

	for id, run := range runs {
		require.Equal(t, run, d.runOf(t, id), "%s was run again", id)
	}

	require.NoError(t, d.orphans().Round(t.Context()))
	require.Equal(t, berth.TrialSucceeded, d.state(t, over, 1))
	require.Equal(t, berth.SweepSucceeded, d.sweep(t, 0).State)
}

// ended is how many trials a sweep of serveEnds has.
const ended = 3

// serveEnds serves a queue with workflows that end at once.
func (d *database) serveEnds(t *testing.T, queue string) {
	t.Helper()

	value := 0.5

	w := worker.New(d.temporal, queue, worker.Options{})
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

	d := newDatabase(t, startTemporal(t), 5)
	d.serveEnds(t, "berth-"+d.id)

	d.check(t)
	d.begin(t, d.sweeps...)

	first := d.sweeps[0]
	d.add(t, first, berth.TrialRunning, berth.TrialWaiting) // 3 is forgotten

	for _, number := range []int{1, 3} {
		require.NoError(t, d.start(t, first, number, "berth-"+d.id).Get(t.Context(), nil))
	}

	for _, id := range d.sweeps {
		require.NoError(t, d.temporal.GetWorkflow(t.Context(), workflows.SweepWorkflowID(id), "").Get(t.Context(), nil))
	}

	require.NoError(t, d.orphans().Round(t.Context()))
	require.Empty(t, d.installation(t).Alarm)
	require.Equal(t, berth.TrialSucceeded, d.state(t, first, 1))
	require.Equal(t, berth.TrialCanceled, d.state(t, first, 2), "Temporal does not know its workflow")
	require.Equal(t, berth.TrialSucceeded, d.state(t, first, ended))

	for i := range d.sweeps {
		require.Equal(t, berth.SweepSucceeded, d.sweep(t, i).State)
		require.Contains(t, d.sweep(t, i).Reason, "ended as its workflow did, which had completed; the database did not know")
	}

	require.Equal(t, ended, d.sweep(t, 0).Counts.Total)
}

// A database was restored from before a sweep continued as new: it follows the
// sweep to the run that carries it on, and leaves the others as they are.
func TestOrphans_FollowsTheRunThatGoesOn(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, startTemporal(t), 2)
	d.check(t)
	d.begin(t, d.sweeps...)

	runs := []string{d.runOf(t, workflows.SweepWorkflowID(d.sweeps[0])), d.runOf(t, workflows.SweepWorkflowID(d.sweeps[1]))}
	_, err := d.BeginSweepRun(t.Context(), d.sweeps[1], runs[1])
	require.NoError(t, err)

	require.NoError(t, d.orphans().Round(t.Context()))
	require.Equal(t, runs[0], d.sweep(t, 0).RunID)
	require.Equal(t, runs[1], d.sweep(t, 1).RunID)
	d.requireStates(t, 0)
}

// A database was restored from before the end of a trial whose sweep goes on:
// the trial ends as its workflow did. Running trials and trials without a
// workflow stay as they are.
func TestOrphans_EndTrialsOfASweepThatGoesOn(t *testing.T) {
	t.Parallel()

	const (
		served                              = "served"
		completed, goesOn, terminated, last = 1, 2, 3, 25 // more than a round looks up
	)

	d := newDatabase(t, startTemporal(t), 1)
	sweep := d.sweeps[0]
	d.serveEnds(t, served)
	d.check(t)
	d.begin(t, sweep)

	require.NoError(t, d.start(t, sweep, completed, served).Get(t.Context(), nil))
	d.start(t, sweep, goesOn, "nobody's")
	d.terminate(t, d.start(t, sweep, terminated, "nobody's").GetID())
	require.NoError(t, d.start(t, sweep, last, served).Get(t.Context(), nil))
	d.add(t, sweep, slices.Repeat([]berth.TrialState{berth.TrialRunning}, last)...)

	o := d.orphans()

	require.NoError(t, o.Round(t.Context()))
	require.Equal(t, berth.TrialSucceeded, d.state(t, sweep, completed))
	require.Equal(t, berth.TrialCanceled, d.state(t, sweep, terminated))
	require.NoError(t, o.Round(t.Context()))
	require.Equal(t, berth.TrialSucceeded, d.state(t, sweep, last))
	require.Equal(t, last-3, d.sweep(t, 0).Counts.Running)
	d.requireStates(t, 0)
}
