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
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth/workflows"
)

// contents is the content of each history of testdata. A name begins with a
// version: when a change after 0.1.0 alters the commands of a scene's workflow, add
// the scene under the next one. Earlier histories stay, to show that their
// workflows still go on.
var contents = map[string]content{
	"v1-sweep-canceled": {order: []string{"cancel requested", "step SetSweepState", "cancels a trial", "step FinishSweep", "completed: canceled"}},
	"v1-sweep-stopped":  {order: []string{"update set_max_parallel", "step SetMaxParallel", "update stop", "tells stop", "completed: stopped"}},
	"v1-sweep-paused-and-resumed": {
		order: []string{
			"update pause", "step SetSweepState", "step FirstTrialRan", "update resume", "step SetSweepState", "child initiated", "completed: succeeded",
		},
	},
	"v1-sweep-paused-itself": {order: []string{"step SetSweepState", "update resume", "child initiated", "completed: succeeded"}},
	"v1-sweep-infeasible":    {order: []string{"child completed", "completed: succeeded"}, counts: map[string]int{"child initiated": 6}},
	"v1-sweep-max-duration": {
		order: []string{"step FirstTrialRan", "tells stop", "step FinishSweep", "completed: succeeded"}, never: []string{"update stop"},
	},
	"v1-sweep-looks-again": {
		order: []string{"child completed", "step SuggestTrials", "step Capacity", "step SuggestTrials", "child initiated", "completed: succeeded"},
		open:  32, counts: map[string]int{"child initiated": 38},
	},
	"v1-sweep-continued-as-new": {order: []string{"started", "step BeginSweep", "child completed"}, counts: map[string]int{"child initiated": 100}, last: "continued as new"},
	"v1-sweep-taken-over":       {order: []string{"started with what an earlier run carried over", "step EndedTrials", "hears trial_finished", "step FinishSweep", "completed: succeeded"}},

	"v1-trial-out-of-memory": {
		order: []string{"hears placed", "RunTrial failed: host_oom", "step RequestPlacement", "RunTrial scheduled", "RunTrial completed", "completed: succeeded"},
	},
	"v1-trial-lost-host": {
		order: []string{"RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "step RequestPlacement", "RunTrial completed", "completed: succeeded"},
	},
	"v1-trial-refused": {
		order: []string{"RunTrial failed: invalid", "step AbandonAttempt", "step RequestPlacement", "RunTrial completed", "completed: succeeded"},
	},
	"v1-trial-given-back": {
		order: []string{
			"hears stop", "RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "step RequestPlacement", "RunTrial completed", "completed: succeeded",
		},
	},
	"v1-trial-canceled-waiting": {
		order: []string{"step RequestPlacement", "cancel requested", "step WithdrawPlacement", "step SettleTrial", "completed: canceled"},
		never: []string{"RunTrial scheduled"},
	},
	"v1-trial-canceled-running": { // by a worker that does not report it
		order: []string{"RunTrial started", "RunTrial canceled", "RunTrial started", "RunTrial completed", "step SettleTrial", "completed: canceled"},
	},
	"v1-trial-unheld": { // by Temporal itself
		order: []string{
			"RunTrial scheduled", "cancel requested", "RunTrial canceled",
			"RunTrial scheduled", "RunTrial timed out: ScheduleToStart", "step AbandonAttempt", "step SettleTrial", "completed: canceled",
		},
		never: []string{"RunTrial started"},
	},
	"v1-trial-short-probe": {
		order: []string{
			"hears probe: beside", "hears probe: carry, short", "step ResizePlacement", "RunTrial completed", "tells measured",
			"step RequestPlacement", "RunTrial completed", "completed: succeeded",
		},
	},
	"v1-trial-capped": {order: []string{"hears probe: carry", "RunTrial scheduled", "tells measured: capped", "RunTrial completed", "completed: succeeded"}},

	"v1-probe-capped": {
		order: []string{"tells probe: carry", "tells probe: beside", "hears measured: capped", "tells probe: carry, short", "completed: known true"},
	},
	"v1-probe-passed-on": {
		order: []string{
			"tells probe: carry", "tells probe: beside", "hears measured", "hears want", "tells probe: carry", "hears measured", "completed: known true",
		},
	},
}

// TestReplay runs the workflows against recorded histories, each of which must have
// the content that its name promises. A change that would break running workflows
// fails here.
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

	started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes() // ids of attempts derive from the workflow's
	original := workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}
	require.NotEmpty(t, original.ID)
	require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: original}))
}
