package berth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The image of a paused sweep has no container, and its tag may have moved on;
// a container that ended may hold the only copy of a result.
func TestHealth_AdvisesNothingThatHarms(t *testing.T) {
	t.Parallel()

	var text string
	for _, f := range (berth.Health{FullDisks: []string{"gpu-2"}}).Findings() {
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
		health berth.Health
		bad    []string // parts
		says   string
	}{
		"all is well":        {berth.Health{Hosts: 3, Answering: 2, OutboxWaiting: 3, OutboxOldest: time.Second}, nil, ""},
		"nobody is there":    {berth.Health{}, []string{"hosts"}, "berth worker"},
		"a host is silent":   {berth.Health{Hosts: 2, Answering: 1, SilentHosts: []string{"gpu-1"}, SuspectLeases: 4}, []string{"hosts", "leases"}, "holding places: gpu-1"},
		"a disk is full":     {berth.Health{Hosts: 2, Answering: 2, FullDisks: []string{"gpu-2"}}, []string{"disks"}, "than the hosts keep: gpu-2"},
		"a host is cordoned": {berth.Health{Hosts: 2, Answering: 2, Cordoned: []string{"gpu-1 (runc: no)"}}, []string{"starts"}, "one after the other: gpu-1 (runc: no)"},
		"a trial is stuck": {berth.Health{Hosts: 1, Answering: 1, StuckTrials: 3, Stuck: []berth.StuckTrial{
			{SweepID: "1f", SweepName: "digits", Number: 4, Reason: "the ledger refuses it"},
		}}, []string{"requests"}, "3 trials cannot be placed: trial 4 of sweep digits (1f): the ledger refuses it"},
		"a store is lost": {berth.Health{Hosts: 1, Answering: 1, Alarm: "2 of 2 sweeps are gone"}, []string{"workflows"}, "berth adopt-temporal"},
		"a host is unready": {
			berth.Health{Hosts: 1, Answering: 1, Unready: []string{"gpu-1: Docker does not answer"}},
			[]string{"hosts"},
			"taking no attempts: gpu-1: Docker does not answer",
		},
		"nobody places":    {berth.Health{Hosts: 1, Answering: 1, NoPlacer: true, PlacerReason: "no locks"}, []string{"placer"}, "failed: no locks"},
		"Temporal is away": {berth.Health{Hosts: 1, Answering: 1, OutboxWaiting: 7, OutboxOldest: 3 * time.Minute, OutboxReason: "no shard"}, []string{"outbox"}, "the oldest for 3m0s; the last try failed: no shard"},
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
