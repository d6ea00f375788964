//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/devstack"
)

// buildPrevious builds it once for all tests that want it at the same time.
var buildPrevious = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("../../scripts/previous-berth")
	cmd.Stderr = os.Stderr

	out, err := cmd.Output()

	return strings.TrimSpace(string(out)), err
})

// previous is the binary of the version before this one.
func previous(t *testing.T) string {
	t.Helper()

	path, err := buildPrevious()
	require.NoError(t, err)

	return path
}

// startWith is start with another berth.
func startWith(t *testing.T, program string, workerFlags ...string) *stack {
	t.Helper()

	return (&stack{t: t, program: program, flags: workerFlags}).begin()
}

// swap replaces the berth that runs, as an upgrade or a roll-back does. Its
// containers go on meanwhile.
func (s *stack) swap(program string, signal syscall.Signal) {
	s.t.Helper()

	stop(s.worker, signal)
	stop(s.dev, syscall.SIGTERM)

	s.program = program
	s.startDev()
	s.startWorker()
}

// unmeasured is a sweep whose shape nobody has measured: its trials probe.
func unmeasured(ms string) string {
	return "name: upgraded\nimage: berth-test/busy:1\ncommand: [/busy, train, \"" + ms + "\", \"{{n}}\"]\n" +
		"parameters: [{name: n, type: float, min: 0, max: 1}]\nsearch: {algorithm: random}\nlimits: {max_trials: 6}\n" +
		"objective: {metric: val}\nmetrics: {source: stdout}\n"
}

// nextEdits make of this version's source one that a later version may be: it
// injects one more variable into containers, and its workflows issue one more
// command, behind a marker.
var nextEdits = map[string][2]string{
	"internal/runtrial/launch.go": {
		`"PYTHONDONTWRITEBYTECODE":        "1",`, `"PYTHONDONTWRITEBYTECODE": "1", "BERTH_TEST_NEXT": "1",`,
	},
	"workflows/trial.go": {
		"	end, err := t.run(ctx)\n", `
			if workflow.GetVersion(ctx, "test-next", workflow.DefaultVersion, 1) == 1 {
				if err := workflow.Sleep(ctx, 1_000_000); err != nil { return TrialResult{}, err }
			}
			end, err := t.run(ctx)
		`,
	},
	"workflows/sweep.go": {
		"if err := s.begin(ctx); err != nil {", `
			if workflow.GetVersion(ctx, "test-next", workflow.DefaultVersion, 1) == 1 {
				if err := workflow.Sleep(ctx, 1_000_000); err != nil { return SweepView{}, err }
			}
			if err := s.begin(ctx); err != nil {`,
	},
}

// buildNext builds that version beside the binary of all tests.
var buildNext = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}

	dir := filepath.Dir(binary)
	replaced := map[string]string{}

	for name, edit := range nextEdits {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}

		if strings.Count(string(source), edit[0]) != 1 {
			return "", fmt.Errorf("%s does not hold %q once", name, edit[0])
		}

		copied := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(copied, []byte(strings.Replace(string(source), edit[0], edit[1], 1)), 0o600); err != nil {
			return "", err
		}

		replaced[filepath.Join(root, name)] = copied
	}

	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}

	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "berth-next")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}

	out, err := exec.Command("go", "build", "-overlay", file, "-o", program, "github.com/berthml/berth/cmd/berth").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}

	return program, nil
})

// next is the binary of a version after this one.
func next(t *testing.T) string {
	t.Helper()

	path, err := buildNext()
	require.NoError(t, err)

	return path
}

// What one version began, the one after it carries on: containers that run,
// sweeps and trials that wait, a probe that is under way, a sweep that is
// paused. Nothing is repeated and nothing is lost.
func TestUpgrade_CarriesOnWhatThePreviousVersionBegan(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		to     func(*testing.T) string
		signal syscall.Signal
	}{
		"this version, after a kill": {func(*testing.T) string { return binary }, syscall.SIGKILL},
		"the one after it":           {next, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := startWith(t, previous(t))
			paused := s.submit(busy(2, 200, small))
			_, err := s.api.PauseSweepWithResponse(t.Context(), paused)
			require.NoError(t, err)

			id := s.submit(busy(4, 15_000, small))
			s.until(id, time.Minute, running(2))
			probing := s.submit(unmeasured("300"))
			before := s.twoRunning()

			s.swap(tt.to(t), tt.signal)

			sweep := s.until(id, 3*time.Minute, ended)
			require.Equal(t, 4, sweep.Counts.Succeeded)

			attempts := s.attempts(id)
			require.Len(t, attempts, 4, "no attempt was repeated")

			ids := map[string]bool{}
			for _, a := range attempts {
				ids[a.ContainerID] = true
			}

			for _, c := range before {
				require.True(t, ids[c.id], "container %s was not adopted", c.name)
			}

			require.Equal(t, 6, s.until(probing, time.Minute, ended).Counts.Succeeded)

			waits := s.until(paused, time.Minute, func(client.Sweep) bool { return true })
			if waits.State == client.SweepStatePaused { // it may have ended before the pause
				_, err = s.api.ResumeSweepWithResponse(t.Context(), paused)
				require.NoError(t, err)
			}

			require.Equal(t, 2, s.until(paused, time.Minute, ended).Counts.Succeeded)

			// What runs is the later version: it shows in a container of its own.
			shown := s.submit(busy(1, 30_000, small))
			s.until(shown, time.Minute, running(1))
			require.Eventually(t, func() bool { return len(s.running()) == 1 }, time.Minute, tick)

			env, err := s.docker("inspect", "--format", "{{.Config.Env}}", s.running()[0].id).Output()
			require.NoError(t, err)
			require.Equal(t, strings.Contains(s.program, "berth-next"), strings.Contains(string(env), "BERTH_TEST_NEXT"))

			_, err = s.api.CancelSweepWithResponse(t.Context(), shown)
			require.NoError(t, err)
		})
	}
}

// An upgrade that is taken back: what the previous version began goes on under
// it again, also what this version carried on in between, and later under this
// one once more.
func TestUpgrade_GoesBack(t *testing.T) {
	t.Parallel()

	before := previous(t)
	s := startWith(t, before)
	id := s.submit(busy(8, 12_000, small))
	s.until(id, time.Minute, running(2))

	s.swap("", syscall.SIGTERM)
	s.until(id, time.Minute, func(sweep client.Sweep) bool { return sweep.Counts.Succeeded >= 2 && sweep.Counts.Running == 2 })

	stop(s.worker, syscall.SIGTERM)
	stop(s.dev, syscall.SIGTERM)
	s.migrateTo(t, "5")

	s.program = before
	s.startDev()
	s.startWorker()
	s.until(id, time.Minute, func(sweep client.Sweep) bool { return sweep.Counts.Succeeded >= 4 && sweep.Counts.Running == 2 })

	s.swap("", syscall.SIGTERM)
	require.Equal(t, 8, s.until(id, 2*time.Minute, ended).Counts.Succeeded)
	require.Len(t, s.attempts(id), 8, "no attempt was repeated")

	// The installation is the one that Temporal knows: it takes new sweeps.
	require.Equal(t, 2, s.until(s.submit(busy(2, 200, small)), time.Minute, ended).Counts.Succeeded)
}

// migrateTo takes the schema of a stack that is stopped back, as a person does.
func (s *stack) migrateTo(t *testing.T, version string) {
	t.Helper()

	database, err := devstack.StartPostgres(t.Context(), devstack.PostgresConfig{Dir: filepath.Join(s.dir, "postgres")})
	require.NoError(t, err)

	out, err := exec.Command(binary, "migrate", "--to", version, "--yes", "--postgres-url", database.URL).CombinedOutput() //nolint:noctx // a few statements
	require.NoError(t, err, string(out))
	require.NoError(t, database.Stop())
}
