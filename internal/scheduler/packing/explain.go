package packing

import (
	"fmt"
	"strconv"

	"github.com/berthml/berth"
)

const mebibyte = 1 << 20

// Explain returns the rejection in plain words. It is apart from the decision
// because only stored rejections need a text.
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
	there := "free"
	if r.Never {
		there = "there at all"
	}

	switch r.Dimension {
	case berth.DimensionMemory:
		return fmt.Sprintf("needs %s of memory, %s %s", neededText(r.Needed), freeText(r.Free), there)
	case berth.DimensionFreeMemory:
		of := "memory"
		if r.DeviceID != "" {
			of = "GPU memory"
		}

		return fmt.Sprintf("needs %s of %s, %s free beside what programs outside Berth use", neededText(r.Needed), of, freeText(r.Free))
	case berth.DimensionDisk:
		return fmt.Sprintf("%s of disk are free, and it keeps %s: free space there", freeText(r.Free), neededText(r.Needed))
	case berth.DimensionCPU:
		return fmt.Sprintf("needs %s cores, %s %s", cores(r.Needed), cores(r.Free), there)
	case berth.DimensionAttempts:
		return "already runs as many attempts as it may"
	case berth.DimensionDevice:
		return "has no GPU"
	case berth.DimensionDeviceBytes:
		return fmt.Sprintf("needs %s of GPU memory, %s %s", neededText(r.Needed), freeText(r.Free), there)
	case berth.DimensionContexts:
		return fmt.Sprintf("needs %d GPU context(s), %d %s", r.Needed, r.Free, there)
	case berth.DimensionActivity:
		return fmt.Sprintf("keeps a GPU %s busy by itself, and %s are left there: beside what runs, all would be slower and no more done", percent(r.Needed), percent(r.Free))
	case berth.DimensionExclusive:
		return "one of the attempts must be alone there"
	default:
		return string(r.Dimension)
	}
}

// neededText and freeText render bytes in whole MiB, rounded up and rounded
// down, so that a request that does not fit never reads as if it did.
func neededText(bytes int64) string {
	return berth.BytesText((bytes + mebibyte - 1) / mebibyte * mebibyte)
}

func freeText(bytes int64) string { return berth.BytesText(bytes / mebibyte * mebibyte) }

func percent(milli int64) string { return strconv.FormatInt((milli+5)/10, 10) + " %" }

func cores(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
}
