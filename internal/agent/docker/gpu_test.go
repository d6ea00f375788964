package docker

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestAccessTo(t *testing.T) {
	t.Parallel()

	discovered := func(ids ...string) (info system.Info) {
		info.CDISpecDirs = []string{"/etc/cdi", "/var/run/cdi"}
		for _, id := range ids {
			info.DiscoveredDevices = append(info.DiscoveredDevices, system.DeviceInfo{Source: "cdi", ID: id})
		}

		return info
	}
	hook := system.Info{Runtimes: map[string]system.RuntimeWithStatus{"runc": {}, "nvidia": {}}}
	files := map[string]string{
		"/etc/cdi/nvidia.yaml":      "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n- name: GPU-1\n- name: all\n",
		"/etc/cdi/other.yaml":       "kind: vendor.com/net\ndevices: [{name: GPU-9}]\n",
		"/etc/cdi/broken.json":      "{",
		"/var/run/cdi/nvidia2.json": `{"kind": "nvidia.com/gpu", "devices": [{"name": "0:1"}]}`,
	}

	for name, tt := range map[string]struct {
		info   system.Info
		gpu    GPU
		want   gpuAccess
		reason string
	}{
		"by UUID":               {discovered("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1"), GPU{"GPU-1", "0"}, gpuAccess{"cdi", "nvidia.com/gpu=GPU-1"}, ""},
		"by index":              {discovered("nvidia.com/gpu=0", "nvidia.com/gpu=all"), GPU{"GPU-1", "0"}, gpuAccess{"cdi", "nvidia.com/gpu=0"}, ""},
		"of another kind":       {discovered("vendor.com/net=0"), GPU{"GPU-5", "5"}, gpuAccess{}, "not this one"},
		"a card added since":    {discovered("nvidia.com/gpu=0"), GPU{"GPU-2", "1"}, gpuAccess{}, "not this one"},
		"NVIDIA's hook":         {hook, GPU{"GPU-1", "0"}, gpuAccess{"nvidia", "GPU-1"}, ""},
		"from a file":           {system.Info{CDISpecDirs: []string{"/etc/cdi"}}, GPU{"GPU-1", "7"}, gpuAccess{"cdi", "nvidia.com/gpu=GPU-1"}, ""},
		"a MIG device":          {system.Info{CDISpecDirs: []string{"/etc/cdi", "/var/run/cdi"}}, GPU{"MIG-1", "0:1"}, gpuAccess{"cdi", "nvidia.com/gpu=0:1"}, ""},
		"CDI without files":     {system.Info{CDISpecDirs: []string{"/none"}}, GPU{"GPU-1", "0"}, gpuAccess{}, "finds no CDI file of NVIDIA's GPUs in /none"},
		"an old Docker":         {system.Info{ServerVersion: "20.10.24"}, GPU{"GPU-1", "0"}, gpuAccess{}, "Docker 20.10.24 has neither CDI nor"},
		"CDI before the hook":   {system.Info{Runtimes: hook.Runtimes, DiscoveredDevices: discovered("nvidia.com/gpu=0").DiscoveredDevices}, GPU{"GPU-1", "0"}, gpuAccess{"cdi", "nvidia.com/gpu=0"}, ""},
		"the hook for the rest": {system.Info{Runtimes: hook.Runtimes, DiscoveredDevices: discovered("nvidia.com/gpu=0").DiscoveredDevices}, GPU{"GPU-2", "1"}, gpuAccess{"nvidia", "GPU-2"}, ""},
	} {
		known := cdiDevices(tt.info, func(file string) ([]byte, error) {
			if text, ok := files[file]; ok {
				return []byte(text), nil
			}

			return nil, fs.ErrNotExist
		}, func(pattern string) (found []string, err error) {
			for file := range files {
				if ok, err := filepath.Match(pattern, file); err != nil {
					return nil, err
				} else if ok {
					found = append(found, file)
				}
			}

			return found, nil
		})

		way, missing := accessTo(tt.gpu, known, tt.info)
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
	d.AddSimulatedGPUs(map[string]string{"GPU-1": "/data/gpus/0/gpu"})

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
