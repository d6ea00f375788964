package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
)

// unlimited: version 1 says "no limit" with the largest number of whole pages,
// a little below 2^63.
const unlimited = 1 << 62

// v1 reads cgroup version 1.
type v1 struct {
	memory string // directory in the memory hierarchy
	cpu    string // directory in the cpuacct hierarchy
	quota  string // directory in the cpu hierarchy, often the same one
}

func (c v1) read() (berth.MemorySample, error) {
	sample, err := c.readMemory()
	if err != nil {
		return sample, err
	}

	if err := c.readKills(&sample); err != nil {
		return sample, err
	}

	nanoseconds, err := readInt(filepath.Join(c.cpu, "cpuacct.usage"))
	if err != nil {
		return sample, err
	}

	sample.CPU = time.Duration(nanoseconds)

	periods, err := readKeys(filepath.Join(c.quota, "cpu.stat"), "nr_periods", "nr_throttled")
	if errors.Is(err, fs.ErrNotExist) { // some kernels are built without limits of cores
		return sample, nil
	}

	if err != nil {
		return sample, err
	}

	sample.Periods, sample.Throttled = periods[0], periods[1]

	return sample, nil
}

// readMemory reads the working set, the limit and how near the cgroup came to it.
func (c v1) readMemory() (sample berth.MemorySample, err error) {
	// "total" includes descendants; rss is anonymous memory with its huge
	// pages; shmem (tmpfs, /dev/shm) is counted in the cache but cannot be
	// dropped.
	stat, err := readKeys(filepath.Join(c.memory, "memory.stat"), "total_rss", "total_shmem")
	if err != nil {
		return sample, err
	}

	sample.WorkingSetBytes = stat[0] + stat[1]

	kernel, err := readOptional(filepath.Join(c.memory, "memory.kmem.usage_in_bytes")) // some kernels are built without
	if err != nil {
		return sample, err
	}

	sample.WorkingSetBytes += kernel

	limit, err := readInt(filepath.Join(c.memory, "memory.limit_in_bytes"))
	if err != nil {
		return sample, err
	}

	if limit < unlimited {
		sample.LimitBytes = limit
	}

	// Not memory.failcnt: it stays 0 after a kill at the limit (measured, Linux
	// 6.18), while the high-water mark is the limit then.
	sample.HighWaterBytes, err = readOptional(filepath.Join(c.memory, "memory.max_usage_in_bytes"))
	sample.BelowLimit = sample.HighWaterBytes > 0 && sample.LimitBytes > 0 &&
		!berth.NearMemoryLimit(sample.HighWaterBytes, sample.LimitBytes)

	return sample, err
}

func (c v1) charged() (int64, error) {
	return readInt(filepath.Join(c.memory, "memory.usage_in_bytes"))
}

func (c v1) readKills(sample *berth.MemorySample) error {
	control, err := readKeys(filepath.Join(c.memory, "memory.oom_control"), "oom_kill")
	if err == nil {
		sample.OOMKills = int(control[0])
	}

	return err
}
