package forecast_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/forecast"
	"github.com/berthml/berth/internal/packing"
)

// BenchmarkStarts is one forecast for 200 requests, or the 1,000 that the API reads, that wait for
// 64 full hosts with 1,000 attempts. The bound is 50 ms.
func BenchmarkStarts(b *testing.B) {
	for _, bench := range []struct {
		name   string
		slots  func(i int) int64 // of each request
		waited time.Duration
		gpus   bool
		more   int
		asked  int // 0 = forecast.Most
	}{
		{name: "alike", slots: func(int) int64 { return 1 }},
		{name: "of all sizes", slots: func(i int) int64 { return 1 + int64(i%15) }},
		{name: "of all sizes, more to come", slots: func(i int) int64 { return 1 + int64(i%15) }, more: 10_000},
		{name: "of all sizes, overdue", slots: func(i int) int64 { return 1 + int64(i%15) }, waited: packing.DrainAfter},
		{name: "8 GPUs each", slots: func(i int) int64 { return 1 + int64(i%7) }, gpus: true},
		{name: "1,000 of all sizes", slots: func(i int) int64 { return 1 + int64(i%15) }, asked: 1000},
		{name: "1,000 that fit nowhere", slots: func(i int) int64 { return 17 + int64(i%15) }, asked: 1000},
	} {
		b.Run(bench.name, func(b *testing.B) {
			w := forecast.World{More: map[string]int{}}

			for i := range 64 {
				h := host(fmt.Sprintf("h%02d", i), 16)

				for j := range 8 {
					if bench.gpus {
						h.Devices = append(h.Devices, berth.Device{
							ID: fmt.Sprintf("GPU-%02d-%d", i, j), HostID: h.ID, Model: "GPU", Mode: berth.SharingTimeSlicing,
							MemoryBytes: 8 * gib, FreeBytes: 8 * gib, ReservedBytes: 8 * gib, MaxContexts: 48, Attempts: 1, ContextsReserved: 1,
						})
					}
				}

				w.Hosts = append(w.Hosts, h)
			}

			each := berth.RunTime{Known: true, Min: 5 * time.Minute, Max: 15 * time.Minute}
			for i := range 1000 {
				ran := time.Duration(i) * time.Second / 2
				hold(&w, i%64, fmt.Sprint("s", i%20), 1, berth.RunTime{Known: true, Min: max(each.Min-ran, 0), Max: each.Max - ran})

				if bench.gpus && i < 512 {
					a := &w.Running[i]
					a.DeviceID, a.Demand.DeviceBytes, a.Demand.Contexts = fmt.Sprintf("GPU-%02d-%d", i%64, i/64), 8*gib, 1
				}
			}

			for i := range cmp.Or(bench.asked, forecast.Most) {
				sweep := fmt.Sprint("s", i%20)
				r := request(sweep, i, bench.slots(i), each)
				r.Waited += bench.waited
				r.ShapeKey = fmt.Sprint(bench.slots(i))
				w.More[sweep] = bench.more

				if bench.gpus {
					d := demand(1)
					d.DeviceBytes, d.CPUMilli, d.MemoryBytes = bench.slots(i)*gib, 100, gib/8
					r.Demands = berth.Demands{"GPU": d}
				}

				w.Requests = append(w.Requests, r)
			}

			known := 0

			for b.Loop() {
				known = 0

				for _, s := range forecast.Starts(w) {
					if s.Unknown == "" {
						known++
					}
				}
			}

			b.ReportMetric(float64(known), "known")
		})
	}
}
