package report

// TensorFlow 2.21's use of a GPU in its default mode, measured in MiB on one
// NVIDIA H200 (driver 580.159.04, 2026-11-21): the GPU has 143,771, and the
// driver uses 618; a process has a context of 524; TensorFlow leaves a reserve
// free, smaller on a small GPU; its pool is the rest, and 621 of the process are
// outside the pool, including the context. On that GPU the rule gives the 141,450
// that NVML shows, 98.4 %.
const (
	mib = int64(1) << 20

	driverBytes      = 618 * mib
	contextBytes     = 524 * mib
	outsidePoolBytes = 621 * mib

	reserveBytes      = 1800 * mib
	smallReserveBytes = 225 * mib
	smallBelowBytes   = 2048 * mib // free after the context
)

// DefaultModeBytes is the reservation of one TensorFlow process in its default mode,
// alone on a GPU. For a GPU with 24,265 MiB the rule gives 941 MiB less than the
// 22,885 of another measurement: it does not exaggerate. 0 = the GPU has too little
// memory for a process, or its size is not known.
func DefaultModeBytes(cardBytes int64) int64 {
	left := cardBytes - driverBytes - contextBytes

	reserve := reserveBytes
	if left < smallBelowBytes {
		reserve = smallReserveBytes
	}

	if left <= reserve {
		return 0
	}

	return left - reserve + outsidePoolBytes
}
