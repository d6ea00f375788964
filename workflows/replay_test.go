package workflows_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/berthml/berth/workflows"
)

// contents is what each history of testdata contains. A name begins with a
// version: when a change alters the commands of a scene's workflow, add the scene
// under the next one. Histories of earlier versions stay, so that workflows that
// they began are known to go on.
var contents = map[string]content{
	"v2-probe": {
		order: []string{"hears want", "tells probe: carry", "hears measured", "tells probe: ready", "completed: known true"},
		never: []string{"tells probe: beside", "version beside"},
	},
	"v2-sweep-succeeded": {order: []string{"child initiated", "child completed", "step FinishSweep", "completed: succeeded"}},
	"v2-sweep-steered": {
		order:  []string{"update pause", "update set_max_parallel", "update resume", "update stop", "completed: stopped"},
		counts: map[string]int{"tells stop": 6},
	},
	"v2-sweep-canceled":                 {order: []string{"cancel requested", "cancels a trial", "step FinishSweep", "completed: canceled"}},
	"v2-trial-canceled-running":         {order: []string{"RunTrial scheduled", "cancel requested", "RunTrial canceled", "completed: canceled"}},
	"v2-trial-canceled-running-again":   {order: []string{"RunTrial scheduled", "cancel requested", "RunTrial canceled", "completed: canceled"}},
	"v2-trial-stopped-while-running":    {order: []string{"RunTrial scheduled", "hears stop", "RunTrial completed", "completed: succeeded"}},
	"v2-trial-carried-probe":            {order: []string{"step JoinProbe", "hears probe: carry", "RunTrial completed", "tells measured", "completed: succeeded"}},
	"v2-trial-waited-for-probe":         {order: []string{"step JoinProbe", "hears probe: ready", "RunTrial completed", "completed: succeeded"}},
	"v2-trial-waited-for-probe-as-well": {order: []string{"step JoinProbe", "hears probe: ready", "RunTrial completed", "completed: succeeded"}},

	"v3-trial-failed": {
		order: []string{"step RequestPlacement", "hears placed", "step CheckPlacement", "RunTrial failed: user_error", "step SettleTrial", "completed: failed"},
	},
	"v3-trial-out-of-memory": {
		order: []string{"RunTrial failed: host_oom", "step RequestPlacement", "RunTrial scheduled", "RunTrial completed", "completed: succeeded"},
	},
	"v3-trial-infeasible": {
		order: []string{"RunTrial failed: host_oom", "RunTrial failed: host_oom", "RunTrial failed: host_oom", "step SettleTrial", "completed: infeasible"},
	},
	"v3-trial-impossible": {
		order: []string{"step RequestPlacement", "completed: infeasible"}, never: []string{"RunTrial scheduled"},
	},
	"v3-trial-lost-host": {
		order: []string{"RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "step RequestPlacement", "RunTrial completed", "completed: succeeded"},
	},
	"v3-trial-refused": {
		order: []string{"RunTrial failed: invalid", "version abandon-failed", "step AbandonAttempt", "step RequestPlacement", "RunTrial completed", "completed: succeeded"},
	},
	"v3-trial-given-back": {
		order: []string{
			"hears stop", "RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "version await-host",
			"step RequestPlacement", "RunTrial completed", "completed: succeeded",
		},
	},
	"v3-trial-canceled-running": {order: []string{"RunTrial started", "RunTrial canceled", "step SettleTrial", "completed: canceled"}},
	"v3-trial-canceled-waiting": { // the end of the trial withdraws its request
		order: []string{"step RequestPlacement", "cancel requested", "step SettleTrial", "completed: canceled"}, never: []string{"RunTrial scheduled"},
	},
	"v3-trial-stopped-waiting": {
		order: []string{"step RequestPlacement", "hears stop", "step WithdrawPlacement", "completed: canceled"}, never: []string{"RunTrial scheduled"},
	},
	"v3-trial-carried-probe": {order: []string{"step JoinProbe", "hears probe: carry", "RunTrial completed", "tells measured", "completed: succeeded"}},
	"v3-trial-beside-probe":  {order: []string{"step JoinProbe", "hears probe: beside", "RunTrial completed", "completed: succeeded"}},
	"v3-trial-resized": {
		order: []string{"hears probe: beside", "step RequestPlacement", "hears probe: ready", "step ResizePlacement", "RunTrial completed", "completed: succeeded"},
	},
	"v3-trial-short-probe": {
		order: []string{
			"hears probe: beside", "hears probe: carry, short", "step ResizePlacement", "RunTrial completed", "tells measured",
			"step RequestPlacement", "RunTrial completed", "completed: succeeded",
		},
	},
	"v3-trial-capped": {order: []string{"hears probe: carry", "RunTrial scheduled", "tells measured: capped", "RunTrial completed", "completed: succeeded"}},
	"v3-probe-beside": {
		order: []string{"version beside", "tells probe: carry", "tells probe: beside", "hears measured", "tells probe: ready", "completed: known true"},
	},
	"v3-probe-passed-on": {
		order: []string{
			"tells probe: carry", "tells probe: beside", "hears measured", "step FootprintKnown", "hears want",
			"tells probe: carry", "hears measured", "completed: known true",
		},
	},
	"v3-probe-capped": {order: []string{"tells probe: carry", "tells probe: beside", "hears measured: capped", "tells probe: carry, short", "completed: known true"}},

	"v3-sweep-wide": {
		order: []string{"child initiated", "child completed", "step SuggestTrials", "child initiated", "step FinishSweep", "completed: succeeded"},
		open:  24, counts: map[string]int{"child initiated": 40, "child completed": 40},
	},
	"v3-sweep-continued-as-new": {order: []string{"started", "step BeginSweep", "child completed"}, counts: map[string]int{"child initiated": 100}, last: "continued as new"},
	"v3-sweep-taken-over":       {order: []string{"started with what an earlier run carried over", "step EndedTrials", "hears trial_finished", "step FinishSweep", "completed: succeeded"}},
	"v3-sweep-paused-and-resumed": {
		order: []string{
			"update pause", "step SetSweepState", "version clock", "step FirstTrialRan",
			"update resume", "step SetSweepState", "child initiated", "completed: succeeded",
		},
	},
	"v3-sweep-paused-itself": {order: []string{"version doubt", "step SetSweepState", "update resume", "child initiated", "completed: succeeded"}},
	"v3-sweep-infeasible":    {order: []string{"version infeasible", "completed: succeeded"}},
	"v3-sweep-max-duration": {
		order: []string{"version clock", "step FirstTrialRan", "tells stop", "step FinishSweep", "completed: succeeded"}, never: []string{"update stop"},
	},
	"v3-sweep-stopped":  {order: []string{"update set_max_parallel", "step SetMaxParallel", "update stop", "tells stop", "completed: stopped"}},
	"v3-sweep-canceled": {order: []string{"cancel requested", "step SetSweepState", "cancels a trial", "step FinishSweep", "completed: canceled"}},

	"v4-probe-beside": {
		order: []string{"version tell-at-once", "tells probe: carry", "tells probe: beside", "hears measured", "tells probe: ready", "completed: known true"},
	},
	"v4-probe-passed-on": {
		order: []string{
			"version tell-at-once", "tells probe: carry", "tells probe: beside", "hears measured", "hears want",
			"tells probe: carry", "hears measured", "completed: known true",
		},
	},
	"v4-probe-capped": {
		order: []string{
			"version tell-at-once", "tells probe: carry", "tells probe: beside", "hears measured: capped", "tells probe: carry, short",
			"completed: known true",
		},
	},
	"v4-probe-continued-as-new": {
		order: []string{"version tell-at-once", "tells probe: carry", "tells probe: beside", "hears want", "tells probe: beside"},
		never: []string{"hears measured", "tells probe: ready"}, last: "continued as new",
	},
	"v4-probe-taken-over": {
		order: []string{"started with what an earlier run carried over", "tells probe: ready", "completed: known true"},
		never: []string{"tells probe: carry"},
	},
	"v4-image": {order: []string{"ResolveImage scheduled", "ResolveImage completed", "completed: "}},
	"v4-image-refused": {
		order: []string{"ResolveImage scheduled", "ResolveImage failed: invalid"}, last: "failed",
	},
	"v4-trial-canceled-waiting": {
		order: []string{"step RequestPlacement", "cancel requested", "version canceled-wait", "step WithdrawPlacement", "step SettleTrial", "completed: canceled"},
		never: []string{"RunTrial scheduled"},
	},
	"v4-trial-given-back": {
		order: []string{
			"hears stop", "RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "version await-host",
			"step RequestPlacement", "version given-back", "RunTrial completed", "completed: succeeded",
		},
	},
	"v4-sweep-canceled": {
		order: []string{"cancel requested", "version canceled-wait", "step SetSweepState", "cancels a trial", "step FinishSweep", "completed: canceled"},
	},

	"v5-sweep-wide": {
		order: []string{
			"version ahead", "child initiated", "child completed", "step SuggestTrials", "child initiated",
			"step FinishSweep", "completed: succeeded",
		},
		open: 32, counts: map[string]int{"child initiated": 40, "child completed": 40},
	},
	"v5-sweep-looks-again": {
		order: []string{"version ahead", "child completed", "step SuggestTrials", "version capacity", "step Capacity", "step SuggestTrials", "child initiated", "completed: succeeded"},
		open:  32, counts: map[string]int{"child initiated": 38},
	},

	"v5-sweep-told": { // a worker of before passed over the request
		order: []string{
			"started with what an earlier run carried over", "hears trial_finished", "hears trial_finished", "step EndedTrials",
			"hears trial_finished", "hears trial_finished", "step FinishSweep", "completed: succeeded",
		},
		never: []string{"version own-ends", "version asked", "child initiated"},
	},
	"v6-sweep-told": {
		order: []string{
			"started with what an earlier run carried over", "hears trial_finished", "hears trial_finished", "version own-ends",
			"hears trial_finished", "version asked", "step EndedTrials", "step FinishSweep", "completed: succeeded",
		},
		never: []string{"child initiated"},
	},

	"v6-trial-declined": { // the probe waited for a run that was over
		order: []string{"RunTrial scheduled", "hears probe: carry", "RunTrial completed", "completed: succeeded"}, never: []string{"tells measured"},
	},
	"v7-trial-declined": {
		order: []string{"RunTrial scheduled", "hears probe: carry", "RunTrial completed", "version declines", "tells measured", "completed: succeeded"},
	},
	"v8-trial-canceled-running": { // by a worker that says nothing of it
		order: []string{
			"RunTrial started", "RunTrial canceled", "version unheld", "RunTrial started", "RunTrial completed", "step SettleTrial", "completed: canceled",
		},
	},
	"v8-trial-unheld": { // by Temporal itself
		order: []string{
			"RunTrial scheduled", "cancel requested", "RunTrial canceled", "version unheld",
			"RunTrial scheduled", "RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "step SettleTrial", "completed: canceled",
		},
		never: []string{"RunTrial started"},
	},
}

// TestReplay runs the workflows against recorded histories, each of which must
// contain what its name says. A change that would break workflows that run fails here.
func TestReplay(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.json.gz")
	require.NoError(t, err)

	unread := make(map[string]bool)
	for name := range contents {
		unread[name] = true
	}

	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json.gz")
		require.Contains(t, contents, name, "say in contents what this history contains")
		delete(unread, name)

		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replay(t, name, readHistory(t, file))
		})
	}

	require.Empty(t, unread, "histories that are not there; scripts/record-histories records them")
}

// replay checks that a history contains what its name says, and that today's
// workflows issue its commands.
func replay(t *testing.T, name string, h *history.History) {
	t.Helper()

	contents[name].check(t, story(h))

	replayer := worker.NewWorkflowReplayer()
	workflows.Register(replayer)
	require.NoError(t, replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h))
}
