package cli

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestExport_ToFilesAndStandardOutput(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.AddMetric(apitest.AttemptID(1, 1), "loss", 1, 0.5, berth.MetricFinite)
	server, dir := serve(t, store), t.TempDir()
	sweep := apitest.NewID(1)[:8]

	run := func(args ...string) outcome {
		return execute(t.Context(), server, append([]string{"sweep", "export", sweep}, args...)...)
	}

	printed := run()
	require.Equal(t, ExitOK, printed.code, printed.stderr)
	require.Len(t, strings.Split(strings.TrimSpace(printed.stdout), "\n"), 5)
	require.True(t, strings.HasPrefix(printed.stdout, "number,id,state,value,params.lr,"))

	metrics := run("--what", "metrics", "--format", "jsonl")
	require.Equal(t, ExitOK, metrics.code, metrics.stderr)
	require.Equal(t, 1, strings.Count(metrics.stdout, "\n"))
	require.JSONEq(t, `{"trial":1,"attempt":1,"counts":true,"name":"loss","step":1,"value":0.5,"status":"finite","final":false,"at":"2026-11-21T12:00:00Z"}`, metrics.stdout)

	path := filepath.Join(dir, "trials.parquet")
	require.NoError(t, os.WriteFile(path, []byte("an older one"), 0o600))

	filed := run("--format", "parquet", "-o", path)
	require.Equal(t, ExitOK, filed.code, filed.stderr)
	require.Empty(t, filed.stdout)

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(data), "PAR1"))

	for want, args := range map[string][]string{
		`--format "xlsx" is none that Berth exports`: {"--format", "xlsx"},
		`.to_mlflow(…)`:            {"--format", "mlflow"},
		`.to_tensorboard(…)`:       {"--format", "tensorboard", "-o", filepath.Join(dir, "logs")},
		`--what "logs" is neither`: {"--what", "logs"},
		"is its directory there?":  {"-o", filepath.Join(dir, "none", "x.csv")},
	} {
		result := run(args...)
		require.Equal(t, ExitUsage, result.code)
		require.Contains(t, result.stderr, want)
	}

	missing := execute(t.Context(), server, "sweep", "export", "ffff", "-o", filepath.Join(dir, "missing.csv"))
	require.Equal(t, ExitNotFound, missing.code)

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "what failed leaves nothing")
}

// A part that was cut is not taken for the whole: nothing of it is left.
func TestExport_CutKeepsTheOlderFile(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("number,id\n1,a\n"))
		_ = http.NewResponseController(w).Flush()

		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)

	path := filepath.Join(t.TempDir(), "trials.csv")
	require.NoError(t, os.WriteFile(path, []byte("an older one"), 0o600))

	result := execute(t.Context(), server.URL, "sweep", "export", "abcd", "-o", path)
	require.Equal(t, ExitUnreachable, result.code)
	require.Contains(t, result.stderr, "ended its answer before all was sent")

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an older one", string(data), "the older file stays")

	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A full disk, or a closed reader, does not count as an unreachable server.
func TestExport_SaysWhoFailed(t *testing.T) {
	t.Parallel()

	server := serve(t, apitest.Sample(t))
	o := &options{getenv: func(string) string { return "" }, server: server}
	r, err := o.connect()
	require.NoError(t, err)

	e := exported{sweep: apitest.NewID(1), format: "csv", what: "trials"}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)

	defer func() { _ = full.Close() }()

	err = r.export(t.Context(), e, full)
	require.Equal(t, ExitError, ExitCode(err))
	require.ErrorContains(t, err, "writing what was received: no space left")
}

// `-o /dev/null` of root, and `-o` of a named pipe, are written to. A device of the machine is not replaced.
func TestExport_ReplacesNoDevice(t *testing.T) {
	t.Parallel()

	server, path := serve(t, apitest.Sample(t)), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))

	reader, err := os.OpenFile(path, os.O_RDWR, 0) // so that no end blocks
	require.NoError(t, err)

	defer func() { _ = reader.Close() }()

	result := execute(t.Context(), server, "sweep", "export", apitest.NewID(1), "-o", path)

	require.Equal(t, ExitOK, result.code, result.stderr)

	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type(), "the pipe is now %s", info.Mode())

	line, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(line, "number,id,state,"), line)
}
