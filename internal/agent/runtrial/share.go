package runtrial

import (
	"strconv"

	"github.com/berthml/berth"
)

// mountMPS is where a container finds the daemon by which it shares its GPU.
const mountMPS = "/trial/mps"

// wallBytes is how far above its reservation the kernel's limit of a client of MPS is. The
// kernel ends a program in the middle of its kernels, which ends all neighbours (rule R10);
// below that limit the worker ends it. A program takes about 1 GiB in the 200 ms between two
// samples, and the same until it is frozen.
const wallBytes = 2 << 30

// share makes the container a client of its GPU's MPS daemon, when that is how the
// attempts there share it, and bounds what it takes of the GPU's memory: context
// and all, as a footprint counts it. An attempt alone on its GPU has all of it.
// Errors: unavailable when the host has no daemon for it.
func (r *run) share(l *berth.Launch) error {
	attempt := r.who.Attempt
	if l.DeviceID == "" || attempt.Class.Mode() != berth.SharingMPS {
		return nil
	}

	if r.config.MPSPipe == nil {
		return berth.Errorf(berth.KindUnavailable, "attempt %s is to share GPU %s by MPS, and this worker has no GPUs", attempt.ID, l.DeviceID)
	}

	pipe, err := r.config.MPSPipe(l.DeviceID)
	if err != nil {
		return err
	}

	l.WallBytes = wallBytes
	l.Mounts = append(l.Mounts, berth.Mount{Source: pipe, Target: mountMPS})
	l.Environment["CUDA_MPS_PIPE_DIRECTORY"] = mountMPS

	if !attempt.Demand.ExclusiveDevice {
		// The container's first GPU is its only one. By its UUID, drivers before 580 let all limits go.
		l.Environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + strconv.FormatInt(l.DeviceBytes>>20, 10) + "M"
	}

	return nil
}
