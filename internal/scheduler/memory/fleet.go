package memory

import (
	"slices"

	"github.com/berthml/berth"
)

// Fleet is the GPUs of the hosts, read once for many trials.
type Fleet struct {
	hosts   []berth.Host
	kinds   []kind // in the order of the hosts
	classes map[berth.DeviceClass]*class
}

// kind is one way to share GPUs of one class, and whether one of them takes attempts.
type kind struct {
	class berth.DeviceClass
	mode  berth.SharingMode

	now, soon             bool // it takes them, or will in a moment
	insistNow, insistSoon bool // the same for requests that insist on the mode, whatever keeps them away
}

// class are the hosts that have GPUs of a class, and the most memory that one of these
// has to give.
type class struct {
	hosts   []berth.Host
	largest int64
}

// NewFleet looks at hosts.
func NewFleet(hosts []berth.Host) *Fleet {
	f := &Fleet{hosts: hosts, classes: make(map[berth.DeviceClass]*class)}
	at := make(map[kind]int)

	for i := range hosts {
		h := &hosts[i]
		mine := make(map[berth.DeviceClass]bool)

		for j := range h.Devices {
			dev := &h.Devices[j]

			for _, mode := range dev.Modes() {
				of := dev.ClassBy(mode)
				key := kind{class: of, mode: mode}

				k, known := at[key]
				if !known {
					k = len(f.kinds)
					at[key], f.kinds = k, append(f.kinds, key)
				}

				f.kinds[k].see(h, dev)

				c := f.classes[of]
				if c == nil {
					c = &class{}
					f.classes[of] = c
				}

				c.largest = max(c.largest, dev.CapacityBytes())

				if !mine[of] {
					mine[of], c.hosts = true, append(c.hosts, *h)
				}
			}
		}
	}

	return f
}

// see notes whether a GPU of the kind takes attempts.
func (k *kind) see(h *berth.Host, dev *berth.Device) {
	ready, soon := h.State == berth.HostReady, h.State == berth.HostReady || h.Passing()
	takes, insists := dev.ProblemBy(k.mode) == "", dev.Refusal() == ""
	k.now = k.now || ready && takes
	k.soon = k.soon || soon && (takes || dev.Passing())
	k.insistNow = k.insistNow || ready && insists
	k.insistSoon = k.insistSoon || soon && (insists || dev.Passing())
}

// of are the hosts of a class, and its largest GPU.
func (f *Fleet) of(name berth.DeviceClass) (hosts []berth.Host, largest int64) {
	if c := f.classes[name]; c != nil {
		return c.hosts, c.largest
	}

	return nil, 0
}

// classesEver are the classes of GPUs that a trial could use, also while they take no
// attempts.
func (f *Fleet) classesEver(a Ask) []berth.DeviceClass {
	return f.usable(a, func(kind) bool { return true })
}

// classesNow are the classes that a trial can use now, or else in a moment. What insists
// on a GPU, or on MPS, waits for it.
func (f *Fleet) classesNow(a Ask) []berth.DeviceClass {
	if a.Resources.Device == berth.DeviceGPU {
		return f.classesEver(a)
	}

	insists := berth.SharingMode(a.Resources.GPUSharing) == berth.SharingMPS

	if now := f.usable(a, func(k kind) bool { return k.now || insists && k.insistNow }); len(now) > 0 {
		return now
	}

	return f.usable(a, func(k kind) bool { return k.soon || insists && k.insistSoon })
}

// usable are the classes of the kinds that count.
func (f *Fleet) usable(a Ask, counts func(kind) bool) []berth.DeviceClass {
	var found []berth.DeviceClass

	if a.Resources.Device == berth.DeviceCPU {
		return nil
	}

	for _, k := range f.kinds {
		if a.shares(k.mode) && counts(k) && !slices.Contains(found, k.class) {
			found = append(found, k.class)
		}
	}

	return found
}
