package packing_test

import (
	"fmt"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

const gib = 1 << 30

// model is that of all GPUs of a test.
const model = "GPU"

// needs is the demands of an attempt that uses a GPU if it asks for GPU memory.
func needs(d berth.Demand) berth.Demands {
	if d.DeviceBytes > 0 {
		return berth.Demands{model: d}
	}

	return berth.Demands{berth.ClassCPU: d}
}

// need is the demand of a request with a single one.
func need(r packing.Request) berth.Demand {
	for _, d := range r.Demands {
		return d
	}

	return berth.Demand{}
}

// but is a request that needs something else.
func but(r packing.Request, change func(d *berth.Demand)) packing.Request {
	d := need(r)
	change(&d)
	r.Demands = needs(d)

	return r
}

// host is an idle one without headroom.
func host(id string, cores, gibibytes int64) berth.Host {
	return berth.Host{
		ID: id, Name: "host-" + id, State: berth.HostReady, CPUMilli: cores * 1000,
		MemoryBytes: gibibytes * gib, MemoryFreeBytes: gibibytes * gib,
	}
}

// withDevices gives a host idle GPUs.
func withDevices(h berth.Host, n int, gibibytes int64) berth.Host {
	h.Devices = make([]berth.Device, n)
	for i := range h.Devices {
		h.Devices[i] = berth.Device{
			ID: fmt.Sprintf("GPU-%s-%d", h.ID, i), HostID: h.ID, Model: model, Mode: berth.SharingTimeSlicing, MemoryBytes: gibibytes * gib, FreeBytes: gibibytes * gib,
			MaxContexts: 48,
		}
	}

	return h
}
