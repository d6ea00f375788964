package berth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestUsage_MeanActivity(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		active, unknown time.Duration
		measured, want  int64
	}{
		"half of its run on the GPU":            {30 * time.Second, 0, 400, 200},
		"a quarter, and as long not known":      {15 * time.Second, 15 * time.Second, 400, 200},
		"all of it":                             {time.Minute, 0, 400, 400},
		"hardly anything, which is not nothing": {6 * time.Second, 0, 1, 1},
		"not known":                             {0, time.Minute, 0, 0},
	} {
		u := berth.Usage{
			Wall: berth.Duration(time.Minute), DeviceActive: berth.Duration(tt.active), DeviceUnknown: berth.Duration(tt.unknown),
			DeviceActivity: berth.DeviceActivity{SMMilli: tt.measured, DRAMMilli: tt.measured},
		}
		require.Equal(t, tt.want, u.MeanActivity().SMMilli, name)
	}
}
