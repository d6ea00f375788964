package workflows

// Changes of the commands that a workflow issues. A run that began before a
// change replays without it: workflow.GetVersion returns DefaultVersion there.
// A change that only answers a signal, or a field, that workflows of older
// versions never send needs none; one that a server sends may have met a worker
// of an older version, which passed over it. TestReplay holds the histories of earlier versions to this.
const (
	changeDoubt         = "doubt"          // a sweep pauses itself when its first trials fail alike
	changeAbandonFailed = "abandon-failed" // an attempt that ended without an outcome is closed in the ledger
	changeBeside        = "beside"         // trials of a shape that is being measured run beside the probe
	changeClock         = "clock"          // max_duration counts from the first trial that runs
	changeAwaitHost     = "await-host"     // a trial of a stopped sweep waits for the host that has its running attempt
	changeAwayStop      = "away-stop"      // a trial whose host is away gives it a minute from the stop of its sweep, however long it has waited
	changeCanceledWait  = "canceled-wait"  // a canceled wait is an error: a canceled trial withdraws its request itself
	changeLookUp        = "look-up"        // trials that Temporal tells another run of are looked up, also while others bring news
	changeGivenBack     = "given-back"     // an attempt that is given back is what the ledger says, whatever its trial was asked meanwhile
	changeTellAtOnce    = "tell-at-once"   // a probe tells several trials their role at once
	changeAhead         = "ahead"          // a sweep keeps as many trials waiting as can run, and starts those when no place is free
	changeCapacity      = "capacity"       // a full window is looked at again, as hosts come back
	changeOwnEnds       = "own-ends"       // ends that are heard together are read apart
	changeAsked         = "asked"          // a sweep looks its trials up when it is told to
	changeDeclines      = "declines"       // a trial that ends before it plays its part in a probe tells the probe
	changeUnheld        = "unheld"         // a canceled attempt that no worker has is given back by its host, and read in the ledger when that does not
	changeAskRegistry   = "ask-registry"   // an image that one machine lacks is looked for on the others, and in its registry
	changeInfeasible    = "infeasible"     // infeasible trials do not count for max_failed_trials
)
