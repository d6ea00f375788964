//go:build integration && nightly

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// low are bounds that a test reaches within seconds.
var low = []string{
	"--cpus", "24", "--memory", "4GiB", // booked, not used: most of these trials wait for something
	"--log-limit", "1MiB", "--log-rate", "2MiB",
	"--output-limit", "16MiB",
}

// misdeed is a misbehaving job, and how it must end.
type misdeed struct {
	sweep string
	state client.TrialState
	kind  string
	says  []string // of the trial's message
}

var misdeeds = map[string]misdeed{
	"endless log": {
		one("[/busy, flood, '0', '1024']", fromStdout), client.TrialStateFailed, "log_flood",
		[]string{"more than 2 MiB of log a second for 30s", "print less", "--log-rate"},
	},
	"binary log without an end": {
		one("[/busy, noise, '1500000']", fromStdout), client.TrialStateFailed, "no_result", []string{`"val"`},
	},
	"fork bomb": { // its 139 children took 112 MiB
		strings.Replace(one("[/busy, bomb, '3']", fromStdout), "128MiB", "512MiB", 1), client.TrialStateFailed, "user_error", []string{"the program failed (exit code "}, // 9 of one that was refused a child, 2 of one that was refused a thread
	},
	"fills the disk": {
		one("[/busy, fill, /trial/out, '100']", fromStdout), client.TrialStateFailed, "disk_quota",
		[]string{"more than 16 MiB", "/trial/out", "--output-limit"},
	},
	"fills the disk with checkpoints": {
		one("[/busy, fill, /trial/checkpoint, '100']", fromStdout), client.TrialStateFailed, "disk_quota", []string{"/trial/checkpoint"},
	},
	"metrics flood": {
		one("[/busy, metrics, '30000', '500']", fromFile), client.TrialStateSucceeded, "ok",
		[]string{"points were left out of its curves", "100 a second"},
	},
	"too many metrics": {
		one("[/busy, metrics, '1500', '1500']", fromFile), client.TrialStateSucceeded, "ok", []string{"more than 1000 metrics"},
	},
	"metrics file is a fifo": {
		one("[/busy, trick, fifo]", fromFile), client.TrialStateFailed, "no_result", []string{`"val"`},
	},
	"metrics file is a link": {
		one("[/busy, trick, symlink]", fromFile), client.TrialStateFailed, "no_result", []string{`"val"`},
	},
	"metrics file is a link within the host's directory": {
		one("[/busy, trick, link out]", fromFile), client.TrialStateFailed, "no_result", []string{`"val"`},
	},
	"metrics file is a directory": {
		one("[/busy, trick, directory]", fromFile), client.TrialStateFailed, "no_result", []string{`"val"`},
	},
	"metrics file is a device": {
		one("[/busy, trick, device]", fromFile), client.TrialStateFailed, "user_error", []string{"operation not permitted"},
	},
	"metrics file is 10 GiB of nothing": {
		one("[/busy, trick, sparse]", fromFile), client.TrialStateSucceeded, "ok", []string{"metrics file is larger than 256 MiB"},
	},
}

// TestMisbehave runs misbehaving jobs, all on one machine and at once. Each
// ends with its own kind and names the next step; beside them a sweep of
// well-behaved trials goes on, and the API answers.
func TestMisbehave(t *testing.T) { //nolint:tparallel // the jobs run in parallel
	t.Parallel()

	s := start(t, low...)
	neighbour := s.submit(busy(12, 1000, "resources: {memory: 64MiB, cpus: 1}", "probe: {mode: 'off'}", "limits: {max_parallel: 2}"))
	stubborn := s.submit(one("[/busy, ignore]", fromStdout))
	sweeps := map[string]string{}

	for name, m := range misdeeds {
		sweeps[name] = s.submit(m.sweep)
	}

	s.answers(neighbour)
	s.ignoreSIGTERM(stubborn)

	for name, m := range misdeeds {
		t.Run(name, func(t *testing.T) {
			s := s.on(t)
			s.until(sweeps[name], 2*time.Minute, ended)

			trial := s.trials(sweeps[name])[0]
			require.Equal(t, m.state, trial.State, trial.Message)
			require.Equal(t, m.kind, trial.FailureKind, trial.Message)

			for _, says := range m.says {
				require.Contains(t, trial.Message, says)
			}

			require.NotContains(t, trial.Message, "exit code 8", "a bomb that was refused nothing")

			attempts := s.attempts(sweeps[name])
			require.Len(t, attempts, 1, "trying again would do no good")
			s.requireBounded(attempts[0])
		})
	}

	sweep := s.sweep(neighbour)
	require.Equal(t, 12, sweep.Counts.Succeeded, "beside all that")

	for _, a := range s.attempts(neighbour) { //nolint:paralleltest // the linter means the loop above: its subtests have ended
		require.Equal(t, "ok", a.FailureKind, a.Message)
		require.Less(t, a.FinishedAt.Sub(*a.StartedAt), time.Minute, "a trial of one second")
	}

	s.requireQuiet()
}

// requireBounded checks that an attempt's records stay within the bounds.
func (s *stack) requireBounded(a client.Attempt) {
	s.t.Helper()

	text, err := s.api.ReadLogWithResponse(s.t.Context(), a.ID, &client.ReadLogParams{Limit: new(int64(16 << 20))})
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, text.StatusCode())
	require.Less(s.t, len(text.Body), 1<<20+256<<10+100<<10, "the limit, and the end")
	require.NotContains(s.t, string(text.Body), "root:")

	metrics, err := s.api.ListMetricsWithResponse(s.t.Context(), a.ID, &client.ListMetricsParams{Limit: new(100_000)})
	require.NoError(s.t, err)
	require.NotNil(s.t, metrics.JSON200, string(metrics.Body))
	require.LessOrEqual(s.t, len(metrics.JSON200.Data), 20_000, "10,000 at once, 100 a second, and the last of each of 1,000 metrics")

	if len(text.Body) >= 1<<20 {
		require.Contains(s.t, string(text.Body), "the log limit is reached")
	}

	var files int64

	out := filepath.Join(s.dir, "host", "attempts", a.ID, "out")
	require.NoError(s.t, filepath.Walk(out, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Size() < 1<<30 {
			files += info.Size()
		}

		return err
	}))
	require.LessOrEqual(s.t, files, int64(16<<20))
}

// ignoreSIGTERM cancels a job that does: on a busy machine it must be gone half a minute after the grace.
func (s *stack) ignoreSIGTERM(id string) {
	s.t.Helper()

	const grace = 3 * time.Second // of every stack

	s.until(id, time.Minute, running(1))

	attempt := s.attempts(id)[0].ID
	mine := func() bool {
		for _, c := range s.containers() {
			if strings.Contains(c.name, attempt) {
				return true
			}
		}

		return false
	}

	require.Eventually(s.t, mine, 30*time.Second, tick)

	asked := time.Now()
	canceled, err := s.api.CancelSweepWithResponse(s.t.Context(), id)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusAccepted, canceled.StatusCode(), string(canceled.Body))
	require.Eventually(s.t, func() bool { return !mine() }, time.Until(asked.Add(grace+30*time.Second)), tick)

	s.until(id, 30*time.Second, ended)
	require.Equal(s.t, "canceled", s.trials(id)[0].FailureKind)

	ended := s.attempts(id)[0]
	require.Equal(s.t, 137, *ended.ExitCode, "by SIGKILL")
}

// answers asks the API again and again until the well-behaved sweep has ended.
func (s *stack) answers(id string) {
	s.t.Helper()

	var slowest time.Duration

	require.Eventually(s.t, func() bool {
		asked := time.Now()
		sweep := s.sweep(id)
		slowest = max(slowest, time.Since(asked))

		return ended(sweep)
	}, 2*time.Minute, tick)
	s.t.Log("slowest answer:", fmt.Sprint(slowest))
	require.Less(s.t, slowest, 20*time.Second, "beside all that")
}
