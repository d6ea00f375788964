package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// TestOutput records the output that people and scripts read.
func TestOutput(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.TrialIs(3, berth.TrialFailed)
	store.Exec("UPDATE trials SET message = E'=the program ended with 1\\nlook at its log' WHERE number = 3")
	store.Exec("UPDATE attempts SET outputs_removed_at = now(), outputs_removed_why = 'its host keeps at most 10 MiB of files' WHERE trial_id = $1", apitest.TrialID(3))
	store.Write(apitest.AttemptID(1, 1), "epoch 1\n")
	store.AddMetric(apitest.AttemptID(1, 1), "loss", 1, 0.5, berth.MetricFinite)
	store.AddHost(t, []berth.Device{
		{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingMPS, MemoryBytes: 141 << 30, FreeBytes: 100 << 30, MaxContexts: 256, MPSContexts: 44},
		{
			ID: "GPU-2", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 141 << 30, FreeBytes: 100 << 30, MaxContexts: 256, MPSContexts: 44,
			MPSProblem: "its MPS daemon does not run: no permission",
		},
		{ID: "MIG-2", Model: "NVIDIA H200", Profile: "1g.18gb", Mode: berth.SharingExclusive, MemoryBytes: 18 << 30, Problem: "XID 79: it fell off the bus"},
	}...)
	store.Exec("UPDATE hosts SET last_seen_at = '2100-01-01', disk_bytes = 2000::bigint << 30, output_bytes = 70::bigint << 30")
	store.Exec("UPDATE devices SET advice = $1 WHERE id = 'GPU-1'", `{"mode": "mps", "at_once": 16, "trying": true, "why": "tries 16 by MPS; measured: 12 by MPS 100 % (30 attempts)"}`)

	server := serve(t, store)
	sweep := apitest.NewID(1)[:8]

	var got strings.Builder

	run := func(commands ...string) {
		for _, command := range commands {
			result := execute(t.Context(), server, strings.Fields(command)...)
			fmt.Fprintf(&got, "$ berth %s\n%s%s[%d]\n\n", command, result.stdout, prefixed(result.stderr), result.code)
		}
	}

	run(
		"sweep list", "sweep list -o csv", "sweep get "+sweep, "sweep trials "+sweep, "sweep trials "+sweep+" -o csv",
		"sweep trials "+sweep+" --state failed -o json", "sweep best "+sweep, "sweep best "+sweep+" -o yaml", "sweep watch "+sweep,
		"sweep validate -f -", "sweep preview -f -", "sweep report "+sweep, "sweep report --limit 1 "+sweep, "sweep report -o csv "+sweep,
		"sweep insight "+sweep, "sweep insight -o yaml "+sweep, "sweep report nonsense", "sweep report", "trial get "+sweep+" 3", "trial attempts "+sweep+" 3", "trial logs "+sweep+" 1", "trial logs "+sweep+" 3", "trial logs -f "+sweep+" 3", "trial metrics "+sweep+" 3",
		"trial logs -f "+sweep+" 1", "trial metrics "+sweep+" 1", "probe list", "probe get aaaa", "host list",
		"host drain laptop", "device list", "token list",
	)

	store.OnGPU(t)
	run("sweep report " + sweep)

	requireGolden(t, "output.golden", got.String())
}

// prefixed marks standard error.
func prefixed(text string) string {
	if text == "" {
		return ""
	}

	return "! " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n! ") + "\n"
}

func TestSubmitPrintsTheSweep(t *testing.T) {
	t.Parallel()

	store, server := sampled(t)

	first := succeed(t, server, "sweep", "submit", "-f", "-", "--idempotency-key", "k", "-o", "json")
	require.Contains(t, first.stdout, `"state": "pending"`)

	again := execute(t.Context(), server, "sweep", "submit", "-f", "-", "--idempotency-key", "k", "-o", "json")
	require.Equal(t, first, again)
	require.Equal(t, 2, store.Count("sweeps"))
}

func TestSweepGet_SaysHowLongItTakes(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.SweepIs(berth.SweepRunning)
	store.TrialIs(4, berth.TrialRunning)
	store.Exec("UPDATE sweeps SET planned = 6")

	result := succeed(t, serve(t, store), "sweep", "get", apitest.NewID(1)[:8])
	require.Regexp(t, `left +.* 2 to start and 1 that run at once; of the newest 3 that ended, half took `, result.stdout)
}

// A server may allow smaller pages than the commands ask for: they follow next_cursor.
func TestLists_WhereThePageLimitIsLower(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	whole, paged := serve(t, store), serveWith(t, store, api.Limits{PageRows: 1})

	for _, command := range []string{
		"sweep list --limit 0", "sweep trials " + apitest.NewID(1), "sweep report " + apitest.NewID(1), "probe list", "trial metrics " + apitest.NewID(1) + " 1",
	} {
		want, got := execute(t.Context(), whole, strings.Fields(command)...), execute(t.Context(), paged, strings.Fields(command)...)
		require.Equal(t, ExitOK, got.code, got.stderr)
		require.NotEmpty(t, got.stdout)
		require.Equal(t, want.stdout, got.stdout, command)
	}
}
