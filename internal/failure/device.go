package failure

import (
	"fmt"
	"strings"

	"github.com/berthml/berth"
)

const (
	// fullDeviceBytes free or less is a full GPU: less than a cuDNN handle and
	// a first workspace need.
	fullDeviceBytes = 500 << 20

	// libraryBytes or less below its cap, a program has no room for a library's
	// handle: cuBLAS did not start with 180 MiB beside a context (one H200, 2026-11-21).
	libraryBytes = 192 << 20

	// fullPercent of its limit or more is a process that had no room left.
	fullPercent = 95
)

// faulted finds the end of a program's work on its GPU: a fault of its own or, by
// MPS, of a neighbour. After one each call fails, also calls that ask for memory, so
// it decides before texts that mean memory.
func faulted(e Evidence) (berth.FailureKind, string) {
	if !e.Device.Asked {
		return "", ""
	}

	switch fault, server, refused := e.find(faultSigns), e.find(serverSigns), e.find(fullServerSigns); {
	case e.find(cardSigns) != "" && e.Device.full(): // CUDA says "busy or unavailable" of a full GPU, too
		return deviceBusy(e.find(cardSigns))
	case e.find(cardSigns) != "":
		return berth.FailureInfra, fmt.Sprintf("its GPU failed under it, through no fault of the trial; Berth runs it again, %d times at the most; it said: %s",
			berth.MaxFreeRetries, e.find(cardSigns))
	case fault != "":
		return gpuFault(e, fault)
	case server != "":
		return serverFault(e, server)
	case refused != "":
		return berth.FailureDeviceBusy, "the MPS daemon of its GPU took no more processes; Berth waits for room; it said: " + refused
	default:
		return "", ""
	}
}

// OwnDeviceFault reports whether an attempt that ended as kind, which Classify says,
// failed by a fault on its GPU that can only be its own program's: it was no client
// of MPS there, or the only one.
func OwnDeviceFault(e Evidence, kind berth.FailureKind) bool {
	return kind == berth.FailureCrashed && e.Device.Asked && !e.Device.besideMPS() && e.find(faultSigns) != ""
}

// besideMPS reports whether the attempt may have shared its GPU with others by MPS.
func (d DeviceEvidence) besideMPS() bool { return d.Shared && !d.Alone }

// gpuFault is how an attempt ended that met a fault of a program on its GPU.
func gpuFault(e Evidence, line string) (berth.FailureKind, string) {
	if e.Device.besideMPS() {
		return berth.FailureNeighbourFault, besideOthers("a fault on its GPU", line)
	}

	return berth.FailureCrashed, "a fault on the GPU, mostly of the program itself; it said: " + line
}

// besideOthers says why an attempt that a fault ended beside others is not charged. Some
// frameworks do not name the fault of their GPU: TensorFlow aborts, and libraries of CUDA fail
// to start. A program that fails so for its own reason is charged once it runs alone.
func besideOthers(what, line string) string {
	return what + ", its own fault or that of another trial: by MPS one ends all, and nobody can tell whose it was; " +
		"Berth runs it again without neighbours by MPS; it said: " + line
}

// serverFault is the end of an attempt whose MPS server failed. Without neighbours the
// fault is none of theirs, and mostly not the program's: it runs again, free, as often
// as a machine's faults allow (berth.MaxFreeRetries).
func serverFault(e Evidence, line string) (berth.FailureKind, string) {
	switch {
	case !e.Device.MPS:
		return berth.FailureCrashed, "it failed at an MPS server, and Berth gave it none; " +
			"let neither the image nor the program set CUDA_MPS_PIPE_DIRECTORY; it said: " + line
	case e.Device.Alone:
		return berth.FailureInfra, fmt.Sprintf("the MPS server of its GPU failed under it, and it had the GPU to itself; Berth runs it again, %d times at the most; "+
			"if that goes on, look at the logs of MPS on host %q; it said: %s", berth.MaxFreeRetries, e.HostName, line)
	default:
		return berth.FailureNeighbourFault, "the MPS server of its GPU failed under it; Berth runs it again; it said: " + line
	}
}

func deviceOOMText(e Evidence) (berth.FailureKind, string) {
	if !e.Device.Asked {
		return "", ""
	}

	if line := e.find(deviceFullSigns); line != "" && !e.Device.Stepped {
		if e.Device.Shared && e.Device.FreeMeasured && e.Device.FreeBytes >= fullDeviceBytes { // of its share nothing was left
			return deviceOOM(e, "it said: "+line)
		}

		return deviceBusy(line)
	}

	if line := e.find(deviceOOMSigns); line != "" {
		return deviceOOM(e, "it said: "+line)
	}

	return "", ""
}

// ambiguousText may mean a full GPU or a broken driver: a reading decides.
func ambiguousText(e Evidence) (berth.FailureKind, string) {
	if !e.Device.Asked {
		return "", ""
	}

	line := e.find(ambiguousSigns)

	switch {
	case e.Device.full() && line != "":
		return deviceOOM(e, "the GPU was full and it said: "+line)
	case e.Device.full() && e.find(allocatorWarnings) != "":
		return deviceOOM(e, "the GPU was full and it said: "+e.find(allocatorWarnings))
	case line == "":
		return "", ""
	case e.Device.besideMPS():
		return berth.FailureNeighbourFault, besideOthers("a GPU library failed although memory was free", line)
	default:
		return berth.FailureCrashed, "a GPU library failed although memory was free; " +
			"check that the image's CUDA and cuDNN fit the driver; it said: " + line
	}
}

func deviceBusy(line string) (berth.FailureKind, string) {
	return berth.FailureDeviceBusy, "the GPU was full of what others hold; Berth waits for room; it said: " + line
}

func deviceOOM(e Evidence, why string) (berth.FailureKind, string) {
	if (!e.Device.Stepped || e.Device.Shared) && e.Device.FreeMeasured && e.Device.FreeBytes < fullDeviceBytes && !e.Device.atLimit() {
		return deviceBusy(strings.TrimPrefix(why, "it said: ")) // by MPS others hold more than they reserved
	}

	limit := ""
	if e.Device.LimitBytes > 0 {
		limit = ", with " + berth.BytesText(e.Device.LimitBytes) + " reserved"
	}

	return berth.FailureDeviceOOM, "ran out of GPU memory" + limit + " (" + why + "); Berth retries with more"
}

// untouched reports whether the program held nothing of the GPU that it was given.
func (d DeviceEvidence) untouched() bool { return d.Asked && d.Measured && d.PeakBytes == 0 }

// whyNoGPU says what to do for a program that did not touch its GPU.
func (e Evidence) whyNoGPU() string {
	if e.Device.NoGPU == "" {
		return "check that the image has the framework's build for CUDA, with its libraries"
	}

	return "install in the image what it misses (it said: " + quote(e.Device.NoGPU) + ")"
}

// full reports whether there was no room: on the device, or under its limit.
func (d DeviceEvidence) full() bool {
	return d.FreeMeasured && d.FreeBytes < fullDeviceBytes || d.atLimit()
}

func (d DeviceEvidence) atLimit() bool {
	if !d.Measured || d.LimitBytes <= 0 {
		return false
	}

	return d.PeakBytes >= d.LimitBytes/100*fullPercent || d.Shared && d.LimitBytes-d.PeakBytes < libraryBytes
}
