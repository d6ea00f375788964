package workflows_test

import (
	"compress/gzip"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth/workflows"
)

// TestReplay checks that today's workflows issue the commands of the histories in
// testdata, which scripts/record-histories records. A change that would break
// running workflows fails here.
func TestReplay(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.json.gz")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 20, "a recording stays: its workflows may still run")

	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()

			file, err := os.Open(path)
			require.NoError(t, err)

			defer file.Close() //nolint:errcheck // only read

			unzipped, err := gzip.NewReader(file)
			require.NoError(t, err)

			history, err := client.HistoryFromJSON(unzipped, client.HistoryJSONOptions{})
			require.NoError(t, err)

			replayer := worker.NewWorkflowReplayer()
			workflows.Register(replayer)

			started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes() // ids of attempts derive from the workflow's
			original := workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}
			require.NotEmpty(t, original.ID)
			require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history,
				worker.ReplayWorkflowHistoryOptions{OriginalExecution: original}))
		})
	}
}
