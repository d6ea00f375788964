package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// CPUIdle returns how much of the machine's processor time since boot was idle,
// and how much there was, both in clock ticks over all cores. Waiting for a
// disk counts as idle: the core was free.
func (f FS) CPUIdle() (idle, total int64, err error) {
	data, err := os.ReadFile(f.proc("stat"))
	if err != nil {
		return 0, 0, fmt.Errorf("reading processor time: %w", err)
	}

	first, _, _ := bytes.Cut(data, []byte("\n"))

	fields := strings.Fields(string(first))
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, berth.Errorf(berth.KindInternal, "reading processor time: unexpected line %q", first)
	}

	// user nice system idle iowait irq softirq steal (proc(5)); guest time is
	// inside user time already.
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading processor time: %w", err)
		}

		total += ticks

		if i == 3 || i == 4 {
			idle += ticks
		}
	}

	return idle, total, nil
}
