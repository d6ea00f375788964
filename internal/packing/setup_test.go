package packing_test

import (
	"fmt"

	"github.com/berthml/berth"
)

const gib = 1 << 30

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
			ID: fmt.Sprintf("GPU-%s-%d", h.ID, i), HostID: h.ID, MemoryBytes: gibibytes * gib, FreeBytes: gibibytes * gib,
			MaxContexts: 48,
		}
	}

	return h
}
