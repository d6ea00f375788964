package failure

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
)

// DiskEvidence is the known state of the host's disks. They are shared, so a
// trial that finds one full did nothing wrong, unless it alone filled it.
type DiskEvidence struct {
	Measured      bool  // FreeBytes and LogFreeBytes are measurements
	FreeBytes     int64 // where trials keep their files: when it was last full while the container ran, else the least
	LogFreeBytes  int64 // the same where Docker keeps logs
	HeadroomBytes int64 // headroom of the disk where trials keep their files
	FilledBytes   int64 // size of the attempt's files there then, if it alone had filled that disk; else 0

	FullBefore time.Duration // how long before the end Berth last saw that disk full; 0 = then, or never

	Missed  bool   // the container ended while Berth did not look at the disk
	Problem string // why the disk took no new file after the end, in plain words

	// LogUnseen: Berth did not look, and the disk of Docker's logs was full when it
	// looked again. It is unknown whether the disk was full before the end: a
	// refused line leaves no trace, and a torn one is dropped silently (Docker
	// 20.10, driver local, measured 2026-11-23).
	LogUnseen bool
}

// diskFullBytes is how much a full disk may still have free. An ext4 that
// refused a write of 1 MiB had 0.3 to 0.6 MiB free (measured, Linux 6.18,
// 2026-11-23). The rest is for a file that was begun and removed before Berth
// looked: it looks once a second. It is far below the headroom, in which running
// attempts may end.
const diskFullBytes = 16 << 20

// FailsWithin is how long a program takes to fail after a disk refused its file:
// it may write its checkpoint in the background, try again, or clean up first.
// What fails later, with all the room that it needs, fails for another reason.
const FailsWithin = time.Minute

// DiskFull reports whether a disk with this many bytes free may refuse files.
func DiskFull(free int64) bool { return free < diskFullBytes }

// KeptBytes is how much Berth keeps free, a full disk's rest at least.
func (d DiskEvidence) KeptBytes() int64 { return max(d.HeadroomBytes, diskFullBytes) }

// Low reports whether less was free than Berth keeps.
func (d DiskEvidence) Low() bool { return d.Measured && d.FreeBytes < d.KeptBytes() }

// full reports whether files may have been refused.
func (d DiskEvidence) full() bool { return d.Measured && DiskFull(d.FreeBytes) }

// logFull reports whether Docker may have dropped lines of the log: it drops a
// refused write silently (moby, daemon/logger/copier.go).
func (d DiskEvidence) logFull() bool { return d.Measured && DiskFull(d.LogFreeBytes) }

// fullAtEnd reports whether files may have been refused when it ended, or so soon
// before that it ended for it.
func (d DiskEvidence) fullAtEnd() bool { return d.full() && d.FullBefore <= FailsWithin }

// hostDisk: the program says that a file system refused its file, and the host's
// disk did. A file system that only the trial itself fills is left to the other
// rules, and so are old messages, unless the disk still refuses files.
func hostDisk(e Evidence) (berth.FailureKind, string) {
	if !e.Disk.fullAtEnd() && e.Disk.Problem == "" {
		e = e.recentOnly()
	}

	line := e.findWithout(noSpaceSigns, ownMemory)
	if line == "" && e.Disk.Problem != "" {
		line = e.findWithout(readOnlySigns, ownMemory)
	}

	switch {
	case line == "":
		return "", ""
	case e.Disk.Low():
		return e.diskFullEnd("it said: " + line)
	case e.Disk.Problem != "":
		return berth.FailureInfra, fmt.Sprintf("the disk of host %q takes no files: %s; Berth runs the trial again; it said: %s",
			e.HostName, e.Disk.Problem, line)
	case e.Disk.Missed:
		return berth.FailureInfra, fmt.Sprintf("a disk was full when it ended, maybe that of host %q, at which Berth did not look then; "+
			"Berth runs the trial again; it said: %s", e.HostName, line)
	default:
		return "", ""
	}
}

// fullDisk: the program failed while a disk was full, and does not say why. Its
// last words go through Docker's log, which a full disk refuses as well, and some
// frameworks name no reason.
func fullDisk(e Evidence) (berth.FailureKind, string) {
	switch e.ExitCode {
	case exitDocker, exitNotRunnable, exitNotFound, exitSignal + sigkill, exitSignal + sigterm: // that no disk does
		return "", ""
	}

	if e.recentOnly().find(noSpaceSigns) != "" || !e.Disk.fullAtEnd() {
		return "", ""
	}

	return e.diskFullEnd(fmt.Sprintf("it failed then (exit code %d): %s", e.ExitCode, e.lastWords()))
}

// diskFullEnd is the end of an attempt that failed for a full disk: not its fault, unless it
// alone filled the disk. Then it would fill the next one. A full disk that the attempt
// outlived by FailsWithin did not end it, and counts against neither.
func (e Evidence) diskFullEnd(then string) (berth.FailureKind, string) {
	d := e.Disk
	had := fmt.Sprintf("it had %s free, less than the %s that Berth keeps (--disk-headroom)",
		berth.BytesText(d.FreeBytes), berth.BytesText(d.KeptBytes()))

	if d.FilledBytes > 0 && d.FullBefore <= FailsWithin {
		return berth.FailureDiskQuota, fmt.Sprintf("wrote %s to /trial/out, /trial/checkpoint and its working directory, which filled the disk of host %q: %s; "+
			"its files were removed, except its checkpoints; write less, or keep only the last checkpoint; %s",
			berth.BytesText(d.FilledBytes), e.HostName, had, then)
	}

	return berth.FailureInfra, fmt.Sprintf("the disk of host %q was full: %s; "+
		"nothing new starts there until a person frees space; Berth runs the trial again; %s", e.HostName, had, then)
}

// outputLost is the end of an attempt that ended well, and of whose output a
// part is missing that may have held its result. It is never charged.
func outputLost(e Evidence) (berth.FailureKind, string) {
	var why string

	switch d := e.Disk; {
	case !e.HasObjective && e.DaemonLost: // measured: with live-restore, attempts that end in that time lose their last lines
		why = "Docker was away"
	case !e.HasObjective && e.FromLog && d.LogUnseen, e.FromLog && d.logFull() && !e.ReportedSince: // Docker drops lines that it cannot write
		why = fmt.Sprintf("the disk of Docker's logs on host %q was full", e.HostName)
	case !e.HasObjective && d.full():
		why = fmt.Sprintf("the disk of host %q was full (%s free)", e.HostName, berth.BytesText(d.FreeBytes))
	case e.FromLog && e.LogTorn:
		why = "a part of its log is lost"
	default:
		return "", ""
	}

	return berth.FailureInfra, fmt.Sprintf("ended well, but %s, so reports of %q may be lost; Berth runs it again (a metrics file is not lost: metrics.source)",
		why, e.Objective)
}
