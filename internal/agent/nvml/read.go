//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthml/berth/internal/agent/gpu"
)

// Read returns the present use of a GPU.
func (d *driver) Read(ctx context.Context, uuid string) (gpu.Reading, error) {
	doing := fmt.Sprintf("reading GPU %q", uuid)

	return ask(ctx, d.calls, d.config.patience(), doing, func() (gpu.Reading, error) {
		handle, err := d.lib.handle(uuid)
		if err != nil {
			return gpu.Reading{}, err
		}

		reading, err := d.lib.memory(handle, fmt.Sprintf("GPU %q", uuid))
		if err != nil {
			return gpu.Reading{}, err
		}

		reading.Processes, reading.ProcessesKnown, err = d.lib.processes(handle, fmt.Sprintf("GPU %q", uuid))
		if err != nil {
			return gpu.Reading{}, err
		}

		reading.At = time.Now()

		return reading, nil
	})
}

// memory returns the sizes of a reading. Used is the total less the free:
// drivers differ on whether their own count of it includes their reserve.
func (l *library) memory(d nvml.Device, of string) (gpu.Reading, error) {
	doing := "reading the memory of " + of

	v2, err := call(l, doing, d.GetMemoryInfo_v2, "nvmlDeviceGetMemoryInfo_v2")
	if err == nil {
		return sizes(v2.Total, v2.Reserved, v2.Free), nil
	}

	if !errors.Is(err, gpu.ErrUnsupported) {
		return gpu.Reading{}, err
	}

	v1, err := call(l, doing, d.GetMemoryInfo, "nvmlDeviceGetMemoryInfo")
	if err != nil {
		return gpu.Reading{}, err
	}

	return sizes(v1.Total, 0, v1.Free), nil
}

// sizes keeps the sum of a reading consistent for any values of the driver.
func sizes(total, reserved, free uint64) gpu.Reading {
	free = min(free, total)
	reserved = min(reserved, total-free)

	return gpu.Reading{
		TotalBytes:    signed(total),
		ReservedBytes: signed(reserved),
		FreeBytes:     signed(free),
		UsedBytes:     signed(total - free - reserved),
	}
}

// processes merges the driver's two lists by PID: one of all that compute, one of
// MPS clients. known is false when this card or driver has no list of the first kind.
func (l *library) processes(d nvml.Device, of string) (list []gpu.Process, known bool, err error) {
	compute, err := call(l, "listing the processes of "+of, d.GetComputeRunningProcesses,
		"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses")
	if err != nil && !errors.Is(err, gpu.ErrUnsupported) {
		return nil, false, err
	}

	known = err == nil

	clients, err := call(l, "listing the MPS clients of "+of, d.GetMPSComputeRunningProcesses,
		"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses")
	if err != nil && !errors.Is(err, gpu.ErrUnsupported) {
		return nil, false, err
	}

	merged := make(map[uint32]gpu.Process, len(compute)+len(clients))

	add := func(infos []nvml.ProcessInfo, mps bool) {
		for _, info := range infos {
			p := merged[info.Pid]
			p.PID, p.MPS = int(info.Pid), mps

			// All ones is "not available": NVML_VALUE_NOT_AVAILABLE is -1 there.
			if info.UsedGpuMemory != math.MaxUint64 {
				p.Bytes = max(p.Bytes, signed(info.UsedGpuMemory))
			}

			merged[info.Pid] = p
		}
	}
	add(compute, false)
	add(clients, true) // last: a process of both lists is a client

	return slices.SortedFunc(maps.Values(merged), func(a, b gpu.Process) int { return cmp.Compare(a.PID, b.PID) }), known, nil
}
