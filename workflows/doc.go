// Package workflows carries every step of a sweep through Temporal, so that
// nothing is lost when a process dies and Temporal's own UI tells the story.
//
//	SweepWorkflow ──(window of children)── TrialWorkflow ◄─signal── placer, by the outbox
//	      ▲                                     │   ▲
//	      └────────── trial_finished ───────────┘   │ probe
//	                                            ProbeWorkflow (one per shape, shared by all sweeps)
//
// Workflow code is deterministic: no clock but workflow.Now, no goroutine but
// workflow.Go, no random; workflowcheck and the replay tests hold it to that.
// Inputs and results are one struct each and only ever gain fields.
package workflows
