package health_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
)

// finding is what is found of a part.
func finding(s health.State, part string) health.Finding {
	all := s.Findings()

	return all[slices.IndexFunc(all, func(f health.Finding) bool { return f.Part == part })]
}

// A disk that will be full before long is no failure yet: Health warns with the
// next step, and with the files that fill it.
func TestHealth_WarnsBeforeADiskIsFull(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	state := health.State{
		Hosts: 2, Answering: 2,
		Disks: []health.Disk{
			{Of: "host a", TotalBytes: 100 * gib, FreeBytes: 10 * gib, HeadroomBytes: 2 * gib, OutputBytes: 70 * gib},
			{Of: "host b", TotalBytes: 100 * gib, FreeBytes: 60 * gib},
		},
		Database:     health.Storage{Bytes: 3 * gib, LogBytes: 2 * gib, MetricBytes: gib / 2},
		DatabaseDisk: health.Disk{Of: health.DatabaseDisk, TotalBytes: 100 * gib, FreeBytes: gib},
	}

	for part, says := range map[string][2]string{
		"disks":   {"host a has 8,192 MiB left: 91 % of what it may fill is in use; files of attempts take 71,680 MiB", "--keep-outputs-size"},
		"storage": {"the disk of the database has 1,024 MiB left: 99 % of what it may fill is in use; the database takes 3,072 MiB: logs 2,048 MiB, metrics 512 MiB", "--keep-sweeps"},
	} {
		f := finding(state, part)
		require.True(t, f.OK && f.Warn)
		require.Equal(t, says[0], f.What)
		require.Contains(t, f.Next, "berth sweep delete")
		require.Contains(t, f.Next, says[1])
	}
}

// A GPU whose MPS does not run is slower, and no failure.
func TestHealth_WarnsOfTimeSlices(t *testing.T) {
	t.Parallel()

	f := finding(health.State{Sliced: []string{"gpu-1, GPU-8: its MPS daemon does not run"}}, "devices")
	require.True(t, f.OK && f.Warn)
	require.Contains(t, f.What, "gpu-1, GPU-8: its MPS daemon does not run")
	require.Contains(t, f.Next, "berth doctor")
}

// A GPU that a person took from its worker is no failure, nor is one whose MPS daemon is
// back in seconds.
func TestHealth_WarnsOfGPUsThatAreAway(t *testing.T) {
	t.Parallel()

	h := health.State{NotHandedOut: []string{"gpu-1, GPU-7: " + berth.NotHandedOut}, StartingMPS: []string{"gpu-1, GPU-8: " + berth.MPSStarts}}
	f := finding(h, "devices")

	require.True(t, f.OK && f.Warn)
	require.Contains(t, f.What, "gpu-1, GPU-7: its worker does not hand it out since it started")
	require.Contains(t, f.What, "gpu-1, GPU-8: its MPS daemon is started again")
	require.Contains(t, f.Next, "--gpus")
	require.NotContains(t, f.Next, "restart the machine", "that would end trials")

	h.SickDevices = []string{"gpu-1, GPU-9: XID 79"}
	f = finding(h, "devices")

	require.False(t, f.OK || f.Warn)

	for _, id := range []string{"GPU-7", "GPU-8", "GPU-9"} {
		require.Contains(t, f.What, id)
	}
}

// A cordoned GPU is reported, and is no failure.
func TestHealth_CordonedGPU(t *testing.T) {
	t.Parallel()

	f := finding(health.State{CordonedDevices: []string{"gpu-1, GPU-8: cordoned by a person"}}, "devices")
	require.True(t, f.OK && !f.Warn)
	require.Equal(t, "no GPU reports a problem; taking no new trials: gpu-1, GPU-8: cordoned by a person", f.What)
}

// A full disk of the database is a failure: PostgreSQL cannot write.
func TestHealth_SaysThatTheDatabasesDiskIsFull(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	for free, ok := range map[int64]bool{0: false, 1 << 20: false, 20 * gib: true} {
		f := finding(health.State{DatabaseDisk: health.Disk{Of: health.DatabaseDisk, TotalBytes: 100 * gib, FreeBytes: free}}, "storage")

		require.Equal(t, ok, f.OK, free)

		if !ok {
			require.Contains(t, f.What, "the disk of the database is full")
			require.NotEmpty(t, f.Next)
			require.NotContains(t, f.Next, "VACUUM FULL", "it needs room itself")
		}
	}
}

// A size that is not known is not called zero.
func TestHealth_NamesOnlyKnownSizes(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		database health.Storage
		says     string
	}{
		{health.Storage{}, "the size of the database is not known"},
		{health.Storage{Bytes: 5 << 30}, "the database takes 5,120 MiB"},
		{health.Storage{Bytes: 5 << 30, LogBytes: 2 << 30, MetricBytes: 1 << 30}, "the database takes 5,120 MiB: logs 2,048 MiB, metrics 1,024 MiB"},
	} {
		require.Equal(t, tt.says, finding(health.State{Database: tt.database}, "storage").What)
	}
}

// Health reports files that cannot be removed before they fill a disk.
func TestHealth_SaysWhichFilesCannotBeRemoved(t *testing.T) {
	t.Parallel()

	f := finding(health.State{Hosts: 1, Answering: 1, Outputs: []string{"a: files of 2 attempts cannot be removed"}}, "outputs")

	require.True(t, f.OK && f.Warn)
	require.Equal(t, "a: files of 2 attempts cannot be removed", f.What)
	require.Contains(t, f.Next, "rm -r")
	require.Contains(t, f.Next, "--keep-outputs-size")
}

// Health reports rows that retention cannot delete, because a log line is
// easily missed.
func TestHealth_SaysWhatCannotBeDeleted(t *testing.T) {
	t.Parallel()

	for problem, warn := range map[string]bool{"": false, "removing rows of sweep 1f: timeout": true} {
		f := finding(health.State{Retention: problem}, "retention")

		require.True(t, f.OK)
		require.Equal(t, warn, f.Warn)
		require.Equal(t, warn, f.Next != "")
		require.Contains(t, f.What, problem)
	}
}

// The image of a paused sweep has no container, and its tag may have moved on;
// a container that ended may hold the only copy of a result.
func TestHealth_AdvisesNothingThatHarms(t *testing.T) {
	t.Parallel()

	var text string
	for _, f := range (health.State{FullDisks: []string{"gpu-2"}}).Findings() {
		text += f.Next
	}

	for _, harmful := range []string{"system prune", "image prune", "volume prune", "container prune`"} {
		require.NotContains(t, text, harmful)
	}

	require.Contains(t, text, "docker container prune --filter label!=berth.instance")
}

func TestHealth(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		health health.State
		bad    []string // parts
		says   string
	}{
		"all is well":        {health.State{Hosts: 3, Answering: 2, OutboxWaiting: 3, OutboxOldest: time.Second}, nil, ""},
		"nobody is there":    {health.State{}, []string{"hosts"}, "berth worker"},
		"a host is silent":   {health.State{Hosts: 2, Answering: 1, SilentHosts: []string{"gpu-1"}, SuspectLeases: 4}, []string{"hosts", "leases"}, "holding places: gpu-1"},
		"a disk is full":     {health.State{Hosts: 2, Answering: 2, FullDisks: []string{"gpu-2"}}, []string{"disks"}, "than the hosts keep: gpu-2"},
		"a host is cordoned": {health.State{Hosts: 2, Answering: 2, Cordoned: []string{"gpu-1 (runc: no)"}}, []string{"starts"}, "one after the other: gpu-1 (runc: no)"},
		"a trial is stuck": {health.State{Hosts: 1, Answering: 1, StuckTrials: 3, Stuck: []health.StuckTrial{
			{SweepID: "1f", SweepName: "digits", Number: 4, Reason: "the ledger refuses it"},
		}}, []string{"requests"}, "3 trials cannot be placed: trial 4 of sweep digits (1f): the ledger refuses it"},
		"a store is lost": {health.State{Hosts: 1, Answering: 1, Alarm: "2 of 2 sweeps are gone"}, []string{"workflows"}, "berth restore"},
		"a host is unready": {
			health.State{Hosts: 1, Answering: 1, Unready: []string{"gpu-1: Docker does not answer"}},
			[]string{"hosts"},
			"taking no attempts: gpu-1: Docker does not answer",
		},
		"a GPU is sick": {
			health.State{Hosts: 1, Answering: 1, SickDevices: []string{"gpu-1, GPU-7: XID 79: the GPU fell off the bus"}},
			[]string{"devices"},
			"GPUs that take no trials: gpu-1, GPU-7: XID 79: the GPU fell off the busdo there what the reason says, then start the worker again",
		},
		"and another has no MPS": {
			health.State{Hosts: 1, Answering: 1, SickDevices: []string{"gpu-1, GPU-7: lost"}, Sliced: []string{"gpu-1, GPU-8: no"}},
			[]string{"devices"},
			"shared by time slices, as their MPS does not run: gpu-1, GPU-8: no",
		},
		"rounds fail": {
			health.State{Hosts: 1, Answering: 1, FailingRounds: map[string]string{
				health.PartOutbox: "since noon: no time", health.PartPlacer: "since one", health.PartEvents: "since two", health.PartWorkflows: "since four",
			}},
			[]string{"outbox", "placer", "events", "workflows"},
			"the server's rounds fail since noon: no time; sweeps may not start",
		},
		"nobody places":    {health.State{Hosts: 1, Answering: 1, NoPlacer: true, PlacerReason: "no locks"}, []string{"placer"}, "failed: no locks"},
		"Temporal is away": {health.State{Hosts: 1, Answering: 1, OutboxWaiting: 7, OutboxOldest: 3 * time.Minute, OutboxReason: "no shard"}, []string{"outbox"}, "the oldest for 3m0s; the last try failed: no shard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var (
				bad  []string
				text string
			)

			for _, f := range tt.health.Findings() {
				require.Equal(t, f.OK, f.Next == "", "what is wrong has a next step")

				text += f.What + f.Next

				if !f.OK {
					bad = append(bad, f.Part)
				}
			}

			require.Equal(t, tt.bad, bad)
			require.Contains(t, text, tt.says)
		})
	}
}

// Files that wait for the store are no fault of any trial: a warning once a try
// failed or an hour has passed.
func TestHealth_SaysWhichFilesWait(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name    string
		waiting []berth.WaitingFiles
		warn    bool
		what    string
	}{
		{"none", nil, false, "no files wait"},
		{"a moment ago", []berth.WaitingFiles{{Host: "a", Attempts: 2, Oldest: time.Minute}}, false, "a: files of 2 attempts, the oldest for 1m0s"},
		{"for long", []berth.WaitingFiles{{Host: "a", Attempts: 2, Oldest: 2 * time.Hour}}, true, "2h0m0s"},
		{"a try failed", []berth.WaitingFiles{{Host: "a", Attempts: 1, Problem: "no route"}}, true, "the last try failed: no route"},
	} {
		f := finding(health.State{WaitingFiles: tt.waiting}, "artifacts")
		require.True(t, f.OK, tt.name)
		require.Equal(t, tt.warn, f.Warn, tt.name)
		require.Equal(t, tt.warn, f.Next != "", tt.name)
		require.Contains(t, f.What, tt.what, tt.name)
	}
}

func TestHealth_WarnsOfSecretsThatNoMachineOpens(t *testing.T) {
	t.Parallel()

	for want, h := range map[string]health.State{
		"no secrets are stored":              {},
		"machines open all of the 2 secrets": {Secrets: 2},
		"hub: no machine opens it":           {Secrets: 2, Unopened: []string{"hub: no machine opens it"}},
	} {
		f := finding(h, "secrets")
		require.True(t, f.OK, "what mounts no secret runs")
		require.Equal(t, want, f.What)
		require.Equal(t, len(h.Unopened) > 0, f.Warn)
		require.Equal(t, f.Warn, f.Next != "")
	}
}

// docs/api.md lists the parts of /healthz for authors of monitors.
func TestHealth_TheAPIsPageNamesAllParts(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("../../../docs/api.md")
	require.NoError(t, err)

	list := regexp.MustCompile("(?s)`/healthz`, which needs one, says of each part \\((.*?)\\)").FindSubmatch(page)
	require.NotNil(t, list)

	for _, f := range append(health.State{}.Findings(), health.Finding{Part: "artifact store"}) { // that of api/health.go
		require.Regexp(t, `\b`+f.Part+`\b`, string(list[1]))
	}
}
