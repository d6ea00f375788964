//go:build integration

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// TestDatasets: a trial reads the data set that its sweep names, cannot write
// there, and says which version it had; a name that no machine has is refused.
func TestDatasets(t *testing.T) {
	t.Parallel()

	s := plain(t)
	file := `
name: data
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    print(open("/data/flowers/labels.txt").read(), flush=True)
    try: open("/data/flowers/mine", "w")
    except OSError as e: print(e)
  - "{{n}}"
parameters: [{name: n, values: [1]}]
objective: {metric: acc, goal: maximize}
limits: {max_trials: 1}
metrics: {source: stdout}
datasets: [{name: flowers, target: /data/flowers}]
`
	id := s.submit(file)
	sweep := s.until(id, patience, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.InDelta(t, 0.75, sweep.Best.Value, 0)

	attempt := s.attempts(id)[0]
	require.Contains(t, s.log(attempt.ID), "Read-only file system: '/data/flowers/mine'")
	require.Len(t, attempt.Datasets["flowers"], 16)
	require.NoFileExists(t, filepath.Join(s.dir, "flowers", "mine"))

	hosts, err := s.api.ListHostsWithResponse(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"flowers@" + attempt.Datasets["flowers"]}, hosts.JSON200.Data[0].Datasets)

	require.Contains(t, s.refused(strings.Replace(file, "name: flowers", "name: flowrs", 1)),
		`every host lacks the data set \"flowrs\" (there are: flowers); start a worker with --dataset flowrs=PATH`)
}
