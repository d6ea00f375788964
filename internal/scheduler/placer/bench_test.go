package placer

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/berthml/berth"
)

// The cost of a round with 10,000 requests of 20 sweeps, with 20 or 10,000 shapes,
// and 64 hosts with 8 GPUs each, beside the cost of packing.
func BenchmarkRound(b *testing.B) {
	for _, shapes := range []int{20, queueLimit} {
		b.Run(fmt.Sprintf("%d shapes", shapes), func(b *testing.B) {
			queue := berth.Queue{Sweeps: map[string]berth.SweepUse{}}

			for i := range queueLimit {
				w := onGPU(fmt.Sprint(i), fmt.Sprint("shape", i%shapes))
				w.SweepID = fmt.Sprint("sweep", i%20)
				queue.Waiting = append(queue.Waiting, w)
				queue.Sweeps[w.SweepID] = berth.SweepUse{State: berth.SweepRunning, Template: w.SweepID}
			}

			for i := range 64 {
				h := gpuHost()
				h.ID, h.Devices = fmt.Sprint("host", i), nil

				for j := range 8 {
					dev := gpuHost().Devices[0]
					dev.ID, dev.HostID = fmt.Sprint("GPU-", i, "-", j), h.ID
					h.Devices = append(h.Devices, dev)
				}

				queue.Hosts = append(queue.Hosts, h)
			}

			p := New(nil, slog.New(slog.DiscardHandler))
			_, groups := p.requests(queue)

			b.Run("advice", func(b *testing.B) {
				for b.Loop() {
					newAdviser(queue, groups, &drains{}, false).advise()
				}
			})
			b.Run("sizes", func(b *testing.B) {
				for b.Loop() {
					p.requests(queue)
				}
			})
		})
	}
}
