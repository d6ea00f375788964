package berth

// DeviceClass names the kind of device that a footprint was measured on: what a
// shape needs is known for each class apart. It is ClassCPU, or Device.Class.
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
	Mode             SharingMode `json:"mode"`
	MemoryBytes      int64       `json:"memory_bytes"`
	HeadroomBytes    int64       `json:"headroom_bytes"`
	ReservedBytes    int64       `json:"reserved_bytes"`
	FreeBytes        int64       `json:"free_bytes"` // total less what processes outside Berth use now
	MaxContexts      int         `json:"max_contexts"`
	ContextsReserved int         `json:"contexts_reserved"`
	MaxAttempts      int         `json:"max_attempts"`      // at once; 0 = no limit
	Attempts         int         `json:"attempts"`          // unreleased leases
	Exclusive        bool        `json:"exclusive"`         // one of the attempts wants the device for itself
	Problem          string      `json:"problem,omitempty"` // why it takes no attempts, in plain words; empty = it takes them
}

// Class is the device's kind: its model, the MIG profile, and whether attempts
// share it by MPS, whose clients need another amount of memory.
func (d Device) Class() DeviceClass {
	class := d.Model
	if d.Profile != "" {
		class += " " + d.Profile
	}

	if d.Mode == SharingMPS {
		class += " (MPS)"
	}

	return DeviceClass(class)
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

// DeviceFree is what a device has to give away at one moment, as measured there.
// With a Problem it gives nothing away.
type DeviceFree struct {
	ID        string
	FreeBytes int64 // total less what processes outside Berth use
	Problem   string
}
