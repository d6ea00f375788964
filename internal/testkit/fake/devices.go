package fake

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthml/berth"
)

// registerDevices stores the GPUs that a worker found. Errors: conflict when
// another host has one of them.
func (l *Ledger) registerDevices(h *berth.Host) error {
	for _, d := range h.Devices {
		old := l.devices[d.ID]
		if old == nil || old.HostID == h.ID {
			continue
		}

		served := old.lostAt.IsZero() && l.now().Sub(l.hosts[old.HostID].LastSeenAt) <= berth.HostLostAfter
		if served || l.booked(old.Device).Attempts > 0 {
			return berth.Errorf(berth.KindConflict, "host %q has GPU %s", l.hosts[old.HostID].Name, d.ID)
		}
	}

	for _, d := range l.devices {
		if d.HostID == h.ID && d.lostAt.IsZero() {
			d.lostAt = l.now()
		}
	}

	for _, d := range h.Devices {
		old := l.devices[d.ID]
		if old != nil && old.Mode == berth.SharingMPS && l.booked(old.Device).Attempts > 0 {
			d.Mode = old.Mode // its attempts go on as they are
		}

		if old != nil {
			d.CordonedAt, d.CordonReason = old.CordonedAt, old.CordonReason
		}

		d.HostID = h.ID
		l.devices[d.ID] = &device{Device: d}
	}

	h.Devices = nil

	return nil
}

// CordonDevice keeps a GPU from taking new attempts, until ReadyDevice. Errors: not_found.
func (l *Ledger) CordonDevice(ctx context.Context, id, reason string) error {
	return l.onDevice(ctx, id, func(d *device) { d.CordonedAt, d.CordonReason = new(l.now()), reason })
}

// ReadyDevice lets a GPU take attempts again. Errors: not_found.
func (l *Ledger) ReadyDevice(ctx context.Context, id string) error {
	return l.onDevice(ctx, id, func(d *device) { d.CordonedAt, d.CordonReason = nil, "" })
}

func (l *Ledger) onDevice(ctx context.Context, id string, change func(*device)) error {
	return l.do(ctx, "changing GPU "+id, func() error {
		d := l.devices[id]
		if d == nil {
			return berth.Errorf(berth.KindNotFound, "no GPU %s", id)
		}

		change(d)

		return nil
	})
}

func (l *Ledger) touchDevices(hostID string, devices []berth.DeviceFree) {
	for _, free := range devices {
		if d := l.devices[free.ID]; d != nil && d.HostID == hostID {
			d.FreeBytes, d.Problem, d.MPSProblem = free.FreeBytes, free.Problem, free.MPSProblem
		}
	}
}

// booked is a device with what its leases hold.
func (l *Ledger) booked(d berth.Device) berth.Device {
	d.ReservedBytes, d.ContextsReserved, d.Attempts, d.ActivityReserved, d.Exclusive = 0, 0, 0, 0, false

	for _, lease := range l.leases {
		if lease.DeviceID != d.ID || lease.State == berth.LeaseReleased {
			continue
		}

		d.ReservedBytes += lease.Demand.DeviceBytes
		d.ContextsReserved += max(lease.Demand.Contexts, 1)
		d.Attempts++
		d.ActivityReserved += lease.Demand.DeviceActivity
		d.Exclusive = d.Exclusive || lease.Demand.ExclusiveDevice
	}

	return d
}

// devicesOf are the GPUs of a host by id: GPUs that its worker finds, or found
// until a while ago, and GPUs with leases.
func (l *Ledger) devicesOf(hostID string) []berth.Device {
	devices := []berth.Device{}

	for _, d := range l.devices {
		if d.HostID != hostID {
			continue
		}

		booked := l.booked(d.Device)
		if !d.lostAt.IsZero() {
			booked.Problem = berth.NotHandedOut
		}

		if d.lostAt.IsZero() || l.now().Sub(d.lostAt) <= berth.HostGrace || booked.Attempts > 0 {
			devices = append(devices, booked)
		}
	}

	slices.SortFunc(devices, func(a, b berth.Device) int { return cmp.Compare(a.ID, b.ID) })

	return devices
}

// deviceHolds is the devices' CHECK, for a batch's demands on one.
func (l *Ledger) deviceHolds(id string, more []berth.Demand) bool {
	d := l.booked(l.devices[id].Device)
	for _, demand := range more {
		d.ReservedBytes += demand.DeviceBytes
		d.ContextsReserved += max(demand.Contexts, 1)
	}

	return d.ReservedBytes <= d.CapacityBytes() && d.ContextsReserved <= d.MaxContexts
}
