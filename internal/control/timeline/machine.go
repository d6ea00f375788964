package timeline

import "time"

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
