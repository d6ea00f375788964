//go:build integration && nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// saving writes a checkpoint of 8 MiB each two seconds, twice as much in all as it may.
const saving = `
import os, time
for epoch in range(1, 10):
    with open(f"/trial/checkpoint/epoch-{epoch:02}.keras", "wb") as f:
        f.write(os.urandom(8 << 20))
    time.sleep(2)
print("val=1")
`

// A trial that saves each epoch stays below its limit when it keeps the newest, and a limit of
// the sweep file ends one that does not, with what to write.
func TestKeep_CheckpointsAndALimitOfTheSweep(t *testing.T) {
	t.Parallel()

	s := start(t, "--cpus", "8", "--memory", "3GiB")
	command, err := json.Marshal([]string{"python3", "-c", saving})
	require.NoError(t, err)

	sweep := `{name: keeps, image: 'berth-examples/digits:1', command: %s, parameters: [{name: n, values: [1]}], search: {algorithm: grid}, ` +
		`objective: {metric: val}, resources: {memory: 256MiB}, probe: {mode: off}, limits: {max_output: 44MiB%s}}`
	keeps, fills := s.submit(fmt.Sprintf(sweep, command, ", keep_checkpoints: 2")), s.submit(fmt.Sprintf(sweep, command, ""))

	s.until(keeps, 3*time.Minute, ended)
	s.until(fills, 3*time.Minute, ended)

	trial := s.trials(keeps)[0]
	require.Equal(t, client.TrialStateSucceeded, trial.State, trial.Message)

	entries, err := os.ReadDir(filepath.Join(s.dir, "host", "checkpoints", trial.ID))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "epoch-08.keras", entries[0].Name())
	require.Equal(t, "epoch-09.keras", entries[1].Name())

	full := s.trials(fills)[0]
	require.Equal(t, client.TrialStateFailed, full.State)
	require.Equal(t, "disk_quota", full.FailureKind)
	require.Contains(t, full.Message, "wrote more than 44 MiB")
	require.Contains(t, full.Message, "raise limits.max_output in the sweep file")

	s.requireQuiet()
}
