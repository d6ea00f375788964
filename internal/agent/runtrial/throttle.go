package runtrial

import (
	"fmt"

	"github.com/berthml/berth"
)

// capMilli is what the limit of cores goes by, in thousandths of a core.
func (r *run) capMilli() int64 {
	reserved := r.who.Attempt.Demand.CPUMilli
	if r.who.Attempt.DeviceID == "" {
		return reserved
	}

	return max(r.who.Spec.Resources.ThreadCapMilli(), reserved) // fewer cores are booked than it may keep busy
}

// heldBackNote says that the limit of cores made the attempt slower, and what to write;
// empty when it did not.
func heldBackNote(u berth.Usage, capMilli, machineCores int64) string {
	share := u.HeldBack()
	if share < berth.HeldBackFrom {
		return ""
	}

	limit := berth.CapCores(capMilli)
	cores := fmt.Sprintf("%d cores", limit)

	if limit == 1 {
		cores = "1 core"
	}

	note := fmt.Sprintf("its limit of %s held it back in %.0f %% of the time: let it start fewer threads and workers", cores, 100*share)
	if more := min(2*limit, machineCores); 1000*more > capMilli {
		note += fmt.Sprintf(", or write `resources: {cpus: %d}`", more)
	}

	return note
}
