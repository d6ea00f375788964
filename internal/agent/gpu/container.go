package gpu

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// hexRun finds runs of hexadecimal digits; a container's id is one of exactly 64.
var hexRun = regexp.MustCompile(`[0-9a-f]+`)

// ContainerOf returns the id of the container that a process of the machine runs
// in, 64 hexadecimal digits: a driver names processes by PID alone. proc is the
// machine's /proc (os.DirFS("/proc") in its PID namespace). Where containers are
// nested it returns the innermost. ok is false when the process runs in no
// container, has ended, or cannot be seen.
//
// The id is in the path of the process' cgroup, by Docker's driver:
//
//	0::/system.slice/docker-<id>.scope       systemd, cgroup version 2
//	0::/docker/<id>                          cgroupfs
//	0::/../docker-<id>.scope                 seen from another cgroup namespace
//	5:memory:/docker/<id>                    cgroup version 1
func ContainerOf(proc fs.FS, pid int) (id string, ok bool) {
	if pid <= 0 {
		return "", false
	}

	data, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", false
	}

	for line := range strings.Lines(string(data)) {
		// Number, controllers, path. A path may hold further colons.
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}

		for _, run := range hexRun.FindAllString(fields[2], -1) {
			if len(run) == 64 {
				id = run
			}
		}

		if id != "" {
			return id, true
		}
	}

	return "", false
}

// isMPSServer reports whether a process of the machine is a server of NVIDIA's MPS,
// which is on each card that it shares (66 MiB; one H200, 2026-11-21).
func isMPSServer(proc fs.FS, pid int) bool {
	const name = "nvidia-cuda-mps" // of nvidia-cuda-mps-server the kernel keeps 15 characters

	comm, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "comm"))

	return err == nil && strings.TrimSpace(string(comm)) == name
}
