package docker

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

// GPU is a GPU of this machine as its driver numbers it.
type GPU struct {
	UUID  string
	Index string // such as 0, or 0:1 for MIG device 1 of card 0
}

// gpuAccess is how a container gets one GPU.
type gpuAccess struct {
	driver string // of Docker: driverCDI or driverNVIDIA; or driverSimulated
	id     string // as that driver calls the GPU; of a simulated one, its directory
}

// The ways in which Docker gives a container a GPU: by the Container Device
// Interface, a file that says which nodes and libraries a device consists of; by
// NVIDIA's hook before runc; or, of a simulated one, by the mount of its directory.
const (
	driverCDI       = "cdi"
	driverNVIDIA    = "nvidia"
	driverSimulated = "simulated"
	cdiKind         = "nvidia.com/gpu"
)

// AddGPUs finds out how containers can have these GPUs, and lets Ensure give
// each of them away from now on. missing says by UUID why one cannot be given
// to a container, with the fix. Errors: unavailable when Docker does not answer.
func (d *Docker) AddGPUs(ctx context.Context, gpus []GPU) (missing map[string]string, err error) {
	info, err := d.short.Info(ctx)
	if err != nil {
		return nil, d.translate(ctx, err, "asking Docker for its GPUs")
	}

	known := cdiDevices(info, os.ReadFile, filepath.Glob)
	ways := make(map[string]gpuAccess, len(gpus))
	missing = make(map[string]string)

	for _, gpu := range gpus {
		if way, why := accessTo(gpu, known, info); why != "" {
			missing[gpu.UUID] = why
		} else {
			ways[gpu.UUID] = way
		}
	}

	d.gpus.Store(&ways)

	return missing, nil
}

// AddSimulatedGPUs lets Ensure give away simulated GPUs from now on: each is the
// directory with its socket, by UUID.
func (d *Docker) AddSimulatedGPUs(dirs map[string]string) {
	ways := make(map[string]gpuAccess, len(dirs))
	for uuid, dir := range dirs {
		ways[uuid] = gpuAccess{driver: driverSimulated, id: dir}
	}

	d.gpus.Store(&ways)
}

// accessTo prefers CDI: it needs no separate runtime and names the device
// explicitly.
func accessTo(gpu GPU, cdi []string, info system.Info) (way gpuAccess, missing string) {
	for _, name := range []string{gpu.UUID, gpu.Index} {
		if id := cdiKind + "=" + name; slices.Contains(cdi, id) {
			return gpuAccess{driver: driverCDI, id: id}, ""
		}
	}

	if _, ok := info.Runtimes[driverNVIDIA]; ok {
		return gpuAccess{driver: driverNVIDIA, id: gpu.UUID}, ""
	}

	switch {
	case len(cdi) > 0:
		return gpuAccess{}, "Docker knows other GPUs by CDI and not this one: run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` again"
	case len(info.CDISpecDirs) > 0:
		return gpuAccess{}, "Docker finds no CDI file of NVIDIA's GPUs in " + strings.Join(info.CDISpecDirs, " or ") +
			": install nvidia-container-toolkit and run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
	default:
		return gpuAccess{}, "Docker " + info.ServerVersion + " has neither CDI nor NVIDIA's runtime: install nvidia-container-toolkit, " +
			"run `nvidia-ctk runtime configure --runtime=docker` and restart Docker"
	}
}

// cdiDevices returns the names of NVIDIA's GPUs in Docker's CDI. An API before
// 1.50 (Docker 28.2) does not list them: then cdiDevices reads the files, if it
// can.
func cdiDevices(info system.Info, read func(string) ([]byte, error), glob func(string) ([]string, error)) []string {
	var found []string

	for _, device := range info.DiscoveredDevices {
		if device.Source == driverCDI && strings.HasPrefix(device.ID, cdiKind+"=") {
			found = append(found, device.ID)
		}
	}

	if len(found) > 0 {
		return found
	}

	for _, dir := range info.CDISpecDirs {
		for _, pattern := range []string{"*.json", "*.yaml"} { // no other name is a CDI file
			files, err := glob(filepath.Join(dir, pattern))
			if err != nil {
				continue // the pattern is ours: the directory's name has a bracket
			}

			for _, file := range files {
				found = append(found, cdiFile(file, read)...)
			}
		}
	}

	return found
}

// cdiFile reads the names of NVIDIA's GPUs from a CDI file. One that cannot be
// read gives none: Docker passes over it too.
func cdiFile(file string, read func(string) ([]byte, error)) []string {
	data, err := read(file)
	if err != nil {
		return nil
	}

	var spec struct {
		Kind    string `yaml:"kind"`
		Devices []struct {
			Name string `yaml:"name"`
		} `yaml:"devices"`
	}
	if yaml.Unmarshal(data, &spec) != nil || spec.Kind != cdiKind { // JSON is YAML
		return nil
	}

	names := make([]string, len(spec.Devices))
	for i, device := range spec.Devices {
		names[i] = cdiKind + "=" + device.Name
	}

	return names
}

// gpu is how the launch's container gets its GPU; nil when it wants none.
// Errors: a StartError of kind infra when this host cannot give it that.
func (d *Docker) gpu(l berth.Launch) (*gpuAccess, error) {
	if l.DeviceID == "" {
		return nil, nil //nolint:nilnil // no GPU is no error
	}

	if ways := d.gpus.Load(); ways != nil {
		if way, ok := (*ways)[l.DeviceID]; ok {
			return &way, nil
		}
	}

	return nil, &berth.StartError{Kind: berth.FailureInfra, Err: berth.Errorf(berth.KindUnavailable,
		"this host cannot give a container its GPU %s; `berth doctor` there says why", l.DeviceID)}
}

// withGPU gives a container one GPU and hides all others. Docker's NVIDIA driver
// passes NVIDIA_VISIBLE_DEVICES on to its hook; with CDI it stays "void", so that
// NVIDIA's runtime as the default one adds nothing. In the container the GPU is
// the first and only one, for any image.
func withGPU(config *container.Config, host *container.HostConfig, way *gpuAccess) {
	if way == nil {
		return
	}

	config.Env = setEnv(config.Env, "CUDA_VISIBLE_DEVICES", "0")

	if way.driver == driverSimulated {
		config.Env = setEnv(config.Env, wire.Variable, wire.CardPath)
		host.Mounts = append(host.Mounts, mounts([]berth.Mount{{Source: way.id, Target: wire.Dir, ReadOnly: true}})...)

		return
	}

	request := container.DeviceRequest{Driver: way.driver, DeviceIDs: []string{way.id}}

	if way.driver == driverNVIDIA {
		request.Capabilities = [][]string{{"gpu", "compute", "utility"}}
		config.Env = setEnv(config.Env, "NVIDIA_VISIBLE_DEVICES", way.id)
	}

	host.DeviceRequests = []container.DeviceRequest{request}
}

// setEnv sets a variable in a sorted list of NAME=value.
func setEnv(env []string, name, value string) []string {
	line := name + "=" + value

	i, _ := slices.BinarySearch(env, name+"=")
	if i < len(env) && strings.HasPrefix(env[i], name+"=") {
		env[i] = line

		return env
	}

	return slices.Insert(env, i, line)
}
