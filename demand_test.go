package berth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Of one kind of GPU the MPS class comes first, whatever the model's name.
func TestDemands_Classes(t *testing.T) {
	t.Parallel()

	d := berth.Demands{"B": {}, "A (X)": {}, "A": {}, "B (MPS)": {}, "A (MPS)": {}, berth.ClassCPU: {}}
	require.Equal(t, []berth.DeviceClass{"A (MPS)", "A", "A (X)", "B (MPS)", "B", berth.ClassCPU}, d.Classes())
	require.Equal(t, berth.DeviceClass("A"), berth.DeviceClass("A (MPS)").Twin())
	require.Equal(t, berth.DeviceClass("A (MPS)"), berth.DeviceClass("A").Twin())
}
