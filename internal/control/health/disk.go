package health

import (
	"fmt"

	"github.com/berthml/berth"
)

// Disk is a file system that Berth's files are on, at one moment.
type Disk struct {
	Of            string // whose, such as "host a"
	TotalBytes    int64  // 0 = not known
	FreeBytes     int64
	HeadroomBytes int64 // kept free on purpose
	OutputBytes   int64 // size of the attempts' files there; 0 = not known
	GrowthBytes   int64 // how much more is in use than a day before; 0 = not known
}

const (
	// diskWarnPercent of the fillable disk leaves a person days: a disk of 100
	// GiB still has 15 GiB, more than one attempt may write by default.
	diskWarnPercent = 85
	// diskWarnDays is how many days before the disk is full Berth warns, longer
	// than a weekend with holidays.
	diskWarnDays = 7
)

// Warning says that the disk will be full before long, in plain words. It is
// empty when there is room, when nothing is known of the disk, and when it is
// full already.
func (d Disk) Warning() string {
	left := d.FreeBytes - d.HeadroomBytes
	if d.TotalBytes == 0 || left <= 0 {
		return ""
	}

	used := (d.TotalBytes - d.FreeBytes) * 100 / (d.TotalBytes - d.HeadroomBytes)
	outputs := ""

	if d.OutputBytes > 0 {
		outputs = "; files of attempts take " + berth.BytesText(d.OutputBytes)
	}

	if d.GrowthBytes > 0 {
		if days := left / d.GrowthBytes; days < diskWarnDays {
			return fmt.Sprintf("%s has %s left and filled %s in the last day: it is full in about %d days%s",
				d.Of, berth.BytesText(left), berth.BytesText(d.GrowthBytes), days+1, outputs)
		}
	}

	if used >= diskWarnPercent {
		return fmt.Sprintf("%s has %s left: %d %% of what it may fill is in use%s", d.Of, berth.BytesText(left), used, outputs)
	}

	return ""
}

// DiskOf is a host's fuller disk.
func DiskOf(h *berth.Host) Disk {
	return Disk{
		Of: "host " + h.Name, TotalBytes: h.DiskBytes, FreeBytes: h.DiskFreeBytes, HeadroomBytes: h.DiskHeadroomBytes,
		OutputBytes: h.OutputBytes, GrowthBytes: h.DiskGrowthBytes,
	}
}
