package berth

import "time"

// MachinePointsKept is how long it is known how full machines were: a week, so that a
// Monday can be held against the one before. One host with eight GPUs has 90,720 points then.
const MachinePointsKept = 7 * 24 * time.Hour

// MachinePoint is what a host, or one of its GPUs, held in an interval: the most
// that its worker told of, every 15 s. Nil = not measured. What attempts held is 0
// where there were none.
type MachinePoint struct {
	DeviceID      string    // empty = the host itself
	At            time.Time // when the interval begins
	MemoryBytes   int64     // in all
	ReservedBytes int64     // of the memory, by leases
	MeasuredBytes *int64    // what their attempts held of it, added up
	OthersBytes   *int64    // what programs outside Berth used of it
	ActivityMilli *int64    // thousandths of a GPU's SMs that attempts kept busy
	CPUMilli      int64     // reserved thousandths of the host's cores; 0 of a GPU
	Attempts      int       // that held a lease
}

// machineIntervals are intervals that people use, up to a day.
var machineIntervals = []time.Duration{ //nolint:gochecknoglobals // a table
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// MachineInterval is the shortest interval with which no more than most of them
// cover a time.
func MachineInterval(covered time.Duration, most int) time.Duration {
	for _, every := range machineIntervals {
		if covered <= every*time.Duration(most) {
			return every
		}
	}

	return machineIntervals[len(machineIntervals)-1]
}
