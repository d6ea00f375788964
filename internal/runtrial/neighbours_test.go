package runtrial

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/fake"
)

// byMPS has the rig's attempt share its GPU by MPS, or be its only client.
func (r *rig) byMPS(alone bool) {
	r.config.MPSPipe = func(id string) (string, error) { return "/run/mps/" + id, nil }
	r.books.Hook(func(h *fake.LedgerHooks) {
		before := h.Assignee
		h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
			who, err := before(ctx, id, call)
			who.Attempt.Class, who.Attempt.Demand.ExclusiveDevice = "NVIDIA H200 (MPS)", alone

			return who, err
		}
	})
}

// readings answers each question with the same reading, and closes the channel once
// there were several.
func readings(reading DeviceReading) (ReadDevice, <-chan struct{}) {
	var n atomic.Int32

	enough := make(chan struct{})

	return func(context.Context, berth.Container, string) (DeviceReading, error) {
		i := n.Add(1)
		if i == 4 {
			close(enough)
		}

		reading := reading
		if !reading.Activity.At.IsZero() {
			reading.Activity.At = reading.Activity.At.Add(time.Duration(i) * time.Second)
		}

		return reading, nil
	}, enough
}

// A failed MPS server is a neighbour's matter only where there was one; without, it is
// nobody's, and costs the trial nothing either.
func TestRun_ItsMPSServerFails(t *testing.T) {
	t.Parallel()

	const serverGone = "InternalError: CUDA error: CUDA_ERROR_MPS_RPC_FAILURE: the MPS RPC server failed"

	for name, tt := range map[string]struct {
		alone  bool     // it has the GPU to itself, as the ledger says
		beside []string // what the driver says
		said   string
		want   berth.FailureKind
	}{
		"beside another":                     {false, []string{"another"}, serverGone, berth.FailureNeighbourFault},
		"nobody came":                        {false, nil, serverGone, berth.FailureInfra},
		"alone there":                        {true, nil, serverGone, berth.FailureInfra},
		"a fault beside another":             {false, []string{"another"}, "CUDA_ERROR_ILLEGAL_ADDRESS", berth.FailureNeighbourFault},
		"a fault of its own, nobody came":    {false, nil, "CUDA_ERROR_ILLEGAL_ADDRESS", berth.FailureCrashed},
		"a fault of its own, alone there":    {true, nil, "CUDA_ERROR_ILLEGAL_ADDRESS", berth.FailureCrashed},
		"a fault beside what is not Berth's": {false, []string{""}, "CUDA_ERROR_ILLEGAL_ADDRESS", berth.FailureNeighbourFault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			read, enough := readings(DeviceReading{UsedBytes: 1 << 30, FreeBytes: 8 << 30, Beside: tt.beside})
			r.onGPU(t, read)
			r.byMPS(tt.alone)

			ended := r.start(t.Context(), r.order())
			box := r.docks.started(t)
			<-enough
			box.Print(berth.Stdout, tt.said+"\n")
			box.Exit(1)

			got := await(t, ended)
			require.NoError(t, got.err)
			require.Equal(t, tt.want, got.outcome.Kind, got.outcome.Message)
			require.Equal(t, tt.want == berth.FailureCrashed, got.outcome.DeviceFault, "only its own faults are said of its program")
		})
	}
}

// What a GPU does while a program outside Berth is on it is not the attempt's.
func TestRun_BesideAProgramOutsideBerth(t *testing.T) {
	t.Parallel()

	for name, beside := range map[string][]string{"alone": nil, "beside it": {""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			read, enough := readings(DeviceReading{
				UsedBytes: 1 << 30, FreeBytes: 8 << 30, Beside: beside, Activity: GPUActivity{At: time.Unix(1, 0), SM: 0.8},
			})
			r.onGPU(t, read)

			ended := r.start(t.Context(), r.order())
			box := r.docks.started(t)
			<-enough
			box.Print(berth.Stdout, "acc=0.5\n")
			box.Exit(0)

			u := await(t, ended).outcome.Usage
			if beside == nil {
				require.Equal(t, int64(800), u.DeviceActivity.SMMilli)

				return
			}

			require.Zero(t, u.DeviceActivity)
			require.Zero(t, u.DeviceActive)
			require.Positive(t, u.DeviceUnknown)
		})
	}
}

// A program that does not share its GPU as it should is named where a person looks: at
// its attempt.
func TestRun_DoesNotShareItsGPU(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		return DeviceReading{UsedBytes: 1 << 30, FreeBytes: 8 << 30, Unshared: true}, nil
	})
	r.byMPS(false)

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)

	time.Sleep(deviceDoubt + 500*time.Millisecond)
	box.Print(berth.Stdout, "acc=0.5\n")
	box.Exit(0)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureOK, got.outcome.Kind)
	require.Contains(t, got.outcome.Message, "did not share its GPU by MPS")
	require.Contains(t, got.outcome.Message, "CUDA_MPS_PIPE_DIRECTORY")
}
