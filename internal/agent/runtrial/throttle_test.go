package runtrial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestHeldBackNote(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		periods, throttled, capMilli int64
		want                         string
	}{
		"often":                  {1000, 620, 1000, "its limit of 2 cores held it back in 62 % of the time: let it start fewer threads and workers, or write `resources: {cpus: 4}`"},
		"a part of a core":       {1000, 900, 250, "its limit of 1 core held it back in 90 % of the time: let it start fewer threads and workers, or write `resources: {cpus: 2}`"},
		"has the machine":        {1000, 900, 8000, "its limit of 10 cores held it back in 90 % of the time: let it start fewer threads and workers"},
		"now and then":           {1000, 240, 1000, ""},
		"too short to say":       {40, 40, 1000, ""},
		"no limit, or not known": {0, 0, 1000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, heldBackNote(berth.Usage{CPUPeriods: c.periods, CPUThrottled: c.throttled}, c.capMilli, 8))
		})
	}
}
