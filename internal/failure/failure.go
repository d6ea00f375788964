// Package failure says how an attempt ended, from evidence: the order to stop,
// its exit code, the records of the kernel and the driver, and its last output.
// It does not guess: a kind that costs the trial a retry with more memory needs
// the kernel's word, an exit code of the contract, or the framework's own error
// together with a measured peak near the limit.
//
// The order of the rules decides, because several may match: reasons of our
// own come before the program's, exceptions before exit codes, and text that
// may mean several things only counts together with a memory reading
// (docs/reliability.md, failures 5 and 24-27).
package failure

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
)

// Intent is why Berth itself asked the container to stop.
type Intent string

// The intents. The first one recorded for an attempt stands.
const (
	IntentNone    Intent = ""
	IntentCancel  Intent = "cancel"  // a person or the sweep
	IntentStop    Intent = "stop"    // to run again later: a drain, a preemption
	IntentTimeout Intent = "timeout" // max_trial_duration
	IntentPrune   Intent = "prune"   // early stopping: it was worse than others
	IntentPlateau Intent = "plateau" // early stopping: it improves no more, and keeps its value
	IntentFlood   Intent = "flood"   // its log came faster than Limits.LogRateBytes
	IntentQuota   Intent = "quota"   // its files are larger than Limits.OutputBytes
	IntentDevice  Intent = "device"  // its GPU is lost
	IntentMemory  Intent = "memory"  // a client of MPS holds more host memory than is reserved
	IntentProbed  Intent = "probed"  // a short probe ran for Limits.ProbeFor
)

// StopsEarly reports whether early stopping asked.
func (i Intent) StopsEarly() bool { return i == IntentPrune || i == IntentPlateau }

// Evidence is all that is known of an attempt that ended. Zero values mean
// "not seen" or "not measured".
type Evidence struct {
	Intent  Intent
	StopWhy string // of early stopping, in numbers

	StartKind    berth.FailureKind // of the berth.StartError, when it could not start
	StartMessage string
	PullFailed   bool              // of a missing image: StartMessage says why it was not pulled
	Image        string            // as the sweep file names it
	HostName     string            // of the machine, for messages
	ReportedKind berth.FailureKind // of the exception that ended it, as the shim saw it
	ExitCode     int
	LogTail      []string // last 200 lines of both streams, oldest first
	OldLines     int      // how many of them, the first ones, are older than FailsWithin at the end

	OOMKilled        bool // Docker's flag
	OOMEvent         bool // Docker's event
	OOMKills         int  // the cgroup's counter, last read
	BelowLimit       bool // the kernel says that the cgroup never was at its limit, when OOMKills was read
	OOMCause         berth.OOMCause
	MemoryLimitBytes int64
	PeakBytes        int64 // working set
	Host             HostEvidence
	Disk             DiskEvidence
	LogTorn          bool // the end of its log cannot be read
	DaemonLost       bool // Docker went away at about the time of the exit
	HostRestarted    bool // the container belongs to an earlier boot

	Objective       string // metric of the sweep; empty = it has none
	HasObjective    bool   // a value was reported
	FromLog         bool   // its metrics come from its output, or may
	OwnPattern      bool   // by a pattern of the sweep file's own
	FromEvents      bool   // the same for event files
	ReportedSince   bool   // the only report that counts came when a disk of Docker's logs that had been full had room again
	ObjectiveStatus berth.MetricStatus
	Final           bool     // its value is that of a final record: the program said that it is done
	Reported        []string // names of metrics that count, ascending
	Near            Near     // printed text that seems to be the objective

	Limits Limits
	Device DeviceEvidence
}

// Limits are the limits of an attempt, for the message when it exceeded one.
type Limits struct {
	LogRateBytes int64         // of log per second
	LogFloodFor  time.Duration // during which it came faster
	OutputBytes  int64         // of files in /trial/out and /trial/checkpoint
	OutputOwn    bool          // by the sweep file; else by the worker
	ProbeFor     time.Duration // how long a short probe may run
}

// HostEvidence is the known state of the machine's memory.
type HostEvidence struct {
	Measured       bool  // AvailableBytes is a measurement
	AvailableBytes int64 // memory available to programs when the container was last sampled
}

// DeviceEvidence is the known state of the GPU side; zero on the CPU.
type DeviceEvidence struct {
	Asked        bool   // the attempt was given a GPU
	Must         bool   // its sweep wants nothing but a GPU
	Measured     bool   // PeakBytes is a measurement
	PeakBytes    int64  // the process' largest use
	LimitBytes   int64  // its reservation
	FreeMeasured bool   // FreeBytes is a measurement
	FreeBytes    int64  // the least the whole device had free in the last 10 s
	Stepped      bool   // a training step was reported
	NoGPU        string // the framework's message at its start why it finds no GPU (SaysNoGPU); empty = none
	Problem      string // why the GPU itself is out of order; empty = it works
	MPS          bool   // it is a client of the GPU's MPS daemon
	Shared       bool   // by MPS: it can take no more than LimitBytes, and a fault of one client ends all
	Alone        bool   // no other program was on the GPU while it ran: reserved so, or measured throughout
}

// Classify returns how the attempt ended, and why in plain words with the next step. It
// never returns an empty kind or message. A result that the program called final stands,
// even if the program failed afterwards: a model that cannot be saved, a crash while
// Python ends.
func Classify(e Evidence) (berth.FailureKind, string) {
	kind, message := classify(e)
	if e.Final && e.ObjectiveStatus == berth.MetricFinite && kind == berth.FailurePruned {
		return berth.FailureOK, fmt.Sprintf("finished: its final %q stands; early stopping came later", e.Objective)
	}

	if e.Final && e.ObjectiveStatus == berth.MetricFinite && afterwards[kind] {
		return berth.FailureOK, fmt.Sprintf("finished: its final %q stands; afterwards it failed (%s, exit code %d): %s",
			e.Objective, kind, e.ExitCode, e.lastWords())
	}

	return kind, message
}

// afterwards are the ends that take nothing from a final result. One that was stopped, or
// that says it can be resumed, is not done.
var afterwards = map[berth.FailureKind]bool{
	berth.FailureUserError: true, berth.FailureCrashed: true, berth.FailureKilled: true, berth.FailureHostOOM: true, berth.FailureDeviceOOM: true,
	berth.FailureBadConfig: true, berth.FailureTimedOut: true, berth.FailureNeighbourFault: true, berth.FailureInfra: true,
	berth.FailureLogFlood: true, berth.FailureDiskQuota: true,
}

func classify(e Evidence) (berth.FailureKind, string) {
	for _, rule := range rules {
		if kind, message := rule(e); kind != "" {
			return kind, message
		}
	}

	return userError(e)
}

// rules in order; the first that names a kind decides.
var rules = []func(Evidence) (berth.FailureKind, string){
	notStarted,
	intended,
	succeeded,
	reported,
	contractCode,
	kernelOOM,
	hostDisk,
	infrastructure,
	hostOOMText,
	faulted,
	deviceOOMText,
	ambiguousText,
	fullDisk,
	exitCode,
}

// outOfHostMemory reports whether the kernel killed a process of the container.
// Docker's flag alone is true as well when only a child died.
func (e Evidence) outOfHostMemory() bool {
	return e.OOMKilled || e.OOMEvent || e.OOMKills > 0
}

// nearLimit reports whether the container came to its own limit.
func (e Evidence) nearLimit() bool {
	return berth.NearMemoryLimit(e.PeakBytes, e.MemoryLimitBytes)
}

// machineRanOut reports whether the memory killer struck because the machine
// had no memory left, and not the container under its limit. The kernel's log
// says so. Without it:
//
//   - a container with kills in its cgroup that never was at its limit was killed
//     for others;
//   - a container that could still take more under its limit than the machine
//     had left was stopped by the machine first. The peak alone does not tell: a
//     program can take gigabytes between two samples.
func (e Evidence) machineRanOut() bool {
	switch {
	case e.OOMCause == berth.OOMMachine:
		return true
	case e.OOMCause == berth.OOMLimit || e.nearLimit():
		return false
	case e.OOMKills > 0:
		return e.BelowLimit
	default:
		killed := e.outOfHostMemory() || e.ExitCode == exitSignal+sigkill
		room := e.MemoryLimitBytes - e.PeakBytes

		return killed && e.Host.Measured && e.PeakBytes > 0 && e.Host.AvailableBytes < room
	}
}

// Near is a line that has the objective's words and a number, and that Berth cannot read.
type Near struct {
	Line    string // empty = there is none
	Pattern string // the metrics.pattern that reads it; empty = there is none
}
