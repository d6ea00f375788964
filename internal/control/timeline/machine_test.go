package timeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

func TestMachineInterval(t *testing.T) {
	t.Parallel()

	require.Equal(t, time.Minute, timeline.MachineInterval(6*time.Hour, 360))
	require.Equal(t, 2*time.Minute, timeline.MachineInterval(6*time.Hour, 359))
	require.Equal(t, 30*time.Minute, timeline.MachineInterval(berth.MachinePointsKept, 400))
	require.Equal(t, 24*time.Hour, timeline.MachineInterval(berth.MachinePointsKept, 10))
	require.Equal(t, 24*time.Hour, timeline.MachineInterval(berth.MachinePointsKept, 1), "there is none longer")
}
