package berth

import (
	"cmp"
	"maps"
	"slices"
)

// Demand is the need of an attempt, and the booking of a lease.
type Demand struct {
	MemoryBytes int64 `json:"memory_bytes"` // of the host; limit of the container
	CPUMilli    int64 `json:"cpu_milli"`
	DeviceBytes int64 `json:"device_bytes,omitempty"` // > 0 = wants a GPU
	Contexts    int   `json:"contexts,omitempty"`     // MPS client contexts
	Exclusive   bool  `json:"exclusive,omitempty"`    // alone on its host

	ExclusiveDevice bool `json:"exclusive_device,omitempty"` // alone on its GPU

	// SpillBytes of MemoryBytes are for what its GPU cannot hold: it runs in unified
	// memory, alone on the GPU. 0 = it does not.
	SpillBytes int64 `json:"spill_bytes,omitempty"`

	DeviceActivity int64 `json:"device_activity,omitempty"` // DeviceActivity.Busiest of its shape; 0 = not known
}

// Granule is the multiple of bytes that guesses of a memory need, and steps after an
// out-of-memory, are rounded to.
const Granule = 64 << 20

// CapCores returns how many cores a container may keep busy with this reservation in
// thousandths of a core: 1.25 times as many, rounded up. It may exceed the machine's
// cores.
func CapCores(cpuMilli int64) int64 {
	return (cpuMilli*125 + 99_999) / 100_000
}

// Demands are the needs of an attempt, by the class of device that it runs on.
// It does not run on a class that is missing.
type Demands map[DeviceClass]Demand

// Classes returns the demands' classes by kind of device; of one kind MPS comes
// first, because the placer prefers it.
func (d Demands) Classes() []DeviceClass {
	return slices.SortedFunc(maps.Keys(d), func(a, b DeviceClass) int {
		return cmp.Or(cmp.Compare(a.kind(), b.kind()), cmp.Compare(b, a)) // the longer has the suffix
	})
}

// First is the demand on the first class in order, for places that show one; zero
// when there is none.
func (d Demands) First() Demand {
	for _, class := range d.Classes() {
		return d[class]
	}

	return Demand{}
}

// Dimension is one axis of a demand.
type Dimension string

// The dimensions, in the order in which a rejection names them.
const (
	DimensionState       Dimension = "state" // the host or device takes no attempts
	DimensionMemory      Dimension = "memory"
	DimensionFreeMemory  Dimension = "free_memory" // measured, not booked
	DimensionDisk        Dimension = "disk"        // measured, too
	DimensionCPU         Dimension = "cpu"
	DimensionAttempts    Dimension = "attempts"
	DimensionDevice      Dimension = "device" // no GPU there
	DimensionDeviceBytes Dimension = "device_memory"
	DimensionContexts    Dimension = "contexts"
	DimensionActivity    Dimension = "device_activity"
	DimensionExclusive   Dimension = "exclusive"
	DimensionDataset     Dimension = "dataset" // a data set that the sweep mounts is not there
	DimensionSecret      Dimension = "secret"  // a secret that the sweep mounts cannot be opened there
	DimensionStage       Dimension = "stage"   // the output of an earlier stage is on another host
	DimensionSweep       Dimension = "sweep"   // paused, or its max_parallel is reached
	DimensionTrial       Dimension = "trial"   // an earlier attempt of it is open, or the ledger refuses the request
)
