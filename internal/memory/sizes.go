package memory

import (
	"slices"

	"github.com/berthml/berth"
)

// unmeasuredShare is the part of a GPU that must be free for a shape that was
// never measured on its class. It gets the whole GPU, as nothing bounds what it
// takes: this only decides how much programs outside Berth may use there.
const unmeasuredShare = 4

// Sizes returns what the next attempt of a trial asks for on each class of device
// that it can use, by what is known there and by the hosts that have the class.
// ok is false when the trial ran out of memory and there is nothing larger to ask
// for on any class: demands then say what it would need.
//
// With device auto a trial runs on GPUs where a host that takes attempts has one
// that does, else on cores; and on cores when its shape was seen to hold nothing of
// a GPU. With device gpu it waits for those of other hosts, too.
// What was never measured on a class of GPU runs alone on one: its first run
// measures it.
func Sizes(a Ask, known berth.Footprints, recent []berth.Host) (demands berth.Demands, ok bool) {
	classes := gpuClasses(a.Resources, recent)
	if a.Resources.Device != berth.DeviceGPU && slices.ContainsFunc(classes, func(c berth.DeviceClass) bool { return NeedsNoGPU(known.Of(c)) }) {
		classes = nil
	}

	if len(classes) == 0 && a.Resources.Device != berth.DeviceGPU {
		a.Last = onCores(a.Last)
		d, ok := Size(a, known.Of(berth.ClassCPU), recent)

		return berth.Demands{berth.ClassCPU: d}, ok
	}

	fitting, lacking := berth.Demands{}, berth.Demands{}

	for _, class := range classes {
		d, ok := sizeOn(a, class, known.Of(class), recent)
		if ok {
			fitting[class] = d
		} else {
			lacking[class] = d
		}
	}

	if len(fitting) == 0 && len(lacking) > 0 {
		return lacking, false
	}

	return fitting, true
}

// onCores is what an out-of-memory says of an attempt without a GPU: of a GPU's
// memory nothing.
func onCores(last *berth.LastOOM) *berth.LastOOM {
	if last == nil || last.Device {
		return nil
	}

	host := *last
	host.Demand.DeviceBytes, host.Demand.Contexts, host.Demand.ExclusiveDevice = 0, 0, false

	return &host
}

// gpuClasses are the classes that a trial with these resources can use.
func gpuClasses(r berth.Resources, hosts []berth.Host) []berth.DeviceClass {
	var classes []berth.DeviceClass

	if r.Device == berth.DeviceCPU {
		return nil
	}

	for _, h := range hosts {
		for _, dev := range h.Devices {
			if r.Device != berth.DeviceGPU && (h.State != berth.HostReady || dev.Problem != "") {
				continue
			}

			if class := dev.Class(); shares(r.GPUSharing, dev) && !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
	}

	return classes
}

// shares reports whether a device is shared as the sweep file wants it.
func shares(wanted string, dev berth.Device) bool {
	switch berth.SharingMode(wanted) {
	case berth.SharingMPS, berth.SharingTimeSlicing:
		return dev.Mode == berth.SharingMode(wanted)
	default: // auto; exclusive, which every mode can be
		return true
	}
}

// sizeOn is Sizes on one class of GPU.
func sizeOn(a Ask, class berth.DeviceClass, f *berth.Footprint, recent []berth.Host) (berth.Demand, bool) {
	hosts, largest := withClass(recent, class)
	host := a

	if a.Last != nil && a.Last.Device { // the host's memory was enough
		host.Last = nil
	}

	d, ok := Size(host, f, hosts)
	if a.Last != nil && a.Last.Device {
		d.MemoryBytes = max(d.MemoryBytes, a.Last.Demand.MemoryBytes)
	}

	d.Contexts = 1
	d.ExclusiveDevice = berth.SharingMode(a.Resources.GPUSharing) == berth.SharingExclusive

	return sizeDevice(a, d, f, largest), ok && deviceGrows(a.Last, largest)
}

// sizeDevice adds what an attempt needs of a GPU whose largest of the class has
// so many bytes to give.
func sizeDevice(a Ask, d berth.Demand, f *berth.Footprint, largest int64) berth.Demand {
	switch {
	case a.Resources.GPUMemory > 0:
		d.DeviceBytes = int64(a.Resources.GPUMemory)
	case Known(f) && f.DevicePeakBytes > 0:
		d.DeviceBytes = min(ReserveDevice(*f), largest)
	default:
		d.ExclusiveDevice = true
		d.DeviceBytes = max(largest/unmeasuredShare, granule)
	}

	last := a.Last
	if last == nil || !last.Device || last.Demand.DeviceBytes < d.DeviceBytes && !last.Demand.ExclusiveDevice {
		return d
	}

	d.DeviceBytes = min(max(Grow(last.Demand.DeviceBytes, last.PeakBytes), d.DeviceBytes), largest)
	d.ExclusiveDevice = d.ExclusiveDevice || last.Count == last.Max-1 || d.DeviceBytes == largest

	return d
}

// deviceGrows reports whether a class has more to try than what the trial ran out of.
func deviceGrows(last *berth.LastOOM, largest int64) bool {
	if last == nil || !last.Device {
		return true
	}

	return last.Count < last.Max && (!last.Demand.ExclusiveDevice || last.Demand.DeviceBytes < largest)
}

// withClass are the hosts that have a device of the class, and the most memory
// that one of these has to give.
func withClass(hosts []berth.Host, class berth.DeviceClass) (having []berth.Host, largest int64) {
	for _, h := range hosts {
		has := false

		for _, dev := range h.Devices {
			if dev.Class() == class {
				has, largest = true, max(largest, dev.CapacityBytes())
			}
		}

		if has {
			having = append(having, h)
		}
	}

	return having, largest
}
