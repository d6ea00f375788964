package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/apitest"
)

// TestOutput records the output that people and scripts read.
func TestOutput(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Trials[2].State, store.Trials[2].Value = berth.TrialFailed, nil
	store.Trials[2].OutputsRemoved = "its host keeps at most 10 MiB of files"
	store.Hosts[0].DiskBytes, store.Hosts[0].OutputBytes = 2000<<30, 70<<30
	store.Trials[2].Message = "=the program ended with 1\nlook at its log"
	store.Write(store.Attempts[0].ID, "epoch 1\n")
	store.Metrics = map[string][]berth.MetricPoint{store.Attempts[0].ID: {
		{Name: "loss", Step: 1, Value: 0.5, Status: berth.MetricFinite, At: apitest.Start},
	}}
	store.Hosts[0].Devices = []berth.Device{
		{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingMPS, MemoryBytes: 141 << 30, FreeBytes: 100 << 30, MaxContexts: 256, MPSContexts: 44, Advice: berth.Advice{
			Company: berth.Company{Mode: berth.SharingMPS, AtOnce: 16}, Trying: true, Why: "tries 16 by MPS; measured: 12 by MPS 100 % (30 attempts)",
		}},
		{
			ID: "GPU-2", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 141 << 30, FreeBytes: 100 << 30, MaxContexts: 256, MPSContexts: 44,
			MPSProblem: "its MPS daemon does not run: no permission",
		},
		{ID: "MIG-2", Model: "NVIDIA H200", Profile: "1g.18gb", Mode: berth.SharingExclusive, MemoryBytes: 18 << 30, Problem: "XID 79: it fell off the bus"},
	}

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
		"sweep report nonsense", "sweep report", "trial get "+sweep+" 3", "trial attempts "+sweep+" 3", "trial logs "+sweep+" 1", "trial logs "+sweep+" 3", "trial logs -f "+sweep+" 3", "trial metrics "+sweep+" 3",
		"trial logs -f "+sweep+" 1", "trial metrics "+sweep+" 1", "probe list", "probe get aaaa", "host list",
		"host drain laptop", "device list", "token list",
	)

	store.OnGPU()
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

	store := apitest.Sample()
	server := serve(t, store)

	first := execute(t.Context(), server, "sweep", "submit", "-f", "-", "--idempotency-key", "k", "-o", "json")
	require.Zero(t, first.code, first.stderr)
	require.Contains(t, first.stdout, `"state": "pending"`)

	again := execute(t.Context(), server, "sweep", "submit", "-f", "-", "--idempotency-key", "k", "-o", "json")
	require.Equal(t, first, again)
	require.Len(t, store.Sweeps, 2)
}

func TestSweepGet_SaysHowLongItTakes(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Times = berth.TrialTimes{Ended: 10, Mean: 10 * time.Second, Lower: 9 * time.Second, Upper: 12 * time.Second}
	store.Sweeps[0].State = berth.SweepRunning
	store.Sweeps[0].Counts = berth.Counts{Total: 14, Planned: 20, Running: 4, Succeeded: 10}

	result := execute(t.Context(), serve(t, store), "sweep", "get", apitest.NewID(1)[:8])
	require.Equal(t, ExitOK, result.code, result.stderr)
	require.Regexp(t, `left +14 s to 36 s +6 to start and 4 that run at once; of the newest 10 that ended, half took 9s to 12s`, result.stdout)
}

// A server may allow smaller pages than the commands ask for: they follow next_cursor.
func TestLists_WhereThePageLimitIsLower(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
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
