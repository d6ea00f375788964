package workflows

import "go.temporal.io/sdk/worker"

// Register makes a worker serve all workflows.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflow(SweepWorkflow)
	r.RegisterWorkflow(TrialWorkflow)
	r.RegisterWorkflow(ProbeWorkflow)
	r.RegisterWorkflow(StageWorkflow)
	r.RegisterWorkflow(ImageWorkflow)
}
