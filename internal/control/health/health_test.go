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

// What a person must know and nothing fails of yet is a warning: it has a next step. A next
// step harms nothing.
func TestHealth_Warns(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	away := health.State{NotHandedOut: []string{"gpu-1, GPU-7: " + berth.NotHandedOut}, StartingMPS: []string{"gpu-1, GPU-8: " + berth.MPSStarts}}
	full := func(free int64) health.State {
		return health.State{DatabaseDisk: health.Disk{Of: health.DatabaseDisk, TotalBytes: 100 * gib, FreeBytes: free}}
	}
	files := func(w berth.WaitingFiles) health.State { return health.State{WaitingFiles: []berth.WaitingFiles{w}} }

	for name, tt := range map[string]struct {
		state      health.State
		part       string
		sees       string   // warn, fine or broken
		what, next []string // parts of the texts
		never      string   // in the next step
	}{
		"MPS does not run": {health.State{Sliced: []string{"gpu-1, GPU-8: no"}}, "devices", "warn", []string{"gpu-1, GPU-8: no"}, []string{"berth doctor"}, ""},
		"GPUs are away": {
			away, "devices", "warn",
			[]string{"gpu-1, GPU-7: its worker does not hand it out since it started", "gpu-1, GPU-8: its MPS daemon is started again"},
			[]string{"--gpus"},
			"restart the machine", // that would end trials
		},
		"one is sick, too": {
			health.State{NotHandedOut: away.NotHandedOut, StartingMPS: away.StartingMPS, SickDevices: []string{"gpu-1, GPU-9: XID 79"}},
			"devices", "broken",
			[]string{"GPU-7", "GPU-8", "GPU-9"},
			nil, "",
		},
		"one is cordoned": {
			health.State{CordonedDevices: []string{"gpu-1, GPU-8: cordoned by a person"}},
			"devices", "fine",
			[]string{"no GPU reports a problem; taking no new trials: gpu-1, GPU-8: cordoned by a person"},
			nil, "",
		},
		"PostgreSQL cannot write":   {full(0), "storage", "broken", []string{"the disk of the database is full"}, nil, "VACUUM FULL"}, // it needs room itself
		"or soon":                   {full(1 << 20), "storage", "broken", []string{"the disk of the database is full"}, nil, "VACUUM FULL"},
		"it has room":               {full(20 * gib), "storage", "fine", nil, nil, ""},
		"no size is known":          {health.State{}, "storage", "fine", []string{"the size of the database is not known"}, nil, ""},
		"one size is known":         {health.State{Database: health.Storage{Bytes: 5 * gib}}, "storage", "fine", []string{"the database takes 5,120 MiB"}, nil, ""},
		"all are known":             {health.State{Database: health.Storage{Bytes: 5 * gib, LogBytes: 2 * gib, MetricBytes: gib}}, "storage", "fine", []string{": logs 2,048 MiB, metrics 1,024 MiB"}, nil, ""},
		"files cannot be removed":   {health.State{Outputs: []string{"a: files of 2 attempts"}}, "outputs", "warn", []string{"a: files of 2 attempts"}, []string{"rm -r", "--keep-outputs-size"}, ""},
		"rows go":                   {health.State{}, "retention", "fine", nil, nil, ""},
		"rows stay":                 {health.State{Retention: "removing rows of sweep 1f: timeout"}, "retention", "warn", []string{"removing rows of sweep 1f: timeout"}, nil, ""},
		"no files wait":             {health.State{}, "artifacts", "fine", []string{"no files wait"}, nil, ""},
		"files wait a moment":       {files(berth.WaitingFiles{Host: "a", Attempts: 2, Oldest: time.Minute}), "artifacts", "fine", []string{"a: files of 2 attempts, the oldest for 1m0s"}, nil, ""},
		"files wait for long":       {files(berth.WaitingFiles{Host: "a", Attempts: 2, Oldest: 2 * time.Hour}), "artifacts", "warn", []string{"2h0m0s"}, nil, ""},
		"the store takes none":      {files(berth.WaitingFiles{Host: "a", Attempts: 1, Problem: "no route"}), "artifacts", "warn", []string{"the last try failed: no route"}, nil, ""},
		"no secrets":                {health.State{}, "secrets", "fine", []string{"no secrets are stored"}, nil, ""},
		"all secrets are opened":    {health.State{Secrets: 2}, "secrets", "fine", []string{"machines open all of the 2 secrets"}, nil, ""},
		"no machine opens a secret": {health.State{Secrets: 2, Unopened: []string{"hub: no machine opens it"}}, "secrets", "warn", []string{"hub: no machine opens it"}, nil, ""},
	} {
		f := finding(tt.state, tt.part)
		require.Equal(t, []bool{tt.sees != "broken", tt.sees == "warn"}, []bool{f.OK, f.Warn}, "%s: %+v", name, f)
		require.Equal(t, tt.sees == "fine", f.Next == "", name)

		for _, text := range tt.what {
			require.Contains(t, f.What, text, name)
		}

		for _, text := range tt.next {
			require.Contains(t, f.Next, text, name)
		}

		if tt.never != "" {
			require.NotContains(t, f.Next, tt.never, name)
		}
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
