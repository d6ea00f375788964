package berth

import (
	"strings"
	"time"
)

// DeviceClass names the kind of device that a footprint was measured on:
// footprints are kept for each class. It is ClassCPU, or Device.Class.
type DeviceClass string

// ClassCPU is the class of a host's cores, without a GPU.
const ClassCPU DeviceClass = "cpu"

// SharingMode is how the attempts on a GPU share it.
type SharingMode string

// The modes.
const (
	SharingExclusive   SharingMode = "exclusive"    // one attempt at a time
	SharingTimeSlicing SharingMode = "time_slicing" // the driver gives each process the whole GPU in turns
	SharingMPS         SharingMode = "mps"          // kernels of several processes run at once, by NVIDIA's Multi-Process Service
)

// Device is one GPU of a host, or a part of one that MIG made a GPU of its own.
type Device struct {
	ID               string      `json:"id"` // UUID as NVML reports it
	HostID           string      `json:"host_id"`
	Model            string      `json:"model"`             // such as NVIDIA H200
	Profile          string      `json:"profile,omitempty"` // of a MIG device, such as 1g.18gb; empty = a whole GPU
	Mode             SharingMode `json:"mode"`              // how its attempts share it: now, or when it last had some
	MemoryBytes      int64       `json:"memory_bytes"`
	HeadroomBytes    int64       `json:"headroom_bytes"`
	ReservedBytes    int64       `json:"reserved_bytes"`
	FreeBytes        int64       `json:"free_bytes"`   // total less the use of processes outside Berth
	MaxContexts      int         `json:"max_contexts"` // processes at once; by MPS no more than MPSContexts
	MPSContexts      int         `json:"mps_contexts"` // clients that its MPS daemon takes; 0 = it has none
	ContextsReserved int         `json:"contexts_reserved"`
	MaxAttempts      int         `json:"max_attempts"`          // at once; 0 = no limit
	Attempts         int         `json:"attempts"`              // unreleased leases
	ActivityReserved int64       `json:"activity_reserved"`     // thousandths: what its attempts were measured to use, added up
	Exclusive        bool        `json:"exclusive"`             // one of the attempts wants the device for itself
	Problem          string      `json:"problem,omitempty"`     // why it takes no attempts, in plain words; empty = it takes them
	Advice           Advice      `json:"advice,omitzero"`       // how many attempts should share it, and how
	MPSProblem       string      `json:"mps_problem,omitempty"` // why it takes no clients of MPS, though it has a daemon; empty = it takes them

	// A cordoned device takes no new attempts; running ones go on.
	CordonedAt   *time.Time `json:"cordoned_at,omitempty"`   // nil = it is not cordoned
	CordonReason string     `json:"cordon_reason,omitempty"` // in the person's words; may be empty
}

// mpsSuffix marks a class whose attempts share their GPU by MPS.
const mpsSuffix = " (MPS)"

// SimulatedModel is how the model of each simulated GPU begins (`--fake-gpus`), so
// that no user takes it for a real one.
const SimulatedModel = "Simulated GPU"

// Simulated reports whether the device is invented.
func (d Device) Simulated() bool { return strings.HasPrefix(d.Model, SimulatedModel) }

// Class is the device's kind: its model, the MIG profile, and whether attempts
// share it by MPS, whose clients need another amount of memory.
func (d Device) Class() DeviceClass { return d.ClassBy(d.Mode) }

// ClassBy is the device's class with its attempts sharing it in a mode.
func (d Device) ClassBy(mode SharingMode) DeviceClass {
	class := d.Model
	if d.Profile != "" {
		class += " " + d.Profile
	}

	if mode == SharingMPS {
		class += mpsSuffix
	}

	return DeviceClass(class)
}

// Mode is how attempts of the class share their device.
func (c DeviceClass) Mode() SharingMode {
	if strings.HasSuffix(string(c), mpsSuffix) {
		return SharingMPS
	}

	return SharingTimeSlicing
}

// kind is the class without how attempts share the device.
func (c DeviceClass) kind() DeviceClass { return DeviceClass(strings.TrimSuffix(string(c), mpsSuffix)) }

// Twin is the same kind of GPU, shared in the other way.
func (c DeviceClass) Twin() DeviceClass {
	if c.Mode() == SharingMPS {
		return c.kind()
	}

	return c + mpsSuffix
}

// Modes are the modes that the device offers, the preferred one first. It changes
// its mode only without attempts.
func (d Device) Modes() []SharingMode {
	switch {
	case d.Mode == SharingExclusive:
		return []SharingMode{SharingExclusive}
	case d.MPSContexts > 0:
		return []SharingMode{SharingMPS, SharingTimeSlicing}
	case d.Mode == SharingMPS && d.Attempts > 0: // of a daemon that is no more
		return []SharingMode{SharingMPS, SharingTimeSlicing}
	default:
		return []SharingMode{SharingTimeSlicing}
	}
}

// Refusal is why the device takes no new attempts, however they share it: its problem,
// and that a person has cordoned it. Empty = it takes them.
func (d Device) Refusal() string {
	if d.CordonedAt == nil {
		return d.Problem
	}

	why := "cordoned by a person"
	if d.CordonReason != "" {
		why += " (" + d.CordonReason + ")"
	}

	if d.Problem != "" {
		return d.Problem + "; also " + why
	}

	return why + "; `berth device ready " + d.ID + "` lets it take trials again"
}

// MPSStarts begins the problem of a device whose MPS daemon is being restarted, which
// takes seconds: requests that wait for the device stay with it until then.
const MPSStarts = "its MPS daemon is started again"

// NotHandedOut is the problem of a device that its host's worker no longer hands out
// since its start. The ledger keeps the device for HostGrace, so that a reboot without
// its driver ends no trial.
const NotHandedOut = "its worker does not hand it out since it started: its flags leave it out (`--gpus`, `--fake-gpus`), " +
	"or the driver does not show it (`nvidia-smi -L`)"

// Forgotten is the problem of a device that its worker has not handed out for longer than
// HostGrace. People see it no more; attempts that no other device could hold wait for it
// until its host is removed, as they wait for a lost host.
const Forgotten = NotHandedOut + "; it has been missing for more than 15 minutes"

// Passing reports whether the device's problem ends by itself in a moment.
func (d Device) Passing() bool {
	return d.CordonedAt == nil && strings.HasPrefix(d.Problem, MPSStarts)
}

// ProblemBy is why the device takes no new attempts that share it in a mode; empty =
// it takes them.
func (d Device) ProblemBy(mode SharingMode) string {
	if why := d.Refusal(); why != "" || mode != SharingMPS {
		return why
	}

	return d.MPSProblem
}

// ContextsBy is how many processes the device takes at once in a mode.
func (d Device) ContextsBy(mode SharingMode) int {
	if mode == SharingMPS {
		return min(d.MPSContexts, d.MaxContexts)
	}

	return d.MaxContexts
}

// UsedByOthersBytes is the last measured memory of programs outside Berth on the device; 0 while it has
// a Problem, because its free memory may be unknown then.
func (d Device) UsedByOthersBytes() int64 {
	if d.Problem != "" {
		return 0
	}

	return max(d.MemoryBytes-d.FreeBytes, 0)
}

// CapacityBytes is the memory that all leases of the device may hold together.
func (d Device) CapacityBytes() int64 { return d.MemoryBytes - d.HeadroomBytes }

// Limit is how many attempts the device takes at once; 0 = as many as fit.
func (d Device) Limit() int {
	if d.Mode == SharingExclusive {
		return 1
	}

	return d.MaxAttempts
}

// DeviceFree is the free memory of a device at one moment, as measured there. With a
// Problem it gives nothing away, with an MPSProblem nothing to MPS clients.
type DeviceFree struct {
	ID         string
	FreeBytes  int64 // total less the use of processes outside Berth
	Problem    string
	MPSProblem string
}

// FullActivity is a GPU that is busy all the time, in the thousandths of DeviceActivity.
const FullActivity = 1000

// DeviceActivity is how busy a GPU is, or how busy one attempt keeps it, in the mean
// over some time: thousandths, 0 to FullActivity. Zero = not known: a measured
// SMMilli is at least 1.
type DeviceActivity struct {
	SMMilli     int64 `json:"sm_milli,omitempty"`     // of the time, an SM had work; averaged over the SMs
	DRAMMilli   int64 `json:"dram_milli,omitempty"`   // of the bandwidth of the GPU's memory
	TensorMilli int64 `json:"tensor_milli,omitempty"` // of the time, a tensor core was in use
}

// Busiest is the activity of the part of a GPU that is full first: its SMs, or the
// bandwidth of its memory.
func (a DeviceActivity) Busiest() int64 { return min(max(a.SMMilli, a.DRAMMilli), FullActivity) }
