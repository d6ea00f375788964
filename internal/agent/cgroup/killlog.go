package cgroup

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/berthml/berth"
)

// KillLog finds in the kernel's log which containers its memory killer struck.
// It is the evidence that outlives the cgroup: when a container ends at once
// after the kill, Docker misses it (2 to 3 of 80 kills, Docker 20.10, cgroup
// version 1, five at a time on two cores). It is not complete either: the
// kernel writes at most ten such lines in 5 s, and the log is a ring.
//
// It is safe for concurrent use.
type KillLog struct {
	mu     sync.Mutex
	fd     int
	causes map[string]berth.OOMCause // by container id, of the last kill; a few per boot, never dropped
}

// killLine is the kernel's summary of a kill (Linux 4.19 and newer): the
// constraint, the fields between it and the victim's cgroup, and the victim. A
// container's id is 64 hex digits of the path.
var killLine = regexp.MustCompile(`oom-kill:constraint=(\w+),(\S*?)task_memcg=[^,\s]*?([0-9a-f]{64})`)

// causeOf separates a container at its own limit, whose cgroup the line names
// as the full one, from a full machine or a full cgroup above.
func causeOf(constraint, between, id string) berth.OOMCause {
	_, full, found := strings.Cut(between, "oom_memcg=")
	full, _, _ = strings.Cut(full, ",")

	if constraint == "CONSTRAINT_MEMCG" && found && strings.Contains(full, id) {
		return berth.OOMLimit
	}

	return berth.OOMMachine
}

// maxRecordBytes is above the kernel's longest record (8 KiB); a shorter buffer
// would fail to read it.
const maxRecordBytes = 16 << 10

// OpenKillLog opens the kernel's log, from its oldest line. It needs root or
// CAP_SYSLOG, and /dev/kmsg; without, fs.ErrPermission or fs.ErrNotExist.
func (f FS) OpenKillLog() (*KillLog, error) {
	path := f.Kmsg
	if path == "" {
		path = "/dev/kmsg"
	}

	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the kernel's log %q: %w", path, err)
	}

	return &KillLog{fd: fd, causes: map[string]berth.OOMCause{}}, nil
}

// Cause says whose memory ran out when a process of the container was killed;
// empty when the log has no such kill yet.
func (k *KillLog) Cause(containerID string) berth.OOMCause {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.drain()

	return k.causes[containerID]
}

// Close closes the log.
func (k *KillLog) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()

	return syscall.Close(k.fd)
}

// drain reads the records since the last call, without waiting: a read returns
// one record, EAGAIN at the end, and EPIPE where the ring was faster.
func (k *KillLog) drain() {
	record := make([]byte, maxRecordBytes)

	for {
		n, err := syscall.Read(k.fd, record)

		switch {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EINTR):
			continue
		case err != nil, n <= 0:
			return
		}

		for _, match := range killLine.FindAllSubmatch(record[:n], -1) {
			id := string(match[3])
			k.causes[id] = causeOf(string(match[1]), string(match[2]), id)
		}
	}
}
