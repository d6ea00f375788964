package failure

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/berthml/berth"
)

// Exit codes by which a job tells Berth how it ended, and exit codes of a
// shell, of Docker and of signals.
const (
	exitResumable = 75 // EX_TEMPFAIL of sysexits.h: stopped on request; goes on from its checkpoint
	exitBadConfig = 78 // EX_CONFIG of sysexits.h: these values cannot work
	exitDeviceOOM = 86
	exitHostOOM   = 87

	exitNotRunnable = 126
	exitNotFound    = 127
	exitDocker      = 125
	exitSignal      = 128 // plus the signal's number

	sigill, sigtrap, sigabrt, sigbus, sigfpe, sigkill, sigsegv, sigterm, sigsys = 4, 5, 6, 7, 8, 9, 11, 15, 31
)

func notStarted(e Evidence) (berth.FailureKind, string) {
	switch e.StartKind {
	case "":
		return "", ""
	case berth.FailureImageMissing:
		if e.PullFailed {
			return berth.FailureInfra, fmt.Sprintf("image %q is not on host %q, and cannot be pulled there: %s", e.Image, e.HostName, e.StartMessage)
		}

		// A person removed it since the sweep was accepted: no fault of the trial.
		return berth.FailureInfra, fmt.Sprintf("image %q is not on host %q any more; pull or load it there (docker pull, docker load), "+
			"and Berth goes on by itself; a sweep keeps to the image that it was submitted with: "+
			"where that one is gone for good, submit the sweep again: %s", e.Image, e.HostName, e.StartMessage)
	case berth.FailureBadConfig: // its mount is gone, and no retry mends that
		return e.StartKind, "the container was not started: " + e.StartMessage
	case berth.FailureBadCommand:
		return e.StartKind, "the command cannot be run in this image; check command and workdir: " + e.StartMessage
	default:
		return e.StartKind, "the container could not be started; Berth tries again: " + e.StartMessage
	}
}

func intended(e Evidence) (berth.FailureKind, string) {
	switch e.Intent {
	case IntentCancel:
		return berth.FailureCanceled, "canceled"
	case IntentPrune:
		if e.HasObjective && e.ObjectiveStatus != berth.MetricFinite {
			return berth.FailureNotFinite, "stopped early: " + e.StopWhy
		}

		return berth.FailurePruned, "stopped early: " + e.StopWhy
	case IntentPlateau:
		if !e.HasObjective { // a constraint's metric, which mostly comes at the end
			return berth.FailureNoResult, fmt.Sprintf("stopped early: %s; but it had not reported %q: report it with each epoch, or leave early_stop out", e.StopWhy, e.Objective)
		}

		if e.ObjectiveStatus != berth.MetricFinite {
			return berth.FailureNotFinite, "stopped early: " + e.StopWhy
		}

		return berth.FailureOK, "stopped early, and its value stands: " + e.StopWhy
	case IntentTimeout:
		return berth.FailureTimedOut, "ran longer than limits.max_trial_duration; raise it or make the trial shorter"
	case IntentProbed: // its purpose is reached, whatever error the stop caused
		return berth.FailureOK, fmt.Sprintf("the short probe ran for %s and was stopped; what it used until then was measured, "+
			"and the trial now runs in full (probe.max_duration)", e.Limits.ProbeFor)
	case IntentStop:
		return berth.FailurePreempted, "stopped on Berth's request; Berth runs it again, from its checkpoint if it wrote one"
	case IntentDevice:
		return berth.FailureInfra, e.deviceFault()
	case IntentMemory:
		if e.ExitCode == 0 { // Berth did not stop it
			return "", ""
		}

		return berth.FailureHostOOM, e.hostOOM(" (Berth stopped it before the kernel did, so that its neighbours by MPS go on)")
	case IntentFlood:
		return berth.FailureLogFlood, fmt.Sprintf("printed more than %s of log a second for %s, a short line counted as 1 KiB, and was stopped; "+
			"print less, or write a file to /trial/out; an administrator may raise --log-rate", berth.BytesText(e.Limits.LogRateBytes), e.Limits.LogFloodFor)
	case IntentQuota:
		raise := "an administrator may raise --output-limit"
		if e.Limits.OutputOwn {
			raise = "or raise limits.max_output in the sweep file"
		}

		return berth.FailureDiskQuota, fmt.Sprintf("wrote more than %s to /trial/out, /trial/checkpoint and its working directory; its files were removed; "+
			"write less, or keep fewer checkpoints (save_total_limit, save_top_k, or one file that is replaced); %s", berth.BytesText(e.Limits.OutputBytes), raise)
	default:
		return "", ""
	}
}

// succeeded: exit 0 is no failure of memory, even if a child was killed.
func succeeded(e Evidence) (berth.FailureKind, string) {
	if e.ExitCode != 0 {
		return "", ""
	}

	warning := ""
	switch {
	case e.outOfHostMemory() && e.machineRanOut():
		warning = "; but the machine ran out of memory on the way and the kernel killed a process of it"
	case e.outOfHostMemory():
		warning = "; but the kernel killed a process of it for memory on the way" + e.limit() +
			"; set resources.memory higher if a data loader died"
	}

	if e.Device.untouched() {
		warning += "; it did not touch the GPU that it was given, so trials like it run on cores: if it should have, " + e.whyNoGPU() + ", or set resources.device: gpu"
	}

	lost, why := outputLost(e)

	switch {
	case e.Device.untouched() && e.Device.Must:
		return berth.FailureNoDevice, "was given a GPU and did not touch it: the framework fell back to the CPU; " + e.whyNoGPU() + ", or set resources.device: cpu"
	case e.Objective == "":
		return berth.FailureOK, "finished" + warning
	case lost != "":
		return lost, why
	case !e.HasObjective:
		return berth.FailureNoResult, noResult(e) + warning
	case e.ObjectiveStatus != "" && e.ObjectiveStatus != berth.MetricFinite:
		return berth.FailureNotFinite, fmt.Sprintf("ended with %q = %s; the training diverged%s",
			e.Objective, e.ObjectiveStatus, warning)
	default:
		return berth.FailureOK, "finished" + warning
	}
}

func reported(e Evidence) (berth.FailureKind, string) {
	switch e.ReportedKind {
	case "":
		return "", ""
	case berth.FailureHostOOM: // an exception: it asked for more at once than the machine has, unless readings say otherwise
		if !e.outOfHostMemory() && !e.nearLimit() || e.machineRanOut() {
			return "", ""
		}

		return e.ReportedKind, e.hostOOM(" (the program reported it)")
	case berth.FailureDeviceOOM:
		if !e.Device.Asked {
			return "", ""
		}

		if kind, why := infrastructure(e); kind != "" { // the reason, maybe
			return kind, why
		}

		return deviceOOM(e, "the program reported it")
	default:
		return e.ReportedKind, "the program reported: " + e.lastWords()
	}
}

func contractCode(e Evidence) (berth.FailureKind, string) {
	switch e.ExitCode {
	case exitResumable:
		return berth.FailurePreempted, "stopped by itself and can be resumed (exit code 75); Berth runs it again"
	case exitBadConfig:
		return berth.FailureBadConfig, "the program refused these values (exit code 78): " + e.lastWords()
	case exitDeviceOOM:
		if e.Device.Asked { // else it is a code like any other
			return deviceOOM(e, "exit code 86")
		}
	case exitHostOOM:
		if e.ReportedKind == berth.FailureHostOOM { // the shim's code, not the program's own; reported has judged it
			break
		}

		return berth.FailureHostOOM, e.hostOOM(" (exit code 87)")
	}

	return "", ""
}

// kernelOOM: the kernel killed a process of the trial. Where the machine ran out, the use by
// others is not the trial's fault, and a larger reservation would not help.
func kernelOOM(e Evidence) (berth.FailureKind, string) {
	switch {
	case e.machineRanOut():
		return berth.FailureInfra, "the machine ran out of memory, and the kernel killed a process of the trial, which was not at its limit" +
			e.limit() + "; Berth runs it again; give Berth less of the machine (--memory of its worker) or stop what else uses it"
	case e.outOfHostMemory():
		return berth.FailureHostOOM, e.hostOOM(" and the kernel killed it (its files in /tmp and /dev/shm count)")
	default:
		return "", ""
	}
}

// infrastructure: a restarting Docker without live-restore ends containers with
// codes such as 2, 137 or 143 that look like the program's.
func infrastructure(e Evidence) (berth.FailureKind, string) {
	switch {
	case e.HostRestarted:
		return berth.FailureInfra, "the host was restarted under it; Berth runs it again"
	case e.DaemonLost:
		return berth.FailureInfra, "Docker went away when it ended; Berth runs it again (turn on Docker's live-restore)"
	case e.Device.Problem != "":
		return berth.FailureInfra, e.deviceFault()
	default:
		return "", ""
	}
}

// deviceFault says that the GPU failed under the attempt.
func (e Evidence) deviceFault() string {
	return "its GPU failed under it, through no fault of the trial; Berth runs it again elsewhere: " + cmp.Or(e.Device.Problem, "the GPU is lost")
}

func hostOOMText(e Evidence) (berth.FailureKind, string) {
	if line := e.find(killedSigns); line != "" {
		return berth.FailureHostOOM, e.hostOOM(" (it said: " + line + ")")
	}

	var onGPU []*regexp.Regexp // a refusal by the GPU, with any exception

	if e.Device.Asked {
		onGPU = deviceOOMSigns
	}

	line := e.findWithout(refusedSigns, onGPU)
	last := decisive(tracebacks(e.words()))

	switch {
	case line == "":
		return "", ""
	case e.nearLimit():
		return berth.FailureHostOOM, e.hostOOM(" (it said: " + line + ")")
	case last != nil && quote(last.exception) != line: // it got over that one
		return "", ""
	default:
		return berth.FailureUserError, e.refused(line)
	}
}

// refused is the message for an allocation that failed although the limit of
// the container was not the reason.
func (e Evidence) refused(line string) string {
	return fmt.Sprintf("the program failed (exit code %d): it could not get memory, which was not for its limit%s; "+
		"make the array, the batch or the model smaller, or set resources.memory to what it needs; it said: %s",
		e.ExitCode, e.limit(), line)
}

func exitCode(e Evidence) (berth.FailureKind, string) {
	switch e.ExitCode {
	case exitDocker, exitNotRunnable, exitNotFound:
		return berth.FailureBadCommand, fmt.Sprintf("the command was not found or cannot be run (exit code %d); "+
			"check command and workdir: %s", e.ExitCode, e.lastWords())
	case exitSignal + sigbus:
		return berth.FailureCrashed, "crashed with a bus error (exit code 135); " +
			"if the sweep file sets resources.shm_size, raise it or leave it out; Berth tries again"
	case exitSignal + sigabrt, exitSignal + sigsegv:
		if e.Device.besideMPS() {
			return berth.FailureNeighbourFault, besideOthers(fmt.Sprintf("crashed with signal %d (exit code %d)", e.ExitCode-exitSignal, e.ExitCode), e.lastWords())
		}

		return berth.FailureCrashed, e.crashed()
	case exitSignal + sigill, exitSignal + sigtrap, exitSignal + sigfpe, exitSignal + sigsys:
		return berth.FailureCrashed, e.crashed()
	case exitSignal + sigkill:
		return berth.FailureKilled, "was killed from outside (exit code 137), neither by Berth nor by its memory limit; " +
			"if the whole machine ran out of memory, give Berth less of it; Berth tries again"
	case exitSignal + sigterm:
		return berth.FailurePreempted, "was asked to stop from outside (exit code 143); Berth runs it again"
	default:
		return "", ""
	}
}

// crashed says by which signal the program ended.
func (e Evidence) crashed() string {
	return fmt.Sprintf("crashed with signal %d (exit code %d); Berth tries again: %s%s", e.ExitCode-exitSignal, e.ExitCode, e.lastWords(), e.hint())
}

func userError(e Evidence) (berth.FailureKind, string) {
	return berth.FailureUserError, fmt.Sprintf("the program failed (exit code %d): %s%s", e.ExitCode, e.lastWords(), e.hint())
}

func (e Evidence) hostOOM(why string) string {
	others := ""
	if !e.outOfHostMemory() && !e.nearLimit() {
		others = "; nothing but its own word says so, so other trials of its shape keep their size"
	}

	return "ran out of host memory" + e.limit() + why + "; Berth retries with more" + others
}

// limit says how much host memory it might take, and took, as far as both are known.
func (e Evidence) limit() string {
	if e.MemoryLimitBytes <= 0 {
		return ""
	}

	used := ""
	if e.PeakBytes > 0 && e.PeakBytes < e.MemoryLimitBytes {
		used = " (" + berth.BytesText(e.PeakBytes) + " when last measured)"
	}

	return ": the container was limited to " + berth.BytesText(e.MemoryLimitBytes) + used
}
