//go:build gpu && cgo && linux

package nvml_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/nvml"
	"github.com/berthml/berth/internal/testkit/gputest"
)

// The machine's own driver and GPUs: `go test -tags gpu -run TestReal -v
// ./internal/agent/nvml`. It prints the inventory, to be compared with nvidia-smi.
func TestReal(t *testing.T) {
	t.Parallel()

	open := func(t *testing.T) gpu.Driver {
		t.Helper()

		d, err := nvml.Open(t.Context(), nvml.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })

		return d
	}

	inventory, err := open(t).Inventory(t.Context())
	require.NoError(t, err)
	t.Logf("%+v", inventory)

	gputest.Run(t, open)
}
