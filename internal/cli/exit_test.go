package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()

	_, server := sampled(t)
	sweep := apitest.NewID(1)[:8]

	for command, want := range map[string]int{
		"sweep list":                                ExitOK,
		"sweep":                                     ExitOK,
		"sweep delete --yes " + sweep + " c4":       ExitUsage,
		"sweep odd":                                 ExitUsage,
		"odd":                                       ExitUsage,
		"sweep list --odd":                          ExitUsage,
		"sweep get":                                 ExitUsage,
		"sweep list -o xml":                         ExitUsage,
		"sweep set " + sweep:                        ExitUsage,
		"trial get " + sweep + " one":               ExitUsage,
		"sweep submit":                              ExitUsage,
		"sweep submit -f /nonexistent.yaml":         ExitUsage,
		"sweep get ffff":                            ExitNotFound,
		"trial get " + sweep + " 99":                ExitNotFound,
		"sweep list --state odd":                    ExitValidation,
		"sweep pause " + sweep:                      ExitConflict,
		"sweep rerun-failed " + sweep:               ExitConflict,
		"sweep list --server http://127.0.0.1:1":    ExitUnreachable,
		"sweep submit -f - --server 127.0.0.1:1":    ExitUnreachable,
		"sweep watch x --server http://127.0.0.1:1": ExitUnreachable,
	} {
		result := execute(t.Context(), server, strings.Fields(command)...)
		require.Equal(t, want, result.code, "%s: %s", command, result.stderr)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()

	server := serve(t, apitest.Sample(t))

	for command, want := range map[string]string{
		"sweep sumbit -f x.yaml":                 "there is no `berth sweep sumbit`; did you mean `berth sweep submit`?",
		"submit -f x.yaml":                       "there is no `berth submit`; did you mean `berth sweep submit`?",
		"logs x 1":                               "there is no `berth logs`; did you mean `berth trial logs`?",
		"ps":                                     "there is no `berth ps`; did you mean `berth sweep list`?",
		"swep list":                              "there is no `berth swep`; did you mean `berth sweep`?",
		"sweep show":                             "write `berth sweep get SWEEP [flags]`",
		"sweep odd":                              "there is no `berth sweep odd`; see `berth sweep --help`",
		"sweep watch":                            "write `berth sweep watch SWEEP [flags]`",
		"sweep list --odd":                       "unknown flag: --odd; see `berth sweep list --help`",
		"sweep submit -f x.yaml --wiat":          "unknown flag: --wiat; did you mean --wait?; see `berth sweep submit --help`",
		"sweep list --state odd":                 "the request has 1 problem:\n  invalid_request state: ",
		"sweep list --server http://127.0.0.1:1": "is `berth dev` or `berth server` running?",
		"sweep list --server http://[":           `--server "http://[" is no URL; write such as http://127.0.0.1:8080`,
		"sweep submit -f /nonexistent.yaml":      "there is no sweep file \"/nonexistent.yaml\". Type `berth init train.py` to write one",
	} {
		require.Contains(t, execute(t.Context(), server, strings.Fields(command)...).stderr, want, command)
	}
}

func TestExitCodesOfTokens(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	text, hash, _ := api.NewToken()
	_, err := store.CreateToken(t.Context(), berth.Token{Role: "viewer"}, 0, hash)
	require.NoError(t, err)

	server := serve(t, store)

	require.Equal(t, ExitAuth, execute(t.Context(), server, "sweep", "list").code)
	require.Equal(t, ExitAuth, execute(t.Context(), server, "host", "drain", "laptop", "--token", text).code)
	require.Equal(t, ExitOK, execute(t.Context(), server, "sweep", "list", "--token", text).code)
}

func TestProblemsNameTheirLines(t *testing.T) {
	t.Parallel()

	server := serve(t, apitest.Sample(t))
	path := filepath.Join(t.TempDir(), "sweep.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`name: digits
image: UPPER
command: [train, "--lr={{lr}}"]
parameters:
  - name: lr
    min: 0
    max: 1
    log: true
limits:
  max_trials: 0
`), 0o600))

	result := execute(t.Context(), server, "sweep", "submit", "-f", path)
	require.Equal(t, ExitValidation, result.code)
	require.Empty(t, result.stdout)

	text := strings.ReplaceAll(result.stderr, path, "sweep.yaml")
	require.Contains(t, text, "berth: sweep.yaml has 3 problems:\n")
	require.Contains(t, text, "  sweep.yaml:2: E_IMAGE /image: ")
	require.Contains(t, text, "  sweep.yaml:6: E_LOG_RANGE /parameters/0/min: ")
	require.Contains(t, text, "  sweep.yaml:10: E_TRIALS /limits/max_trials: ")

	result = execute(t.Context(), server, "sweep", "validate", path)
	require.Equal(t, ExitValidation, result.code)
	require.Contains(t, strings.ReplaceAll(result.stdout, path, "sweep.yaml"), "sweep.yaml:6: E_LOG_RANGE /parameters/0/min: ")
}

func TestWatchingEndsBeforeTheSweep(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.SweepIs(berth.SweepRunning)
	server := serve(t, store)

	result := execute(t.Context(), server, "sweep", "watch", apitest.NewID(1), "--timeout", "200ms")
	require.Equal(t, ExitTimeout, result.code, result.stderr)
	require.Contains(t, result.stderr, "goes on")

	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, nil)
	defer cancel()

	interrupted, interrupt := context.WithCancel(t.Context())
	go func() {
		<-ctx.Done()
		interrupt()
	}()

	result = execute(interrupted, server, "sweep", "watch", apitest.NewID(1))
	require.Equal(t, ExitInterrupt, result.code, result.stderr)
	require.Empty(t, store.Updates)
}

func TestFailedSweepExitsWith8(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.Exec("UPDATE sweeps SET state = 'failed', reason = 'more than 6 trials failed'")
	server := serve(t, store)

	result := execute(t.Context(), server, "sweep", "watch", apitest.NewID(1))
	require.Equal(t, ExitSweepFailed, result.code)
	require.Contains(t, result.stderr, "more than 6 trials failed")
	require.Contains(t, result.stdout, "best: trial 2")

	store.SweepIs(berth.SweepSucceeded)
	store.TrialIs(1, berth.TrialFailed)

	result = execute(t.Context(), server, "sweep", "watch", apitest.NewID(1))
	require.Equal(t, ExitSweepFailed, result.code)
	require.Contains(t, result.stderr, "1 trial did not")
}
