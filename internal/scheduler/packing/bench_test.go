package packing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// BenchmarkDecide is one decision of the placer over a full queue: 10,000
// requests of 20 sweeps and 64 hosts.
func BenchmarkDecide(b *testing.B) {
	const requests, hosts = 10_000, 64

	same := func(int) berth.Demand { return berth.Demand{MemoryBytes: gib, CPUMilli: 1000} }
	distinct := func(i int) berth.Demand {
		return berth.Demand{MemoryBytes: gib + int64(i)<<10, CPUMilli: 500 + int64(i%10)*50}
	}
	onDevice := func(i int) berth.Demand {
		return berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib + int64(i)<<10, Contexts: 1}
	}

	full := func(h berth.Host) berth.Host {
		h.CPUMilliReserved = h.CPUMilli - 100
		h.MemoryReservedBytes = h.MemoryBytes - gib/2

		return h
	}
	fullDevices := func(h berth.Host) berth.Host {
		for i := range h.Devices {
			h.Devices[i].ReservedBytes = h.Devices[i].MemoryBytes - gib/2
		}

		return h
	}

	for _, bench := range []struct {
		name   string
		host   berth.Host // every one is like it
		demand func(i int) berth.Demand
		waited time.Duration
	}{
		{name: "same demand, full hosts", host: full(host("", 64, 64)), demand: same},
		{name: "same demand, half placeable", host: host("", 78, 78), demand: same},
		{name: "distinct demands, full hosts", host: full(host("", 64, 64)), demand: distinct},
		{name: "distinct demands, half placeable", host: host("", 78, 78), demand: distinct},
		{name: "distinct demands, all overdue", host: full(host("", 64, 64)), demand: distinct, waited: packing.DrainAfter},
		{name: "8 GPUs each, full", host: fullDevices(withDevices(host("", 64, 1024), 8, 12)), demand: onDevice},
		{name: "8 GPUs each, half placeable", host: withDevices(host("", 64, 1024), 8, 12), demand: onDevice},
	} {
		b.Run(bench.name, func(b *testing.B) {
			fleet := make([]berth.Host, hosts)
			for i := range fleet {
				fleet[i] = bench.host
				fleet[i].ID = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
				fleet[i].Name = fmt.Sprintf("node-%d", i)
			}

			queue := make([]packing.Request, requests)
			for i := range queue {
				queue[i] = packing.Request{
					AttemptID: fmt.Sprintf("10000000-0000-0000-0000-%012d", i), SweepID: fmt.Sprint(i % 20), Number: i / 20,
					Demands: needs(bench.demand(i)), Expected: time.Minute, Waited: bench.waited + time.Duration(i%500)*time.Second,
				}
			}

			placed := 0

			b.ReportAllocs()

			for b.Loop() {
				placed = 0

				for _, d := range packing.Decide(fleet, nil, queue) {
					if d.Placed {
						placed++
					}
				}
			}

			b.ReportMetric(float64(placed), "placed")
		})
	}
}
