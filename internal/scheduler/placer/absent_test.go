package placer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The time that a host is lost, or has a problem, adds up over the rounds that saw it, and starts
// from zero once the host took attempts, or no round saw it.
func TestAbsences(t *testing.T) {
	t.Parallel()

	var a absences

	now := time.Unix(1000, 0)
	after := func(d time.Duration, state berth.HostState) time.Duration {
		now = now.Add(d)
		hosts := []berth.Host{{ID: "b", State: berth.HostReady}, {ID: "a", State: state}}
		a.begin(hosts, now)
		require.Zero(t, hosts[0].AbsentFor)

		return hosts[1].AbsentFor
	}

	require.Zero(t, after(0, berth.HostLost), "a new leader has not seen it before")
	require.Equal(t, time.Second, after(time.Second, berth.HostLost))
	require.Equal(t, 2*time.Second, after(time.Second, berth.HostUnready), "its worker starts")
	require.Equal(t, 2*time.Second+longestRound, after(40*time.Second, berth.HostLost), "the database was away for a moment")
	require.Zero(t, after(time.Hour, berth.HostLost), "it was away for long, and all hosts seem to be lost; or nothing waited")
	require.Equal(t, time.Second, after(time.Second, berth.HostLost))
	require.Zero(t, after(time.Second, berth.HostReady))
	require.Zero(t, after(time.Second, berth.HostUnready))
	require.Zero(t, after(time.Second, berth.HostDraining))
}

// The database was away, and of two hosts the one without a store answers first. The trial waits
// a while for the other one, which has its checkpoint.
func TestRound_WhoAnswersFirstGetsNoCheckpoint(t *testing.T) {
	t.Parallel()

	w := request("a", gib)
	w.Stored, w.Checkpoint, w.Holders = true, "with", []string{"with"}

	p, f := setup(t, w)
	with := f.hosts[0]
	with.ID, with.Name, with.StoresCheckpoints, with.State = "with", "with", true, berth.HostLost
	f.hosts = append(f.hosts, with)

	require.NoError(t, p.Round(t.Context()))
	require.Empty(t, f.placed)

	p.absences.spent["with"] = berth.HostGrace
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, f.hosts[0].ID, f.placed[0]["a"].HostID, "it has gone")
}
