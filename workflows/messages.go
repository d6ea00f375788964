package workflows

import (
	"fmt"

	"github.com/google/uuid"
)

// SharedQueue is where workflows of an installation and their short steps run.
// Attempts run on the queue of their host. The id keeps a worker of another
// installation from taking steps that its database knows nothing of.
func SharedQueue(installationID string) string { return "berth-" + installationID }

// HostQueue is the task queue of one host. It is stable, so that a restarted
// worker finds its tasks. A host's id is a UUID, which no two installations
// share.
func HostQueue(hostID string) string { return "host-" + hostID }

// SweepWorkflowID names the workflow of a sweep. Workflows are named by their
// object, so that starting one twice starts it once.
func SweepWorkflowID(sweepID string) string { return "sweep-" + sweepID }

// TrialWorkflowID names the workflow of one trial.
func TrialWorkflowID(sweepID string, number int) string {
	return fmt.Sprintf("%s/trial-%d", SweepWorkflowID(sweepID), number)
}

// ProbeWorkflowID names the workflow that measures one shape.
func ProbeWorkflowID(shapeKey string) string { return "probe-" + shapeKey }

// StageWorkflowID names the workflow that has one trial run a stage for all that need it.
func StageWorkflowID(key string) string { return "stage-" + key }

// AttemptID derives an attempt's id from its trial's workflow, so that a
// replay or retry computes the same (rule R1).
func AttemptID(trialWorkflowID string, number int) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s/attempt-%d", trialWorkflowID, number)).String()
}

// Signals.
const (
	SignalPlaced        = "placed"         // to a trial: look at your placement request
	SignalProbe         = "probe"          // to a trial: ProbeRole
	SignalStage         = "stage"          // to a trial: StageRole
	SignalStop          = "stop"           // to a trial: do not start another attempt
	SignalTrialFinished = "trial_finished" // to a sweep: berth.TrialEnd, of a trial that an earlier run started; without a number: look them up
	SignalWant          = "want"           // to a probe or a stage: ProbeWanted
	SignalMeasured      = "measured"       // to a probe or a stage: ProbeMeasured
)

// Updates of a SweepWorkflow. Each answers with the sweep's new state, and is
// refused with a reason when the sweep cannot take it.
const (
	UpdatePause          = "pause"
	UpdateResume         = "resume"
	UpdateStop           = "stop"
	UpdateSetMaxParallel = "set_max_parallel"
)

// QueryState answers with a SweepView.
const QueryState = "state"

// Placed tells a trial that its placement request was decided.
type Placed struct {
	AttemptID string `json:"attempt_id"`
}

// ProbeWanted tells a probe that a trial waits for the footprint, or a stage that one waits
// for the output.
type ProbeWanted struct {
	WorkflowID string `json:"workflow_id"`
}

// ProbeRole tells a waiting trial its part in the measurement of its shape.
type ProbeRole struct {
	Ready  bool `json:"ready"`  // the footprint is known: go on
	Short  bool `json:"short"`  // measure by a short run that is thrown away
	Beside bool `json:"beside"` // run at the unmeasured size until then; none of these = your run measures the shape

	ShapeKey string `json:"shape_key"` // whose probe this is
}

// ProbeMeasured tells a probe, or a stage, how its carrier's run went.
type ProbeMeasured struct {
	WorkflowID string `json:"workflow_id"`
	Capped     bool   `json:"capped"` // still running, but longer than probe.max_duration

	Failed bool `json:"failed,omitempty"` // of a stage: the carrier's trial has ended, and may have failed by it
}

// StageRole tells a waiting trial its part in a stage.
type StageRole struct {
	Key   string `json:"key"`
	Carry bool   `json:"carry"` // run it for all; else look at the ledger: it has an output, or a failure, or another trial runs it
}
