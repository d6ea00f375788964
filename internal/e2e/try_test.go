//go:build integration

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// buffer is a process's output, readable while it runs.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.data.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.data.String()
}

// A try tells which stage does not write the same twice; a sweep with the same stages then shares
// the first outputs.
func TestTry_RunsStagesTwice(t *testing.T) {
	t.Parallel()

	s := plain(t)
	dir := t.TempDir()
	file := staged("try", ".1, .2", "open('/trial/out/noise', 'wb').write(os.urandom(8))")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sweep.yaml"), []byte(file), 0o600))

	got := berthIn(t, dir, []string{"BERTH_SERVER=" + s.url}, "try", "-f", "sweep.yaml", "--set", "width=2", "--set", "rate=0.1")
	require.Equal(t, 0, got.code, got.err)
	require.Regexp(t, `(?m)^stage base +finished; its output agrees byte for byte with its first run`, got.out)
	require.Regexp(t, `(?m)^stage features +finished; its output differs from its first run with the same inputs: noise\. Set seeds from TRIAL_SEED`, got.out)
	require.Equal(t, 2, strings.Count(got.out, "\nstage "), got.out)
	require.Regexp(t, `(?m)^value +5.1$`, got.out)

	sweeps, err := s.api.ListSweepsWithResponse(t.Context(), &client.ListSweepsParams{Name: new("try (try)")})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"base": 2, "features": 2, "main": 1}, s.attemptsByStage(sweeps.JSON200.Data[0].ID))

	id := s.submit(strings.Replace(file, "values: [1, 2, 3]", "values: [2]", 1))
	require.Equal(t, client.SweepStateSucceeded, s.until(id, patience, ended).State)
	require.Equal(t, map[string]int{"main": 2}, s.attemptsByStage(id))
}

// One trial of a sweep file shows its log, its metrics and its usage; a failed
// one shows why; an interrupted one is canceled.
func TestTry(t *testing.T) {
	t.Parallel()

	s := plain(t)
	dir := t.TempDir()
	env := []string{"BERTH_SERVER=" + s.url}
	file := `name: tried
image: berth-test/busy:1
command: [/busy, train, "{{ms}}", "{{score}}", "100"]
parameters:
  - {name: score, min: 0.5, max: 0.9, default: 0.75}
  - {name: ms, value: 1500, memory: false}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
limits: {max_trials: 50}
`
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("sweep.yaml", file)
	write("other.yaml", strings.Replace(file, "metric: val", "metric: accuracy", 1))
	write("broken.yaml", strings.Replace(file, "[/busy, train", "[/busy, exit, \"9\"", 1))

	got := berthIn(t, dir, env, "try", "-f", "sweep.yaml")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.err, `{"val": 0.75}`, "its log")
	require.Regexp(t, `metric val +1 value, last 0.75`, got.out)
	require.Regexp(t, `(?m)^value +0.75$`, got.out)
	require.Regexp(t, `measured +\S+ s, peak 1\d\d MiB of`, got.out)
	require.Contains(t, got.err, "next: berth sweep submit -f sweep.yaml --wait")

	mine := &client.ListSweepsParams{Name: new("tried (try)")}
	sweeps, err := s.api.ListSweepsWithResponse(t.Context(), mine)
	require.NoError(t, err)
	require.Len(t, sweeps.JSON200.Data, 1)
	require.Equal(t, 1, sweeps.JSON200.Data[0].Counts.Total)

	got = berthIn(t, dir, env, "try", "-f", "sweep.yaml", "--set", "score=0.6", "--set", "ms=10")
	require.Equal(t, 0, got.code, got.err)
	require.Regexp(t, `(?m)^value +0.6$`, got.out)

	got = berthIn(t, dir, env, "try", "-f", "other.yaml")
	require.Equal(t, 8, got.code)
	require.Contains(t, got.err, `never reported "accuracy"; it reported "val"`)

	got = berthIn(t, dir, env, "try", "-f", "broken.yaml")
	require.Equal(t, 8, got.code)
	require.Contains(t, got.err, "exit code 9")
	require.Contains(t, got.err, "when it is mended")

	var out, errs buffer

	cmd := exec.CommandContext(t.Context(), binary, "try", "-f", "sweep.yaml", "--set", "ms=60000")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "trial 1 runs") }, patience, tick, "%s", &errs)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // it ends with its own code
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
	require.Contains(t, errs.String(), "the try is canceled")

	sweeps, err = s.api.ListSweepsWithResponse(t.Context(), mine)
	require.NoError(t, err)

	sweep := s.until(sweeps.JSON200.Data[0].ID, patience, ended)
	require.Equal(t, client.SweepStateCanceled, sweep.State)
	s.requireQuiet(sweep.ID)
}
