//go:build !cgo || !linux

package nvml_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/nvml"
)

func TestOpen_WithoutCgo(t *testing.T) {
	t.Parallel()

	_, err := nvml.Open(t.Context(), nvml.Config{})
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "this berth was built without cgo")
}
