//go:build nightly

package cli

import (
	"path/filepath"
	"testing"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// pandas and pyarrow read the same from all formats of the command's output: names,
// types, nulls, text with quotes and line breaks, and numbers that are not finite.
// internal/export holds the formats to their values.
func TestExport_PandasReadsTables(t *testing.T) {
	t.Parallel()

	store, dir := apitest.Sample(t), t.TempDir()
	server := serve(t, store)

	store.Exec(`UPDATE trials SET state = 'failed', value = NULL, message = E'ValueError: "3",\nlook at its log' WHERE number = 3`)
	store.Exec(`UPDATE trials SET params = '{"lr": 0.1, "width": 64}', state = 'waiting', failure_kind = '', value = NULL, started_at = NULL, finished_at = NULL WHERE number = 4`)

	for step, status := range []berth.MetricStatus{berth.MetricFinite, berth.MetricNaN, berth.MetricPosInfinity, berth.MetricNegInfinity} {
		store.AddMetric(apitest.AttemptID(1, 1), "loss", int64(step), 1.0/3, status)
	}

	for _, what := range []string{"trials", "metrics"} {
		for _, format := range []string{"csv", "jsonl", "parquet"} {
			succeed(t, server, "sweep", "export", apitest.NewID(1), "--what", what, "--format", format, "-o", filepath.Join(dir, what+"."+format))
		}
	}

	t.Log(runtimetest.Python(t, "testdata/exports/read_tables.py", dir))
}
