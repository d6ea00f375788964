package workflows_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// probeBundle is a probe whose waiting trials are faked.
type probeBundle struct {
	env   *testsuite.TestWorkflowEnvironment
	known bool
	dead  map[string]bool // trials that have ended
	late  []string        // trials that join while the first gets the footprint
	mu    sync.Mutex      // several trials get messages at once
	told  []told
	calls *testsuite.MockCallWrapper // by which it tells
}

type told struct {
	trial string
	role  workflows.ProbeRole
}

func probeSetup(t *testing.T) *probeBundle {
	t.Helper()

	var a *activities.Activities

	b := &probeBundle{env: environment(), dead: map[string]bool{}}
	b.env.RegisterActivity(&activities.Activities{})
	b.env.OnActivity(a.FootprintKnown, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.ShapeRef) (bool, error) { return b.known, nil })
	b.calls = b.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, workflows.SignalProbe, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			if b.dead[id] {
				return berth.Errorf(berth.KindNotFound, "workflow has ended")
			}

			role := arg.(workflows.ProbeRole) //nolint:forcetypeassert // our own signal

			b.mu.Lock()
			b.told = append(b.told, told{id, role})
			b.mu.Unlock()

			for role.Ready && len(b.late) > 0 {
				b.env.SignalWorkflow(workflows.SignalWant, workflows.ProbeWanted{WorkflowID: b.late[0]})
				b.late = b.late[1:]
			}

			return nil
		})

	return b
}

func (b *probeBundle) want(after time.Duration, trials ...string) {
	b.env.RegisterDelayedCallback(func() {
		for _, trial := range trials {
			b.env.SignalWorkflow(workflows.SignalWant, workflows.ProbeWanted{WorkflowID: trial})
		}
	}, after)
}

func (b *probeBundle) measured(after time.Duration, trial string, known, capped bool) {
	b.env.RegisterDelayedCallback(func() {
		b.known = known
		b.env.SignalWorkflow(workflows.SignalMeasured, workflows.ProbeMeasured{WorkflowID: trial, Capped: capped})
	}, after)
}

func (b *probeBundle) execute(t *testing.T) workflows.ProbeResult {
	t.Helper()

	b.env.ExecuteWorkflow(workflows.ProbeWorkflow, workflows.ProbeInput{ShapeKey: shapeKey})
	require.NoError(t, b.env.GetWorkflowError())

	var result workflows.ProbeResult
	require.NoError(t, b.env.GetWorkflowResult(&result))

	return result
}

// heard returns the roles that trials got. Trials with the same role in a row
// are sorted by name, as they may have got it at once.
func (b *probeBundle) heard() []told {
	for i := 0; i < len(b.told); {
		same := i
		for same < len(b.told) && b.told[same].role == b.told[i].role {
			same++
		}

		slices.SortFunc(b.told[i:same], func(x, y told) int { return cmp.Compare(x.trial, y.trial) })
		i = same
	}

	return b.told
}

var (
	carry  = workflows.ProbeRole{ShapeKey: shapeKey}
	beside = workflows.ProbeRole{Beside: true, ShapeKey: shapeKey}
	ready  = workflows.ProbeRole{Ready: true, ShapeKey: shapeKey}
)

// One trial measures a shape, and the others run beside it.
func TestProbe_Roles(t *testing.T) {
	t.Parallel()

	short := workflows.ProbeRole{Short: true, ShapeKey: shapeKey}

	for name, tt := range map[string]struct {
		play  func(b *probeBundle)
		known bool
		want  []told
	}{
		"the carrier measures": {func(b *probeBundle) {
			b.want(0, "a", "b", "b", "c")
			b.measured(time.Minute, "a", true, false)
		}, true, []told{{"a", carry}, {"b", beside}, {"c", beside}, {"b", ready}, {"c", ready}}},
		"the next that joins takes over after a failure": {func(b *probeBundle) {
			b.want(0, "a", "b")
			b.measured(time.Minute, "a", false, false)
			b.want(2*time.Minute, "c")
			b.measured(3*time.Minute, "c", true, false)
		}, true, []told{{"a", carry}, {"b", beside}, {"c", carry}, {"b", ready}}},
		"trials that have ended are skipped": {func(b *probeBundle) {
			b.dead["a"], b.dead["c"] = true, true
			b.want(0, "a", "b", "c")
			b.measured(time.Minute, "b", true, false)
		}, true, []told{{"b", carry}}},
		"after the cap the next measures short, and is asked once": {func(b *probeBundle) {
			b.want(0, "a", "b")
			b.measured(2*time.Minute, "a", false, true)
			b.want(3*time.Minute, "c")
			b.measured(4*time.Minute, "c", true, false)
		}, true, []told{{"a", carry}, {"b", beside}, {"b", short}, {"c", beside}}},
		"a trial that did not hear of its role is told again": {func(b *probeBundle) {
			b.want(0, "a", "b")
			b.want(time.Minute, "b")
			b.measured(2*time.Minute, "a", true, false)
		}, true, []told{{"a", carry}, {"b", beside}, {"b", beside}, {"b", ready}}},
		"no trial is left": {func(b *probeBundle) {
			b.want(0, "a", "b")
			b.measured(time.Minute, "a", false, false)
			b.measured(time.Minute, "b", false, false)
		}, false, []told{{"a", carry}, {"b", beside}}},
		"a trial joins at its end": {func(b *probeBundle) {
			b.late = []string{"c"}
			b.want(0, "a", "b")
			b.measured(time.Minute, "a", true, false)
		}, true, []told{{"a", carry}, {"b", beside}, {"b", ready}, {"c", ready}}},
		// A carrier whose sweep is paused measures nothing, maybe for days. Trials of
		// other sweeps do not wait for it, and the first that ends measures the shape.
		"the carrier is paused": {func(b *probeBundle) {
			b.want(0, "paused", "b", "c")
			b.measured(time.Minute, "b", true, false)
		}, true, []told{{"paused", carry}, {"b", beside}, {"c", beside}, {"c", ready}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := probeSetup(t)
			tt.play(b)
			require.Equal(t, tt.known, b.execute(t).Known)
			require.Equal(t, tt.want, b.heard())
		})
	}
}

// Telling many takes the time of a few: Temporal needs a moment for each, in
// which the first wave of a wide machine would wait.
func TestProbe_TellsSeveralAtOnce(t *testing.T) {
	t.Parallel()

	const trials = 17

	b := probeSetup(t)
	b.calls.After(time.Second)

	for i := range trials {
		b.want(0, fmt.Sprintf("trial-%02d", i))
	}

	b.measured(time.Minute, "trial-00", true, false)

	began := b.env.Now()

	require.True(t, b.execute(t).Known)
	require.Len(t, b.heard(), 2*trials-1)
	require.Less(t, b.env.Now().Sub(began), time.Minute+5*time.Second, "sixteen are ready in two steps of eight")
}
