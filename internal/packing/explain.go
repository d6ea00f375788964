package packing

import (
	"fmt"
	"strconv"

	"github.com/berthml/berth"
)

const mebibyte = 1 << 20

// Explain returns the rejection in plain words. It is apart from the decision
// because only what is stored needs a text.
func Explain(r berth.Rejection) string {
	if r.Reason != "" {
		return r.Reason
	}

	where := "host " + r.HostName
	if r.DeviceID != "" {
		where += ", GPU " + r.DeviceID
	}

	return where + ": " + explainDimension(r)
}

func explainDimension(r berth.Rejection) string {
	free := "free"
	if r.Never {
		free = "there at all"
	}

	switch r.Dimension {
	case berth.DimensionState:
		return "takes no attempts now (draining, or its worker does not answer)"
	case berth.DimensionMemory:
		return fmt.Sprintf("needs %s of memory, %s %s", needed(r.Needed), mib(r.Free), free)
	case berth.DimensionFreeMemory:
		return fmt.Sprintf("needs %s of memory, %s free beside what programs outside Berth use", needed(r.Needed), mib(r.Free))
	case berth.DimensionDisk:
		return fmt.Sprintf("%s of disk are free, and it keeps %s: free space there", mib(r.Free), needed(r.Needed))
	case berth.DimensionCPU:
		return fmt.Sprintf("needs %s cores, %s %s", cores(r.Needed), cores(r.Free), free)
	case berth.DimensionAttempts:
		return "already runs as many attempts as it may"
	case berth.DimensionDevice:
		return "has no GPU"
	case berth.DimensionDeviceBytes:
		return fmt.Sprintf("needs %s of GPU memory, %s %s", needed(r.Needed), mib(r.Free), free)
	case berth.DimensionContexts:
		return fmt.Sprintf("needs %d GPU context(s), %d %s", r.Needed, r.Free, free)
	case berth.DimensionExclusive:
		return "one of the attempts must be alone there"
	case berth.DimensionSweep:
		return "the sweep's own limit"
	default:
		return string(r.Dimension)
	}
}

// needed is mib rounded up, so that what is needed never reads as if it were free.
func needed(bytes int64) string { return mib(bytes + mebibyte - 1) }

// mib renders bytes as people read them, such as 1,310 MiB.
func mib(bytes int64) string {
	digits := strconv.FormatInt(bytes/mebibyte, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}

	return digits + " MiB"
}

func cores(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
}
