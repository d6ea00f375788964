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
}

func (c v1) read() (berth.MemorySample, error) {
	var sample berth.MemorySample

	// "total" includes descendants; rss is anonymous memory with its huge
	// pages; shmem (tmpfs, /dev/shm) is counted in the cache but cannot be
	// dropped.
	stat, err := readKeys(filepath.Join(c.memory, "memory.stat"), "total_rss", "total_shmem")
	if err != nil {
		return sample, err
	}

	sample.WorkingSetBytes = stat[0] + stat[1]

	kernel, err := readInt(filepath.Join(c.memory, "memory.kmem.usage_in_bytes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // some kernels are built without
		return sample, err
	}

	sample.WorkingSetBytes += kernel

	control, err := readKeys(filepath.Join(c.memory, "memory.oom_control"), "oom_kill")
	if err != nil {
		return sample, err
	}

	sample.OOMKills = int(control[0])

	limit, err := readInt(filepath.Join(c.memory, "memory.limit_in_bytes"))
	if err != nil {
		return sample, err
	}

	if limit < unlimited {
		sample.LimitBytes = limit
	}

	nanoseconds, err := readInt(filepath.Join(c.cpu, "cpuacct.usage"))
	if err != nil {
		return sample, err
	}

	sample.CPU = time.Duration(nanoseconds)

	return sample, nil
}
