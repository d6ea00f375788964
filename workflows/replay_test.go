package workflows_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/worker"

	"github.com/berthml/berth/workflows"
)

// TestReplay runs the workflows against histories recorded from real sweeps
// (scripts/record-histories): a change that would break running ones fails here.
func TestReplay(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.json.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			t.Parallel()

			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflow(workflows.SweepWorkflow)
			replayer.RegisterWorkflow(workflows.TrialWorkflow)
			replayer.RegisterWorkflow(workflows.ProbeWorkflow)
			require.NoError(t, replayer.ReplayWorkflowHistory(nil, readHistory(t, file)))
		})
	}
}

func readHistory(t *testing.T, path string) *history.History {
	t.Helper()

	file, err := os.Open(path)
	require.NoError(t, err)

	defer file.Close() //nolint:errcheck // only read

	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)

	data, err := io.ReadAll(unzipped)
	require.NoError(t, err)

	var h history.History
	require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, &h))

	return &h
}
