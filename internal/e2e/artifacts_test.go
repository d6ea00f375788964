//go:build integration

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// TestArtifacts_LeaveBerth runs real containers that write a model, and fetches
// that of the best trial by the command line.
func TestArtifacts_LeaveBerth(t *testing.T) {
	t.Parallel()

	s := startOn(t, []string{"BERTH_ARTIFACTS=" + filepath.Join(t.TempDir(), "store")})
	id := s.submit(`
name: artifacts
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import json, os, sys
    n = int(sys.argv[1])
    os.makedirs("/trial/out/model")
    open("/trial/out/model/weights.bin", "w").write("x" * n)
    os.symlink("/etc/passwd", "/trial/out/link")
    print(json.dumps({"val": n}))
  - "{{n}}"
parameters: [{name: n, values: [1000, 3000, 2000]}]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
resources: {memory: 256MiB}
probe: {mode: 'off'}
`)
	sweep := s.until(id, 2*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	for _, trial := range s.trials(id) {
		require.Eventually(t, func() bool {
			set, err := s.api.ListFilesWithResponse(t.Context(), trial.ID, nil)

			return err == nil && set.JSON200 != nil && set.JSON200.State == client.FileStateStored &&
				set.JSON200.Files == 1 && set.JSON200.LeftOut == 1
		}, time.Minute, tick, "trial %d", trial.Number)
	}

	dir := filepath.Join(t.TempDir(), "best")
	out, err := exec.CommandContext(t.Context(), binary, "sweep", "best", id, "--server", s.url, "--download", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "symbolic link")

	model, err := os.ReadFile(filepath.Join(dir, "model", "weights.bin"))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", 3000), string(model))

	s.requireQuiet()
}
