package docker

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"github.com/berthml/berth"
)

const (
	openFiles     = 16384   // a trial opens tens; more than the daemon's own limit fails in a nested Docker
	cpuPeriod     = 100_000 // µs; the kernel's default
	sharesPerCore = 1024    // Docker's default weight of a container
	minShares     = 2       // the kernel's minimum
)

const (
	// minPids is the least number of processes and threads that a container may have: a
	// TensorFlow trial on two CPUs has 20 to 40, and its data loaders a few each.
	minPids = 512
	// pidsPerCPU bounds them on a large machine. TensorFlow and XLA size pools by the
	// machine's CPUs, not by the cores of the container: fit and validation of Keras take 4
	// threads per CPU, with jit_compile 5 (measured with 256 simulated CPUs). The rest is for
	// programs with a few of those, and a fork bomb still stops here.
	pidsPerCPU = 16
)

// maxPids is how many processes and threads a container may have on a machine with so
// many CPUs; 0 = unknown.
func maxPids(cpus int) int64 { return max(minPids, pidsPerCPU*int64(cpus)) }

// overrides are variables an image may set and Berth decides. CUDA's official
// images ask for every GPU; "void" gives none where NVIDIA's runtime is the
// default one.
var overrides = map[string]string{
	"NVIDIA_VISIBLE_DEVICES":     "void",
	"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
}

// containerConfig is the part of a container that travels with its image.
// Command is the whole argv: an image's entrypoint could be a shell.
func containerConfig(l berth.Launch, image berth.Image, user string, labels map[string]string) *container.Config {
	env := maps.Clone(overrides)
	maps.Copy(env, l.Defaults)

	for _, line := range image.Env { // the image's own values stay
		name, _, _ := strings.Cut(line, "=")
		if _, ours := overrides[name]; !ours {
			delete(env, name)
		}
	}

	maps.Copy(env, l.Environment)

	if l.Shim != nil {
		env[pythonPath] = pathBehind(l.Shim.Target, env, image.Env)
		env[shimRecords] = l.Shim.Records
	}

	lines := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines = append(lines, name+"="+env[name])
	}

	return &container.Config{
		Hostname:    "trial",
		User:        user,
		Image:       l.Image,
		Entrypoint:  l.Command,
		WorkingDir:  l.Workdir,
		Env:         lines,
		Labels:      labels,
		StopSignal:  "SIGTERM",
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
}

// pythonPath is where Python looks for modules before its own: directories,
// separated by colons.
const pythonPath = "PYTHONPATH"

// shimRecords tells the shim where to write. Without it the shim does nothing.
const shimRecords = "TRIAL_SHIM_FILE"

// pathBehind keeps PYTHONPATH of the user, else of the image, behind a directory. A
// user's empty value removes the image's.
func pathBehind(directory string, env map[string]string, imageEnv []string) string {
	old, set := env[pythonPath]

	for _, line := range imageEnv {
		if name, value, _ := strings.Cut(line, "="); name == pythonPath && !set {
			old = value
		}
	}

	if old == "" { // Python would take an empty element for the working directory
		return directory
	}

	return directory + ":" + old
}

// hostConfig is the fence around a container. The golden test holds every line
// of it.
//
// Memory is the limit of memory plus swap, so a trial that needs more is killed
// and retried with more, never slowed down by swap. CPU is a weight, in
// proportion to the reservation; the hard cap is a quarter above, rounded up to
// whole cores, so that a program can use idle cores but thread pools cannot
// drown the neighbours. cpus is the machine's number of cores.
func hostConfig(l berth.Launch, cpus int) *container.HostConfig {
	pids := maxPids(cpus)
	initProcess := true // a Python as process 1 would ignore SIGTERM

	host := &container.HostConfig{
		AutoRemove:      false, // the exit is evidence until the result is committed
		CapDrop:         []string{"ALL"},
		CgroupnsMode:    container.CgroupnsModePrivate,
		Init:            &initProcess,
		IpcMode:         container.IPCModePrivate,
		LogConfig:       logConfig(),
		NetworkMode:     "none",
		Privileged:      false,
		ReadonlyRootfs:  true,
		RestartPolicy:   container.RestartPolicy{Name: container.RestartPolicyDisabled},
		SecurityOpt:     []string{"no-new-privileges"},
		ShmSize:         cmp.Or(l.ShmBytes, l.MemoryBytes), // data loaders share their batches there
		Tmpfs:           map[string]string{"/tmp": "noexec," + tmpOptions(l.MemoryBytes), berth.CacheDir: "exec," + tmpOptions(l.MemoryBytes)},
		Mounts:          mounts(withShim(l)),
		PublishAllPorts: false,
		Resources: container.Resources{
			Memory:     l.MemoryBytes + l.WallBytes,
			MemorySwap: l.MemoryBytes + l.WallBytes,
			PidsLimit:  &pids,
			Ulimits: []*units.Ulimit{
				{Name: "core", Soft: 0, Hard: 0},
				{Name: "nofile", Soft: openFiles, Hard: openFiles},
			},
		},
	}

	if l.Network {
		host.NetworkMode = trialNetwork
	}

	if l.CPUMilli > 0 {
		host.CPUShares = max(l.CPUMilli*sharesPerCore/1000, minShares)
		host.CPUPeriod = cpuPeriod
		host.CPUQuota = berth.CapCores(cmp.Or(l.CPUCapMilli, l.CPUMilli)) * cpuPeriod
	}

	return host
}

// tmpOptions sizes a file system in memory at the memory limit, which it counts
// against: a trial that unpacks its data there is measured with it, and the next one
// of its shape has the room that it needs. /tmp is noexec: TensorFlow does not need it
// (measured, 2.21 on CPU). What compiles and runs code has berth.CacheDir.
func tmpOptions(memoryBytes int64) string {
	return "rw,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(memoryBytes, 10)
}

// logConfig bounds a container's output: 30 MiB on disk, 4 MiB waiting in
// memory. When Docker cannot keep up, it loses lines rather than slow the trial
// (reliability.md, failure 28); results are files (rule R6).
func logConfig() container.LogConfig {
	return container.LogConfig{
		Type: "local",
		Config: map[string]string{
			"max-size":        "10m",
			"max-file":        "3",
			"mode":            "non-blocking",
			"max-buffer-size": "4m",
		},
	}
}

// sealedHost gives the volumes that an image declares what /tmp is: memory, which
// the trial's limit bounds. By itself Docker would make each a directory of the
// host without a limit, in spite of the read-only root file system. What the
// image has there is not seen.
func sealedHost(host *container.HostConfig, memoryBytes int64, volumes []string) *container.HostConfig {
	for _, target := range volumes {
		_, temporary := host.Tmpfs[target]
		if temporary || slices.ContainsFunc(host.Mounts, func(m mount.Mount) bool { return m.Target == target }) {
			continue
		}

		host.Tmpfs[target] = "noexec," + tmpOptions(memoryBytes)
	}

	return host
}

// withShim are the mounts of a launch, the shim's among them.
func withShim(l berth.Launch) []berth.Mount {
	if l.Shim == nil {
		return l.Mounts
	}

	return append(slices.Clone(l.Mounts),
		berth.Mount{Source: l.Shim.Source, Target: l.Shim.Target, ReadOnly: true},
		berth.Mount{Source: l.Shim.RecordsDir, Target: path.Dir(l.Shim.Records)})
}

func mounts(list []berth.Mount) []mount.Mount {
	out := make([]mount.Mount, 0, len(list))

	for _, m := range list {
		out = append(out, mount.Mount{
			Type:        mount.TypeBind, // fails when the source is missing, unlike Binds
			Source:      m.Source,
			Target:      m.Target,
			ReadOnly:    m.ReadOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}

	return out
}
