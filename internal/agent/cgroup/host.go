package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/berthml/berth"
)

// HostMemory is a machine's memory, and the part available without pushing any
// program out.
type HostMemory struct {
	TotalBytes     int64
	AvailableBytes int64
}

// HostMemory reads /proc/meminfo. Where this process itself lives under a
// memory limit (a container machine such as LXC) the tightest one counts.
func (f FS) HostMemory() (HostMemory, error) {
	values, err := f.meminfo("MemTotal", "MemAvailable")
	if err != nil {
		return HostMemory{}, fmt.Errorf("reading the machine's memory: %w", err)
	}

	host := HostMemory{TotalBytes: values[0], AvailableBytes: values[1]}

	own, err := f.paths("self")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return host, nil
		}

		return HostMemory{}, fmt.Errorf("reading this process' cgroup: %w", err)
	}

	for path := own.memory; ; path = filepath.Dir(path) {
		own.memory = path

		sample, err := f.memoryOf(own)
		if err == nil && sample.LimitBytes > 0 {
			host.TotalBytes = min(host.TotalBytes, sample.LimitBytes)
			host.AvailableBytes = min(host.AvailableBytes, max(sample.LimitBytes-sample.WorkingSetBytes, 0))
		}

		if path == "/" || path == "." || path == "" {
			return host, nil
		}
	}
}

// memoryOf samples the memory of a cgroup. The root of version 2 has no
// limit file; callers take that for no limit.
func (f FS) memoryOf(p paths) (berth.MemorySample, error) {
	if p.version == 1 {
		return v1{memory: f.cgroup("memory", p.memory)}.readMemory() // its processor time may be at another path
	}

	return v2{dir: f.cgroup(p.memory)}.read()
}

// meminfo returns values of /proc/meminfo in bytes.
func (f FS) meminfo(keys ...string) ([]int64, error) {
	data, err := os.ReadFile(f.proc("meminfo"))
	if err != nil {
		return nil, err
	}

	values := make([]int64, len(keys))

	for i, key := range keys {
		_, rest, found := bytes.Cut(append([]byte("\n"), data...), []byte("\n"+key+":"))
		fields := bytes.Fields(rest)

		if !found || len(fields) == 0 {
			return nil, berth.Errorf(berth.KindInternal, "no %s in meminfo", key)
		}

		kibibytes, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading %s in meminfo: %w", key, err)
		}

		values[i] = kibibytes << 10
	}

	return values, nil
}

// BootID identifies the machine's current boot: containers of another one are
// gone, and their memory with them.
func (f FS) BootID() (string, error) {
	data, err := os.ReadFile(f.proc("sys", "kernel", "random", "boot_id"))
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}

	return string(bytes.TrimSpace(data)), nil
}
