package packing

import (
	"fmt"

	"github.com/berthml/berth"
)

// fitsHost checks every hard constraint of a host, the ones that can never be
// met first, and returns the first that is broken.
func fitsHost(h *berth.Host, d berth.Demand, drained bool) (berth.Rejection, bool) {
	total := capacity(h)

	switch {
	case d.MemoryBytes > total:
		return reject(h, "", berth.DimensionMemory, d.MemoryBytes, total, true), false
	case d.CPUMilli > h.CPUMilli:
		return reject(h, "", berth.DimensionCPU, d.CPUMilli, h.CPUMilli, true), false
	case h.State != berth.HostReady:
		return reject(h, "", berth.DimensionState, 0, 0, false), false
	case drained:
		return berth.Rejection{
			HostID: h.ID, HostName: h.Name, Dimension: berth.DimensionState,
			Reason: "host " + h.Name + ": kept free for an attempt that has waited longer",
		}, false
	case h.Exclusive || (d.Exclusive && d.DeviceBytes == 0 && h.Attempts > 0):
		return reject(h, "", berth.DimensionExclusive, 0, int64(h.Attempts), false), false
	case h.MemoryReservedBytes+d.MemoryBytes > total:
		return reject(h, "", berth.DimensionMemory, d.MemoryBytes, total-h.MemoryReservedBytes, false), false
	case h.CPUMilliReserved+d.CPUMilli > h.CPUMilli:
		return reject(h, "", berth.DimensionCPU, d.CPUMilli, h.CPUMilli-h.CPUMilliReserved, false), false
	case h.MaxAttempts > 0 && h.Attempts >= h.MaxAttempts:
		return reject(h, "", berth.DimensionAttempts, 1, 0, false), false
	case h.MemoryReservedBytes+d.MemoryBytes > h.MemoryFreeBytes:
		return reject(h, "", berth.DimensionFreeMemory, d.MemoryBytes, max(h.MemoryFreeBytes-h.MemoryReservedBytes, 0), false), false
	default:
		return berth.Rejection{}, true
	}
}

// fitsDevice is fitsHost for one GPU.
func fitsDevice(h *berth.Host, dev *berth.Device, d berth.Demand) (berth.Rejection, bool) {
	total := dev.MemoryBytes - dev.HeadroomBytes
	contexts := max(d.Contexts, 1)

	switch {
	case d.DeviceBytes > total:
		return reject(h, dev.ID, berth.DimensionDeviceBytes, d.DeviceBytes, total, true), false
	case d.Exclusive && dev.ContextsReserved > 0:
		return reject(h, dev.ID, berth.DimensionExclusive, 0, int64(dev.ContextsReserved), false), false
	case dev.ReservedBytes+d.DeviceBytes > total:
		return reject(h, dev.ID, berth.DimensionDeviceBytes, d.DeviceBytes, total-dev.ReservedBytes, false), false
	case dev.ReservedBytes+d.DeviceBytes > dev.FreeBytes:
		return reject(h, dev.ID, berth.DimensionFreeMemory, d.DeviceBytes, max(dev.FreeBytes-dev.ReservedBytes, 0), false), false
	case dev.ContextsReserved+contexts > dev.MaxContexts:
		return reject(h, dev.ID, berth.DimensionContexts, int64(contexts), int64(dev.MaxContexts-dev.ContextsReserved), false), false
	default:
		return berth.Rejection{}, true
	}
}

func reject(h *berth.Host, deviceID string, dim berth.Dimension, needed, free int64, never bool) berth.Rejection {
	return berth.Rejection{
		HostID: h.ID, HostName: h.Name, DeviceID: deviceID,
		Dimension: dim, Needed: needed, Free: free, Never: never,
	}
}

// Explain returns the rejection in plain words. It is apart from the decision
// because only what is stored needs a text.
func Explain(r berth.Rejection) string {
	if r.Reason != "" {
		return r.Reason
	}

	where := "host " + r.HostName
	if r.DeviceID != "" {
		where += ", GPU " + r.DeviceID
	}

	return where + ": " + explainDimension(r)
}

func explainDimension(r berth.Rejection) string {
	free := "free"
	if r.Never {
		free = "there at all"
	}

	switch r.Dimension {
	case berth.DimensionState:
		return "takes no attempts now (draining, or its worker is silent)"
	case berth.DimensionMemory:
		return fmt.Sprintf("needs %s of memory, %s %s", mib(r.Needed), mib(r.Free), free)
	case berth.DimensionFreeMemory:
		return fmt.Sprintf("needs %s of memory, but programs outside Berth leave %s", mib(r.Needed), mib(r.Free))
	case berth.DimensionCPU:
		return fmt.Sprintf("needs %s cores, %s %s", cores(r.Needed), cores(r.Free), free)
	case berth.DimensionAttempts:
		return "already runs as many attempts as it may"
	case berth.DimensionDevice:
		return "has no GPU"
	case berth.DimensionDeviceBytes:
		return fmt.Sprintf("needs %s of GPU memory, %s %s", mib(r.Needed), mib(r.Free), free)
	case berth.DimensionContexts:
		return fmt.Sprintf("needs %d GPU context(s), %d free", r.Needed, r.Free)
	case berth.DimensionExclusive:
		return "one of the attempts must be alone there"
	case berth.DimensionSweep:
		return "the sweep's own limit"
	default:
		return string(r.Dimension)
	}
}

// mib renders bytes as people read them, such as 1,310 MiB.
func mib(bytes int64) string {
	n := bytes / (1 << 20)
	if n < 1000 {
		return fmt.Sprintf("%d MiB", n)
	}

	return fmt.Sprintf("%d,%03d MiB", n/1000, n%1000)
}

func cores(milli int64) string {
	return fmt.Sprintf("%g", float64(milli)/1000)
}
