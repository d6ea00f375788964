package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/export"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 123_456_000, time.UTC)

// sample is a spec with a parameter of each type, and two trials: one with all
// fields, and one that waits with its conditional parameter absent.
func sample() (berth.Spec, []berth.ExportedTrial) {
	spec := berth.Spec{
		Parameters: []berth.Parameter{
			{Name: "lr", Type: berth.ParameterFloat},
			{Name: "batch", Type: berth.ParameterInt},
			{Name: "optimizer", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue("sgd"), berth.StringValue("=adam")}},
			{Name: "momentum", Type: berth.ParameterFloat, When: map[string]berth.Values{"optimizer": {berth.StringValue("sgd")}}},
			{Name: "nesterov", Type: berth.ParameterCategorical, Values: berth.Values{berth.BoolValue(true), berth.BoolValue(false)}},
			{Name: "width", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(32), berth.IntValue(64)}},
			{Name: "rate", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(1), berth.FloatValue(0.5)}},
			{Name: "mixed", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(1), berth.StringValue("auto")}},
			{Name: "epochs", Type: berth.ParameterFixed, Value: new(berth.IntValue(5))},
			{Name: "warmup", Type: berth.ParameterDerived, Expr: "ceil(0.1 * epochs)"},
		},
		Datasets: []berth.DatasetMount{{Name: "flowers", Target: "/data/flowers"}},

		Objective: &berth.Objective{Metric: "acc"}, Constraints: []berth.Constraint{{Metric: "ms", Max: new(20.0)}},
	}

	full := berth.ExportedTrial{
		Trial: berth.Trial{
			ID: "00000000-0000-0000-0000-000000000001", Number: 1, State: berth.TrialSucceeded, Value: new(0.97), Results: berth.Results{"acc": 0.97, "ms": 12}, Attempts: 3,
			Kind: berth.FailureOK, Message: "two\nlines, \"quoted\"", CreatedAt: start, StartedAt: new(start), FinishedAt: new(start.Add(1500 * time.Millisecond)),
			Params: berth.Assignment{
				"lr": berth.FloatValue(1e-5), "batch": berth.IntValue(16), "optimizer": berth.StringValue("sgd"), "momentum": berth.FloatValue(1),
				"nesterov": berth.BoolValue(false), "width": berth.IntValue(64), "rate": berth.IntValue(1), "mixed": berth.IntValue(1),
				"epochs": berth.IntValue(5), "warmup": berth.IntValue(1),
			},
		},
		HostName: "laptop",
		Counts: &berth.Attempt{
			ID: "00000000-0000-0000-0000-000000000002", Number: 3, DeviceID: "GPU-1", ExitCode: new(0), Datasets: map[string]string{"flowers": "v2"},
			Demand: berth.Demand{MemoryBytes: 1 << 30, DeviceBytes: 2 << 30}, Usage: berth.Usage{MemoryPeakBytes: 1 << 29, DevicePeakBytes: 1 << 30},
		},
	}
	waits := berth.ExportedTrial{Trial: berth.Trial{
		ID: "00000000-0000-0000-0000-000000000003", Number: 2, State: berth.TrialWaiting, CreatedAt: start,
		Params: berth.Assignment{
			"lr": berth.FloatValue(0.1), "batch": berth.IntValue(32), "optimizer": berth.StringValue("=adam"), "nesterov": berth.BoolValue(true),
			"width": berth.IntValue(32), "rate": berth.FloatValue(0.5), "mixed": berth.StringValue("auto"), "epochs": berth.IntValue(5), "warmup": berth.FloatValue(1),
		},
	}}

	return spec, []berth.ExportedTrial{full, waits}
}

// written is the table of trials in a format.
func written(t *testing.T, f export.Format) []byte {
	t.Helper()

	spec, trials := sample()
	table := export.NewTrials(spec)

	var out bytes.Buffer

	w, err := export.NewWriter(f, &out, table.Columns)
	require.NoError(t, err)

	for _, trial := range trials {
		row, err := table.Row(trial)
		require.NoError(t, err)
		require.Len(t, row, len(table.Columns))
		require.NoError(t, w.Write(row))
	}

	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())

	return out.Bytes()
}

func TestCSV(t *testing.T) {
	t.Parallel()

	rows, err := csv.NewReader(bytes.NewReader(written(t, export.CSV))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)

	cells := func(row int) map[string]string {
		out := make(map[string]string)
		for i, name := range rows[0] {
			out[name] = rows[row][i]
		}

		return out
	}

	require.Equal(t, map[string]string{
		"number": "1", "id": "00000000-0000-0000-0000-000000000001", "state": "succeeded", "value": "0.97", "results.acc": "0.97", "results.ms": "12.0",
		"params.lr": "1e-05", "params.batch": "16", "params.optimizer": "sgd", "params.momentum": "1.0", "params.nesterov": "false", "params.width": "64",
		"params.rate": "1.0", "params.mixed": "1", "params.epochs": "5", "params.warmup": "1.0",
		"failure_kind": "ok", "message": "two\nlines, \"quoted\"", "attempts": "3", "attempt": "3", "attempt_id": "00000000-0000-0000-0000-000000000002",
		"exit_code": "0", "host": "laptop", "device": "GPU-1", "memory_reserved_bytes": "1073741824", "memory_peak_bytes": "536870912",
		"device_reserved_bytes": "2147483648", "device_peak_bytes": "1073741824", "seconds": "1.5",
		"created_at": "2026-11-21T12:00:00.123456Z", "started_at": "2026-11-21T12:00:00.123456Z", "finished_at": "2026-11-21T12:00:01.623456Z",
		"datasets.flowers": "v2",
	}, cells(1))

	waits := cells(2)
	require.Equal(t, "'=adam", waits["params.optimizer"], "no spreadsheet takes it for a formula")

	for _, empty := range []string{"value", "params.momentum", "failure_kind", "message", "attempt", "exit_code", "host", "device", "memory_peak_bytes", "seconds", "finished_at", "results.acc", "results.ms", "datasets.flowers"} {
		require.Empty(t, waits[empty], empty)
	}
}

func TestJSONL(t *testing.T) {
	t.Parallel()

	lines := strings.Split(strings.TrimSuffix(string(written(t, export.JSONL)), "\n"), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"params.momentum":1.0,`, "a float stays one")
	require.Contains(t, lines[1], `"params.momentum":null,`)
	require.Contains(t, lines[1], `"params.optimizer":"=adam"`)

	var row map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &row))
	require.Equal(t, "two\nlines, \"quoted\"", row["message"])
	require.Equal(t, "2026-11-21T12:00:01.623456Z", row["finished_at"])
}

func TestParquet(t *testing.T) {
	t.Parallel()

	data := written(t, export.Parquet)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)

	spec, _ := sample()
	columns := export.NewTrials(spec).Columns
	fields := file.Schema().Fields()
	require.Len(t, fields, len(columns))

	kinds := map[export.Kind]parquet.Kind{
		export.Text: parquet.ByteArray, export.Integer: parquet.Int64, export.Float: parquet.Double, export.Bool: parquet.Boolean, export.Time: parquet.Int64,
	}

	for i, c := range columns {
		require.Equal(t, c.Name, fields[i].Name(), "columns keep their order")
		require.Equal(t, kinds[c.Kind], fields[i].Type().Kind(), c.Name)
		require.Equal(t, !c.Required, fields[i].Optional(), c.Name)
	}

	rows := make([]parquet.Row, 2)
	n, err := file.RowGroups()[0].Rows().ReadRows(rows)
	require.True(t, err == nil || err == io.EOF) //nolint:errorlint // io.EOF itself
	require.Equal(t, 2, n)

	at := slices.IndexFunc(columns, func(c export.Column) bool { return c.Name == "params.momentum" })
	require.InDelta(t, 1.0, rows[0][at].Double(), 0)
	require.True(t, rows[1][at].IsNull())
}

func TestMetrics(t *testing.T) {
	t.Parallel()

	write := func(f export.Format) string {
		var out bytes.Buffer

		w, err := export.NewWriter(f, &out, export.MetricColumns())
		require.NoError(t, err)

		for i, status := range []berth.MetricStatus{berth.MetricFinite, berth.MetricNaN, berth.MetricPosInfinity, berth.MetricNegInfinity} {
			require.NoError(t, w.Write(export.MetricRow(berth.ExportedMetric{
				TrialNumber: 1, AttemptNumber: 2, Counts: true,
				MetricPoint: berth.MetricPoint{Name: "loss", Step: int64(i), Value: 3, Status: status, At: start},
			})))
		}

		require.NoError(t, w.Close())

		return out.String()
	}

	require.Equal(t, `trial,attempt,counts,name,step,value,status,final,at
1,2,true,loss,0,3.0,finite,false,2026-11-21T12:00:00.123456Z
1,2,true,loss,1,NaN,nan,false,2026-11-21T12:00:00.123456Z
1,2,true,loss,2,inf,infinity,false,2026-11-21T12:00:00.123456Z
1,2,true,loss,3,-inf,-infinity,false,2026-11-21T12:00:00.123456Z
`, write(export.CSV))
	require.Contains(t, write(export.JSONL), `"step":1,"value":null,"status":"nan",`)
}

// A value that its parameter cannot have is an error, not another value.
func TestTrials_RefuseWhatDoesNotFit(t *testing.T) {
	t.Parallel()

	table := export.NewTrials(berth.Spec{Parameters: []berth.Parameter{{Name: "batch", Type: berth.ParameterInt}}})
	_, err := table.Row(berth.ExportedTrial{Trial: berth.Trial{Number: 7, Params: berth.Assignment{"batch": berth.FloatValue(1.5)}}})
	require.ErrorContains(t, err, `exporting trial 7: "1.5" is no value of parameter "batch"`)

	row, err := table.Row(berth.ExportedTrial{Trial: berth.Trial{Params: berth.Assignment{"batch": berth.FloatValue(16)}}})
	require.NoError(t, err)
	require.Equal(t, int64(16), row[4])
}

// Every finite number reads back as itself, from CSV and from JSON.
func TestNumbers_ReadBack(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64().Draw(t, "value")
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return
		}

		var out bytes.Buffer

		w, err := export.NewWriter(export.JSONL, &out, []export.Column{{Name: "x", Kind: export.Float}})
		require.NoError(t, err)
		require.NoError(t, w.Write(export.Row{value}))
		require.NoError(t, w.Close())

		var row map[string]berth.Value
		require.NoError(t, json.Unmarshal(out.Bytes(), &row))
		require.Equal(t, berth.FloatValue(value), row["x"])
	})
}

func TestNewWriter_KnowsItsFormats(t *testing.T) {
	t.Parallel()

	_, err := export.NewWriter("xlsx", io.Discard, nil)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "write csv, jsonl or parquet")
}
