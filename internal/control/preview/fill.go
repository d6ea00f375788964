package preview

import (
	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// Fill is how full a memory gets when the sweep starts now, in bytes. The parts can add up
// to more than the total: a program outside Berth may use booked memory.
type Fill struct {
	TotalBytes    int64
	HeadroomBytes int64 // kept free on purpose
	OthersBytes   int64 // that programs outside Berth use now; 0 where that is not known
	ReservedBytes int64 // running attempts, and the trials of the sweep that start beside them
	SweepBytes    int64 // of ReservedBytes, the sweep's
}

// DeviceFill is a GPU of a host.
type DeviceFill struct {
	ID, Model string
	Simulated bool
	Problem   string // why it takes no trials, in plain words; empty = it takes them
	Memory    Fill
}

// fillAll says how full the hosts get when the sweep starts now, beside the running
// attempts: the placer's own decision on the current hosts, if nothing else waited.
func fillAll(hosts []berth.Host, requests []packing.Request, limit map[string]packing.SweepLimit, fits []HostFit) {
	index := make(map[string]int, len(hosts))
	devices := make(map[string]*Fill)

	for i, h := range hosts {
		index[h.ID] = i
		fits[i].Memory = Fill{
			TotalBytes: h.MemoryBytes, HeadroomBytes: h.MemoryHeadroomBytes, OthersBytes: h.UsedByOthersBytes(), ReservedBytes: h.MemoryReservedBytes,
		}
		fits[i].Devices = make([]DeviceFill, len(h.Devices))

		for j, d := range h.Devices {
			fits[i].Devices[j] = DeviceFill{ID: d.ID, Model: d.Model, Simulated: d.Simulated(), Problem: d.Refusal(), Memory: Fill{
				TotalBytes: d.MemoryBytes, HeadroomBytes: d.HeadroomBytes, OthersBytes: d.UsedByOthersBytes(), ReservedBytes: d.ReservedBytes,
			}}
			devices[d.ID] = &fits[i].Devices[j].Memory
		}
	}

	for _, d := range packing.Decide(hosts, limit, requests) {
		if !d.Placed {
			continue
		}

		f := &fits[index[d.Placement.HostID]]
		f.AtOnceNow++
		f.SpillBytes += d.Placement.Demand.SpillBytes
		f.Memory.add(d.Placement.Demand.MemoryBytes)

		if device := devices[d.Placement.DeviceID]; device != nil {
			device.add(d.Placement.Demand.DeviceBytes)
		}
	}
}

func (f *Fill) add(bytes int64) {
	f.ReservedBytes += bytes
	f.SweepBytes += bytes
}
