package cgroup

import (
	"path/filepath"
	"time"

	"github.com/berthml/berth"
)

// v2 reads cgroup version 2. All its counts include descendants.
type v2 struct {
	dir string
}

func (c v2) read() (berth.MemorySample, error) {
	var sample berth.MemorySample

	// "kernel" exists since Linux 5.18; before, its large parts stand alone.
	stat, err := readKeys(filepath.Join(c.dir, "memory.stat"),
		"anon", "shmem", "kernel", "kernel_stack", "pagetables", "slab")
	if err != nil {
		return sample, err
	}

	kernel := stat[2]
	if kernel == 0 {
		kernel = stat[3] + stat[4] + stat[5]
	}

	sample.WorkingSetBytes = stat[0] + stat[1] + kernel

	if err := c.readKills(&sample); err != nil {
		return sample, err
	}

	sample.LimitBytes, err = readInt(filepath.Join(c.dir, "memory.max")) // "max" reads as 0
	if err != nil {
		return sample, err
	}

	sample.HighWaterBytes, err = readOptional(filepath.Join(c.dir, "memory.peak")) // since Linux 5.19
	if err != nil {
		return sample, err
	}

	cpu, err := readKeys(filepath.Join(c.dir, "cpu.stat"), "usage_usec", "nr_periods", "nr_throttled")
	if err != nil {
		return sample, err
	}

	sample.CPU = time.Duration(cpu[0]) * time.Microsecond
	sample.Periods, sample.Throttled = cpu[1], cpu[2]

	return sample, nil
}

func (c v2) charged() (int64, error) { return readInt(filepath.Join(c.dir, "memory.current")) }

func (c v2) readKills(sample *berth.MemorySample) error {
	events, err := readKeys(filepath.Join(c.dir, "memory.events"), "oom_kill", "oom")
	if err == nil {
		sample.OOMKills, sample.BelowLimit = int(events[0]), events[1] == 0
	}

	return err
}
