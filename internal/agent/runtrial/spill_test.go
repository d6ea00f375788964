package runtrial

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
)

// spills gives the rig's attempt a GPU of 84 GiB alone, of which it reserves 80, and 40
// of the host's memory beyond.
func (r *rig) spills(change func(who *berth.Assignee)) {
	r.books.says(func(who *berth.Assignee) {
		who.Attempt.DeviceID, who.Attempt.Class, who.CardBytes = testGPU, "NVIDIA H200", 84<<30
		who.Attempt.Demand.DeviceBytes, who.Attempt.Demand.ExclusiveDevice, who.Attempt.Demand.SpillBytes = 80<<30, true, 40<<30
		change(who)
	})
}

// An attempt in unified memory is told so, with a pool that is no larger than what is
// reserved for it, by exactly one of JAX's variables; what the user set wins. It is no
// client of MPS. Others are told nothing.
func TestLaunch_Spill(t *testing.T) {
	t.Parallel()

	plain := setup(t).launch(t).Environment
	require.NotContains(t, plain, "TF_FORCE_UNIFIED_MEMORY")
	require.NotContains(t, plain, "XLA_CLIENT_MEM_FRACTION")

	r := setup(t)
	r.spills(func(*berth.Assignee) {})

	env := r.launch(t).Environment
	require.Equal(t, "1", env["TF_FORCE_UNIFIED_MEMORY"])
	require.Equal(t, "1.42", env["XLA_CLIENT_MEM_FRACTION"], "120 of 84 GiB")
	require.Equal(t, "false", env["XLA_PYTHON_CLIENT_PREALLOCATE"])
	require.NotContains(t, env, "XLA_PYTHON_CLIENT_MEM_FRACTION")
	require.NotContains(t, env, "CUDA_MPS_PIPE_DIRECTORY")

	for _, name := range []string{"XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"} {
		r := setup(t)
		r.spills(func(who *berth.Assignee) { who.Spec.EnvironmentVariables = map[string]string{name: "2"} })

		env := r.launch(t).Environment
		require.Equal(t, "2", env["XLA_CLIENT_MEM_FRACTION"]+env["XLA_PYTHON_CLIENT_MEM_FRACTION"], name)
	}
}

// The outcome of an attempt in unified memory says so. A full GPU is no sign of a
// neighbour there: what ran out of memory before its first step is charged, and larger
// next time.
func TestRun_Spill(t *testing.T) {
	t.Parallel()

	const oom = "ResourceExhaustedError: OOM when allocating tensor with shape[1024] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"

	for code, want := range map[int]berth.FailureKind{0: berth.FailureOK, 1: berth.FailureDeviceOOM} {
		bubble(t, string(want), func(t *testing.T) {
			r, _ := metered(t)
			r.spills(func(*berth.Assignee) {})

			r.config.Device = plays(time.Now(), scene{time.Hour, sampling.DeviceReading{UsedBytes: 5 << 30, FreeBytes: 100 << 20}, nil})
			box, ended := r.begin(t)
			time.Sleep(time.Second)

			if code == 0 {
				box.Print(berth.Stdout, "acc=0.5\n")
			} else {
				box.Print(berth.Stderr, oom)
			}

			got := ends(t, box, ended, "", code)
			require.Equal(t, want, got.Kind, got.Message)
			require.Contains(t, got.Message, "it ran in unified memory, alone on its GPU, with 40,960 MiB of the host's memory for what the GPU's 81,920 MiB do not hold")
		})
	}
}
