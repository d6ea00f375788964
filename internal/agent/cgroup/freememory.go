package cgroup

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// inspectFor bounds how long one reading asks Docker about containers that it
// has not seen before.
const inspectFor = 5 * time.Second

// FreeMemory reads the part of a machine's memory that programs outside Berth
// leave.
type FreeMemory struct {
	Kernel  FS
	Inspect func(ctx context.Context, id string) (berth.Container, error) // by Docker
	Log     *slog.Logger

	mu     sync.Mutex
	meters map[string]*Meter // by container; nil = it could not be measured, which was logged
}

// Read returns the memory that programs outside Berth leave: the available
// memory plus the use of our own containers, each by its own  list is
// Docker's list, which names containers of every state.
func (f *FreeMemory) Read(ctx context.Context, host berth.Host, list []berth.Container) int64 {
	memory, err := f.Kernel.HostMemory()
	if err != nil {
		f.Log.Warn("reading the machine's memory", "error", err)

		return host.MemoryFreeBytes
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.follow(ctx, list)

	free := memory.AvailableBytes

	for id, meter := range f.meters {
		if meter == nil {
			continue
		}

		if sample, err := meter.Read(); err == nil {
			free += sample.WorkingSetBytes
		} else {
			delete(f.meters, id) // it ended, or is looked up again
		}
	}

	return min(free, host.MemoryBytes)
}

// follow opens meters for the containers that run now. A list does not say where
// a container's cgroup is: its first process does, which Docker knows.
func (f *FreeMemory) follow(ctx context.Context, list []berth.Container) {
	ctx, cancel := context.WithTimeout(ctx, inspectFor)
	defer cancel()

	known := f.meters
	f.meters = make(map[string]*Meter, len(list))

	for _, c := range list {
		if c.State != berth.ContainerRunning {
			continue
		}

		meter, logged := known[c.ID]
		if meter == nil {
			seen, err := f.Inspect(ctx, c.ID)
			if err != nil || seen.State != berth.ContainerRunning {
				continue // it ended, or Docker does not answer: the next reading asks again
			}

			if meter, err = f.Kernel.Open(seen.ID, seen.PID); err != nil && !logged {
				f.Log.Warn("cannot measure a container: its memory counts as that of programs outside Berth",
					"attempt", c.AttemptID, "error", err)
			}
		}

		f.meters[c.ID] = meter
	}
}
