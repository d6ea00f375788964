// Package cgroup reads from the kernel the usage of containers and their host:
// memory, processor time and out-of-memory kills, of cgroup version 1 and 2. It
// needs no daemon and costs a few file reads.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berthml/berth"
)

// ErrGone means that the cgroup does not exist any more: its container ended,
// and its memory was given back.
var ErrGone = errors.New("cgroup is gone")

// FS says where the kernel's trees are mounted. The zero value means /proc,
// /sys/fs/cgroup and /dev/kmsg.
type FS struct {
	Proc   string
	Cgroup string
	Kmsg   string // the kernel's log
}

// The kernel adds up memory.stat and cpu.stat over all CPUs at each reading, 5 times a second
// for each of a hundred containers. The total charge costs one number to read, and the rest
// changes little while that does not rise.
const (
	// wholeEvery is how old the rest of a sample may be.
	wholeEvery = 2 * time.Second
	// wholeFirst is for how long it is read each time: a short run has all its processor
	// time measured, and a longer one lacks a tenth at most.
	wholeFirst = 20 * time.Second
	// wholeRise of the charge is more than a quiet program's page tables and slabs.
	wholeRise = 1 << 20
)

// Meter reads one container's cgroup. It holds no file open; it is not safe
// for concurrent use.
type Meter struct {
	tree

	opened time.Time
	last   berth.MemorySample // read whole
	had    int64              // the charge then
}

// tree is a cgroup of one of the two versions.
type tree interface {
	// read takes a whole sample.
	read() (berth.MemorySample, error)
	// charged is the cgroup's charge in bytes, page cache included.
	charged() (int64, error)
	// readKills brings the kills of a sample up to date.
	readKills(sample *berth.MemorySample) error
}

// Open finds the cgroup of a running container. pid is its first process as
// Docker reports it: only the kernel knows where Docker's cgroup driver and its
// cgroup parent put the container. The path must name the container, so that a
// process that took over the number is not metered instead. Where the process is
// invisible (pid 0, or a worker in its own container) it looks in Docker's
// default places. Errors: ErrGone when there is none; invalid when this process
// is in another cgroup namespace.
func (f FS) Open(containerID string, pid int) (*Meter, error) {
	paths, err := f.paths(strconv.Itoa(pid))
	if err != nil && !isGone(err) {
		return nil, fmt.Errorf("finding the cgroup of container %q: %w", containerID, err)
	}

	if strings.Contains(paths.memory, containerID) {
		if err := paths.visible(); err != nil {
			return nil, fmt.Errorf("finding the cgroup of container %q: %w", containerID, err)
		}

		return f.meter(paths), nil
	}

	paths, found := f.guess(containerID)
	if !found {
		return nil, fmt.Errorf("finding the cgroup of container %q: %w", containerID, ErrGone)
	}

	return f.meter(paths), nil
}

// Read takes one sample. It may be up to two seconds old while the charge does not rise; its kills only while
// that does not fall either, as it does after a kill. ErrGone when the container has ended; the counts of the
// last sample are then final.
func (m *Meter) Read() (berth.MemorySample, error) {
	now := time.Now()
	sample := m.last

	charged, err := m.charged()

	switch {
	case err != nil:
	case m.changed(charged, now):
		if sample, err = m.read(); err == nil {
			sample.At = now
			m.last, m.had = sample, charged
		}
	case charged < m.had-wholeRise:
		err = m.readKills(&sample)
	}

	if isGone(err) {
		return berth.MemorySample{}, ErrGone
	}

	if err != nil {
		return berth.MemorySample{}, fmt.Errorf("reading cgroup: %w", err)
	}

	sample.At = now

	return sample, nil
}

// changed reports whether the working set may be another than that of the last sample. Near
// the limit it may take the place of page cache.
func (m *Meter) changed(charged int64, now time.Time) bool {
	return now.Sub(m.opened) < wholeFirst || now.Sub(m.last.At) >= wholeEvery || charged > m.had+wholeRise ||
		m.last.LimitBytes > 0 && charged > m.last.LimitBytes/8*7
}

func (f FS) meter(p paths) *Meter {
	if p.version == 1 {
		return &Meter{opened: time.Now(), tree: v1{
			memory: f.cgroup("memory", p.memory),
			cpu:    f.cgroup("cpuacct", p.cpu),
			quota:  f.cgroup("cpu", p.quota),
		}}
	}

	return &Meter{opened: time.Now(), tree: v2{dir: f.cgroup(p.memory)}}
}

// paths are where a process is in the hierarchies, from each one's root.
type paths struct {
	version int
	memory  string
	cpu     string // as memory in version 2
	quota   string // of the limit of cores; as memory in version 2
}

// paths reads /proc/<pid>/cgroup, lines of "number:controllers:path". A machine
// with both versions mounted has the memory controller in one of them.
func (f FS) paths(pid string) (paths, error) {
	data, err := os.ReadFile(f.proc(pid, "cgroup"))
	if err != nil {
		return paths{}, err
	}

	var v1, v2 paths

	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}

		if fields[0] == "0" && fields[1] == "" {
			v2 = paths{version: 2, memory: fields[2], cpu: fields[2], quota: fields[2]}
		}

		for controller := range strings.SplitSeq(fields[1], ",") {
			switch controller {
			case "memory":
				v1.version, v1.memory = 1, fields[2]
			case "cpuacct":
				v1.cpu = fields[2]
			case "cpu":
				v1.quota = fields[2]
			}
		}
	}

	if v1.version == 1 {
		return v1, nil
	}

	return v2, nil
}

// guess looks where Docker's two cgroup drivers put a container.
func (f FS) guess(containerID string) (paths, bool) {
	for _, path := range []string{
		"docker/" + containerID,
		"system.slice/docker-" + containerID + ".scope",
	} {
		if _, err := os.Stat(f.cgroup("memory", path)); err == nil {
			return paths{version: 1, memory: path, cpu: path, quota: path}, true
		}

		if _, err := os.Stat(f.cgroup(path, "memory.stat")); err == nil {
			return paths{version: 2, memory: path, cpu: path, quota: path}, true
		}
	}

	return paths{}, false
}

func (f FS) proc(elem ...string) string {
	if f.Proc == "" {
		f.Proc = "/proc"
	}

	return filepath.Join(append([]string{f.Proc}, elem...)...)
}

func (f FS) cgroup(elem ...string) string {
	if f.Cgroup == "" {
		f.Cgroup = "/sys/fs/cgroup"
	}

	return filepath.Join(append([]string{f.Cgroup}, elem...)...)
}

// isGone: opening a file of a removed cgroup fails with ENOENT, reading one
// that was open with ENODEV; a process that ended has ESRCH.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ESRCH)
}
