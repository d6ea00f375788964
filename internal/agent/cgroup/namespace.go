package cgroup

import (
	"strings"

	"github.com/berthml/berth"
)

// CheckNamespace reports whether this process sees the machine's cgroups. If
// Docker gave it its own cgroup namespace, the kernel writes the path of every
// other process relative to that namespace, as "/../docker-….scope": below
// /sys/fs/cgroup there is no such directory, and no container could be
// measured. It asks about process 1, which without --pid host is in the same
// namespace. Errors: invalid, with the setting.
func (f FS) CheckNamespace() error {
	first, err := f.paths("1")
	if err != nil {
		return nil //nolint:nilerr // hidden from us: nothing to tell
	}

	return first.visible()
}

// visible refuses a path that leads out of the cgroup namespace. Errors: invalid.
func (p paths) visible() error {
	for _, path := range []string{p.memory, p.cpu} {
		if path == "/.." || strings.HasPrefix(path, "/../") {
			return berth.Errorf(berth.KindInvalid, "the cgroup %q is outside of this process' cgroup namespace, "+
				"so no container can be measured: run Berth's worker in the host's cgroup namespace "+
				"(`cgroup: host` in docker-compose.yml, or `docker run --cgroupns host`)", path)
		}
	}

	return nil
}
