package docker

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

func TestAccessTo(t *testing.T) {
	t.Parallel()

	docker := func(runtime string, ids ...string) system.Info {
		info := system.Info{ServerVersion: "28.2", Runtimes: map[string]system.RuntimeWithStatus{runtime: {}}}
		for _, id := range ids {
			info.DiscoveredDevices = append(info.DiscoveredDevices, system.DeviceInfo{Source: "cdi", ID: id})
		}

		return info
	}

	for name, tt := range map[string]struct {
		info   system.Info
		card   gpu.Card
		want   gpuAccess
		reason string
	}{
		"by UUID":               {docker("runc", "nvidia.com/gpu=1", "nvidia.com/gpu=GPU-1"), gpu.Card{UUID: "GPU-1", Index: "0"}, gpuAccess{"cdi", "nvidia.com/gpu=GPU-1"}, ""},
		"by index":              {docker("runc", "nvidia.com/gpu=all", "nvidia.com/gpu=0"), gpu.Card{UUID: "GPU-1", Index: "0"}, gpuAccess{"cdi", "nvidia.com/gpu=0"}, ""},
		"a MIG device":          {docker("runc", "nvidia.com/gpu=0:1"), gpu.Card{UUID: "MIG-1", Index: "0:1"}, gpuAccess{"cdi", "nvidia.com/gpu=0:1"}, ""},
		"of another kind":       {docker("runc", "vendor.com/net=0"), gpu.Card{UUID: "GPU-1", Index: "0"}, gpuAccess{}, "Docker 28.2 has neither CDI"},
		"a card added since":    {docker("runc", "nvidia.com/gpu=0"), gpu.Card{UUID: "GPU-2", Index: "1"}, gpuAccess{}, "not this one"},
		"NVIDIA's hook":         {docker("nvidia"), gpu.Card{UUID: "GPU-1", Index: "0"}, gpuAccess{"nvidia", "GPU-1"}, ""},
		"CDI before the hook":   {docker("nvidia", "nvidia.com/gpu=0"), gpu.Card{UUID: "GPU-1", Index: "0"}, gpuAccess{"cdi", "nvidia.com/gpu=0"}, ""},
		"the hook for the rest": {docker("nvidia", "nvidia.com/gpu=0"), gpu.Card{UUID: "GPU-2", Index: "1"}, gpuAccess{"nvidia", "GPU-2"}, ""},
	} {
		way, missing := accessTo(tt.card, tt.info)
		require.Equal(t, tt.want, way, name)
		require.Contains(t, missing, tt.reason, name)
		require.Equal(t, tt.want == gpuAccess{}, missing != "", name)
	}
}

// A container sees its own GPU alone, as the first one, for any image.
func TestWithGPU(t *testing.T) {
	t.Parallel()

	l := launch()
	l.DeviceID = "GPU-1"

	for driver, want := range map[string]struct {
		request container.DeviceRequest
		visible string
	}{
		"cdi":    {container.DeviceRequest{Driver: "cdi", DeviceIDs: []string{"id"}}, "void"},
		"nvidia": {container.DeviceRequest{Driver: "nvidia", DeviceIDs: []string{"id"}, Capabilities: [][]string{{"gpu", "compute", "utility"}}}, "id"},
	} {
		config, host := containerConfig(l, berth.Image{}, "65532:65532", nil), hostConfig(l, 2)
		withGPU(config, host, &gpuAccess{driver: driver, id: "id"})
		require.Equal(t, []container.DeviceRequest{want.request}, host.DeviceRequests)
		require.Equal(t, []string{
			"CUDA_VISIBLE_DEVICES=0", "HOME=/tmp", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", "NVIDIA_VISIBLE_DEVICES=" + want.visible, "TRIAL_ID=t1",
		}, config.Env)
	}
}

// A simulated GPU is a directory and a variable; the request to Docker has no
// device.
func TestWithGPU_Simulated(t *testing.T) {
	t.Parallel()

	d := setup(t)
	d.AddSimulatedGPUs([]gpu.Card{{UUID: "GPU-1"}}, func(string) string { return "/data/gpus/0/gpu" })

	l := launch()
	l.DeviceID = "GPU-1"

	way, err := d.gpu(l)
	require.NoError(t, err)

	config, host := containerConfig(l, berth.Image{}, "65532:65532", nil), hostConfig(l, 2)
	before := len(host.Mounts)
	withGPU(config, host, way)
	require.Empty(t, host.DeviceRequests)
	require.Contains(t, config.Env, "BERTH_SIMULATED_GPU=/trial/gpu/card.sock")
	require.Contains(t, config.Env, "NVIDIA_VISIBLE_DEVICES=void")
	require.Len(t, host.Mounts, before+1)
	require.Equal(t, mounts([]berth.Mount{{Source: "/data/gpus/0/gpu", Target: "/trial/gpu", ReadOnly: true}})[0], host.Mounts[before])

	l.DeviceID = "GPU-2"
	_, err = d.gpu(l)
	require.Error(t, err, "another card is not this host's")
}

func TestEnsure_WithoutItsGPU(t *testing.T) {
	t.Parallel()

	d := setup(t)
	l := launch()
	l.DeviceID = "GPU-1"

	none, err := d.gpu(launch())
	require.NoError(t, err)
	require.Nil(t, none)

	_, err = d.gpu(l)
	start, ok := errors.AsType[*berth.StartError](err)
	require.True(t, ok)
	require.Equal(t, berth.FailureInfra, start.Kind, "the trial runs elsewhere, and the host is cordoned when it goes on")
	require.ErrorContains(t, err, "cannot give a container its GPU GPU-1")

	d.gpus.Store(&map[string]gpuAccess{"GPU-1": {driver: "cdi", id: "nvidia.com/gpu=0"}})
	way, err := d.gpu(l)
	require.NoError(t, err)
	require.Equal(t, &gpuAccess{driver: "cdi", id: "nvidia.com/gpu=0"}, way)
}
