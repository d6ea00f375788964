//go:build integration

package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/script"
)

func TestImageCheck_TensorFlow(t *testing.T) {
	t.Parallel()

	got := berthIn(t, t.TempDir(), nil, "image", "check", "berth-examples/tensorflow:1", "-o", "json")
	require.Equal(t, 0, got.code, got.err)

	var found struct {
		StartSeconds float64             `json:"start_seconds"`
		Inside       *script.ImageReport `json:"inside"`
		Problem      string              `json:"problem"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &found))
	require.Empty(t, found.Problem)
	require.Positive(t, found.StartSeconds)
	require.Equal(t, 65532, found.Inside.UID)

	version, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", "none", "berth-examples/tensorflow:1",
		"python3", "-c", "import importlib.metadata as m; print(m.version('tensorflow-cpu'))").Output()
	require.NoError(t, err)

	tensorflow := found.Inside.Frameworks[0]
	require.Equal(t, "tensorflow", tensorflow.Module)
	require.Equal(t, strings.TrimSpace(string(version)), tensorflow.Version)
	require.Empty(t, tensorflow.Error)
	require.Positive(t, tensorflow.ImportSeconds)
}
