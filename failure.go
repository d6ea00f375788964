package berth

import "regexp"

// FailureKind says how an attempt ended. The classifier is internal/failure.
type FailureKind string

// The closed set of kinds, as the ledger stores and the API shows them.
const (
	FailureOK             FailureKind = "ok"              // exit 0 and the objective was reported
	FailureHostOOM        FailureKind = "host_oom"        // the kernel killed a process of the container for memory
	FailureDeviceOOM      FailureKind = "device_oom"      // an allocation on the GPU failed
	FailureDeviceBusy     FailureKind = "device_busy"     // other programs filled the GPU; wait, do not grow
	FailureTooBig         FailureKind = "too_big"         // does not fit any machine, even alone
	FailureUserError      FailureKind = "user_error"      // the program ended with its own error
	FailureBadConfig      FailureKind = "bad_config"      // exit 78, or a secret that is gone: it cannot work; never retried
	FailureCrashed        FailureKind = "crashed"         // abort, segmentation fault and the like
	FailureKilled         FailureKind = "killed"          // SIGKILL from neither Berth nor the kernel's memory killer
	FailurePreempted      FailureKind = "preempted"       // stopped on our request and resumable
	FailureTimedOut       FailureKind = "timed_out"       // ran longer than max_trial_duration
	FailureNoResult       FailureKind = "no_result"       // exit 0 without the objective metric
	FailureNotFinite      FailureKind = "not_finite"      // the objective is NaN or infinite
	FailureNoDevice       FailureKind = "no_device"       // a GPU was asked for and not touched
	FailureImageMissing   FailureKind = "image_missing"   // the image is not on the host
	FailureBadCommand     FailureKind = "bad_command"     // the entry point does not exist or cannot run
	FailureNeighbourFault FailureKind = "neighbour_fault" // another client of the same GPU took it down
	FailureInfra          FailureKind = "infra"           // Docker, the host or Berth failed, not the program
	FailureCanceled       FailureKind = "canceled"        // a person or the sweep stopped it
	FailurePruned         FailureKind = "pruned"          // early stopping
	FailureLogFlood       FailureKind = "log_flood"       // printed faster than allowed for too long; never retried
	FailureDiskQuota      FailureKind = "disk_quota"      // wrote more files than an attempt may keep, or filled its host's disk; never retried
)

// NextStep is a trial's step after an attempt of some kind.
type NextStep string

// The next steps.
const (
	NextDone   NextStep = "done"   // the trial ends
	NextRetry  NextStep = "retry"  // again, with the same demand
	NextGrow   NextStep = "grow"   // again, with a larger reservation
	NextRemove NextStep = "remove" // the trial ends as infeasible; the search learns it
)

// FailurePolicy is Berth's reaction to one kind.
type FailurePolicy struct {
	Next    NextStep
	Charges bool // counts against retry.max_attempts; others may repeat up to MaxFreeRetries
}

// MaxFreeRetries bounds the attempts that were not the trial's fault, so that a
// broken machine cannot repeat a trial for ever (reliability.md, failure 33).
const MaxFreeRetries = 10

// Policy returns the reaction to an attempt of this kind.
func (k FailureKind) Policy() FailurePolicy {
	switch k {
	case FailureHostOOM, FailureDeviceOOM:
		return FailurePolicy{Next: NextGrow, Charges: true}
	case FailureCrashed, FailureKilled:
		return FailurePolicy{Next: NextRetry, Charges: true}
	case FailureDeviceBusy, FailurePreempted, FailureNeighbourFault, FailureInfra:
		return FailurePolicy{Next: NextRetry}
	case FailureTooBig:
		return FailurePolicy{Next: NextRemove, Charges: true}
	default:
		return FailurePolicy{Next: NextDone, Charges: true}
	}
}

// OutOfMemory reports whether a larger reservation is the answer.
func (k FailureKind) OutOfMemory() bool {
	return k == FailureHostOOM || k == FailureDeviceOOM
}

// digits are what differs between the messages of trials that fail for one reason: counts,
// sizes, addresses, values of parameters.
var digits = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?`)

// FailureText is the message of a failure without its numbers: equal for trials that
// failed for one reason.
func FailureText(message string) string { return digits.ReplaceAllString(message, "#") }

// FailureReason is why trials of a sweep failed or were infeasible.
type FailureReason struct {
	State   TrialState
	Kind    FailureKind
	Message string // of the first of them
	Trials  int    // how many
	First   int    // the lowest number
}

// FailedAlike reports whether two trials ended with one kind and for one reason.
func (e TrialEnd) FailedAlike(o TrialEnd) bool {
	return e.State == o.State && e.Kind == o.Kind && FailureText(e.Message) == FailureText(o.Message)
}
