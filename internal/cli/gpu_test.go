package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// An attempt's reservation and use of a GPU stand beside its host's; without a
// GPU the text leaves the GPU out.
func TestGPUTexts(t *testing.T) {
	t.Parallel()

	onCores := client.Attempt{Number: 1, Demand: client.Demand{MemoryBytes: 1 << 30, CPUMilli: 1000}, Usage: client.Usage{MemoryPeakBytes: 900 << 20, WallSeconds: 9}}
	onGPU := onCores
	onGPU.Number, onGPU.DeviceID, onGPU.Demand.DeviceBytes, onGPU.Usage.DevicePeakBytes = 2, "GPU-1", 1216<<20, 910<<20

	require.Equal(t, "9 s, peak 900 MiB of 1,024 MiB", usageText(onCores))
	require.Equal(t, "9 s, peak 900 MiB of 1,024 MiB, GPU 910 MiB of 1,216 MiB", usageText(onGPU))

	onGPU.Usage.FrameworkPeakBytes = 300 << 20
	require.Equal(t, "9 s, peak 900 MiB of 1,024 MiB, GPU 910 MiB of 1,216 MiB, its framework at most 300 MiB", usageText(onGPU))
	onGPU.Usage.StepSeconds = 0.0123456
	require.Equal(t, "9 s, peak 900 MiB of 1,024 MiB, GPU 910 MiB of 1,216 MiB, its framework at most 300 MiB, 12.35 ms a step", usageText(onGPU))
	require.Equal(t, "1,024 MiB at its start, 2,048 MiB in validation", phasesText(&client.DevicePhases{StartBytes: 1 << 30, ValidationBytes: 2 << 30}))

	onCores.Stage, onGPU.Stage = "base", "main"
	require.NotContains(t, attemptTable([]client.Attempt{onCores}).header, "gpu")
	require.Equal(t, []string{"1", "base"}, attemptTable([]client.Attempt{onCores}).rows[0][:2])

	onCores.Stage = "main"

	both := attemptTable([]client.Attempt{onCores, onGPU})
	require.Equal(t, []string{"reserved", "peak", "gpu", "gpu reserved", "gpu peak", "cores"}, both.header[5:11])
	require.Equal(t, []string{"1,024 MiB", "900 MiB", "-", "-", "-", "1"}, both.rows[0][5:11])
	require.Equal(t, []string{"1,024 MiB", "900 MiB", "GPU-1", "1,216 MiB", "910 MiB", "1"}, both.rows[1][5:11])
}

// What a person cordons by a beginning of its id is shown so until it is ready again.
func TestDeviceCordon(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.OnGPU(t)
	server := serve(t, store)

	result := succeed(t, server, "device", "cordon", "GPU", "--reason", "its fan is loud")
	require.Contains(t, result.stdout, "cordoned: its fan is loud")
	require.Contains(t, execute(t.Context(), server, "device", "list").stdout, "cordoned: its fan is loud")

	var devices []client.Device

	require.NoError(t, json.Unmarshal([]byte(execute(t.Context(), server, "device", "list", "-o", "json").stdout), &devices))
	require.Equal(t, "its fan is loud", devices[0].CordonReason)

	store.Exec("UPDATE devices SET problem = 'lost'")
	require.Contains(t, execute(t.Context(), server, "device", "list").stdout, "lost; also cordoned: its fan is loud")
	store.Exec("UPDATE devices SET problem = ''")

	result = succeed(t, server, "device", "ready", "GPU-1")
	require.NotContains(t, result.stdout, "cordoned")
	require.Equal(t, ExitNotFound, execute(t.Context(), server, "device", "ready", "GPU-2").code)
}

// The bottleneck of a program is shown in words, with the evidence before each
// advice.
func TestProbeGet_SaysWhatToDo(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.Exec(`INSERT INTO device_footprints (shape_key, device_class, source, samples, cpu_milli, device_sm_milli, device_dram_milli)
		VALUES ($1, 'NVIDIA H200', 'full', 1, 1000, 820, 170)`, apitest.SmallShape)

	result := succeed(t, serve(t, store), "probe", "get", "aaaa")
	require.Regexp(t, `limited by +its SMs \(compute-bound\): its SMs had work 82 % of the time, and it used 17 % of the bandwidth of the GPU's memory, in the mean over whole runs`, result.stdout)
	require.Regexp(t, `advice +its SMs had work 82 % of the time .*, its tensor cores 0 %\. Let matrix products`, result.stdout)
}
