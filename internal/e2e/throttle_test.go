//go:build integration && nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// crowded starts four workers under a limit of one core, and prints the kernel's counts. On a
// busy machine it takes longer until they exceed the limit.
const crowded = `
import json, os, sys, time
for name in ("cpu.stat", "cpu/cpu.stat", "cpu,cpuacct/cpu.stat"):
    if "nr_periods" in (open("/sys/fs/cgroup/" + name).read() if os.path.exists("/sys/fs/cgroup/" + name) else ""):
        break
def stat():
    d = dict(line.split() for line in open("/sys/fs/cgroup/" + name))
    return int(d["nr_periods"]), int(d["nr_throttled"])
children = []
for _ in range(4 if sys.argv[1] == "crowd" else 0):
    pid = os.fork()
    while pid == 0:
        pass
    children.append(pid)
end = time.monotonic() + 60
while time.monotonic() < end:
    periods, throttled = stat()
    if periods > 80 and (throttled > periods / 2 or not children):
        break
    if not children:
        sum(range(100000))
    time.sleep(0.01)
for pid in children:
    os.kill(pid, 9)
periods, throttled = stat()
time.sleep(1)
print(json.dumps({"share": throttled / periods, "val": 1}))
`

// A trial with more workers than cores reports that they were held back, and the kernel's share
// of it; a trial with enough cores reports nothing.
//
// It runs alone: where others take the machine, no trial comes to its limit.
//
//nolint:paralleltest // see above
func TestThrottle_ToldAtTheTrial(t *testing.T) {
	s := start(t, "--cpus", "8", "--memory", "3GiB")
	command, err := json.Marshal([]string{"python3", "-c", crowded, "{{how}}"})
	require.NoError(t, err)

	id := s.submit(fmt.Sprintf(`{name: crowd, image: 'berth-examples/digits:1', command: %s, parameters: [{name: how, values: [crowd, calm]}], `+
		`search: {algorithm: grid}, objective: {metric: val}, resources: {memory: 256MiB, cpus: 0.5}, probe: {mode: off}}`, command))
	sweep := s.until(id, 4*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, 2)

	crowd, calm := attempts[0], attempts[1]

	said, _ := s.printed(crowd.ID)
	require.InDelta(t, said["share"], crowd.Usage.CPUThrottledShare, 0.1, "what the kernel tells the job itself")
	require.Positive(t, said["share"], "four workers want more than one core")
	t.Logf("held back in %.2f of the time", said["share"])

	report, err := s.api.GetSweepReportWithResponse(t.Context(), id, &client.GetSweepReportParams{})
	require.NoError(t, err)

	notes := strings.Join(report.JSON200.Notes, " ")

	if crowd.Usage.CPUThrottledShare >= 0.25 { // a busy machine holds the workers back before their limit does
		require.Contains(t, crowd.Message, "its limit of 1 core held it back in ")
		require.Contains(t, crowd.Message, "let it start fewer threads and workers")
		require.Contains(t, notes, "1 attempt was held back by")
	} else {
		require.NotContains(t, crowd.Message+notes, "held ")
	}

	require.Less(t, calm.Usage.CPUThrottledShare, 0.25)
	require.NotContains(t, calm.Message, "held it back")

	s.requireQuiet()
}
