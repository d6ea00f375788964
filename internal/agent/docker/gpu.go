package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

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
func (d *Docker) AddGPUs(ctx context.Context, cards []gpu.Card) (missing map[string]string, err error) {
	info, err := d.short.Info(ctx)
	if err != nil {
		return nil, d.translate(ctx, err, "asking Docker for its GPUs")
	}

	ways := make(map[string]gpuAccess, len(cards))
	missing = make(map[string]string)

	for _, card := range cards {
		if way, why := accessTo(card, info); why != "" {
			missing[card.UUID] = why
		} else {
			ways[card.UUID] = way
		}
	}

	d.gpus.Store(&ways)

	return missing, nil
}

// AddSimulatedGPUs lets Ensure give away simulated GPUs from now on: each is the
// directory with its socket, which dir returns by UUID.
func (d *Docker) AddSimulatedGPUs(cards []gpu.Card, dir func(uuid string) string) {
	ways := make(map[string]gpuAccess, len(cards))
	for _, card := range cards {
		ways[card.UUID] = gpuAccess{driver: driverSimulated, id: dir(card.UUID)}
	}

	d.gpus.Store(&ways)
}

// accessTo prefers CDI: it needs no separate runtime and names the device
// explicitly. Docker lists its CDI devices since 28.2 (API 1.50).
func accessTo(card gpu.Card, info system.Info) (way gpuAccess, missing string) {
	others := false

	for _, device := range info.DiscoveredDevices {
		name, ours := strings.CutPrefix(device.ID, cdiKind+"=")
		if ours = ours && device.Source == driverCDI; ours && (name == card.UUID || name == card.Index) {
			return gpuAccess{driver: driverCDI, id: device.ID}, ""
		}

		others = others || ours
	}

	if _, ok := info.Runtimes[driverNVIDIA]; ok {
		return gpuAccess{driver: driverNVIDIA, id: card.UUID}, ""
	}

	if others {
		return gpuAccess{}, "Docker knows other GPUs by CDI and not this one: run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` again"
	}

	return gpuAccess{}, "Docker " + info.ServerVersion + " has neither CDI for NVIDIA's GPUs (28.2 or newer) nor NVIDIA's runtime: install nvidia-container-toolkit, " +
		"then run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, or `nvidia-ctk runtime configure --runtime=docker` and restart Docker"
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
