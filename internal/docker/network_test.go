//go:build integration

package docker

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/runtimetest"
)

// Workers that make the network of trials at once have one and the same, which parts its
// containers and is as wide as Docker's own.
func TestEnsureTrialNetwork(t *testing.T) {
	t.Parallel()
	runtimetest.Alone(t, "network")

	d := setup(t)
	remove := func() { _ = d.short.NetworkRemove(context.WithoutCancel(t.Context()), TrialNetwork) } // there may be none
	remove()
	t.Cleanup(remove)

	var group sync.WaitGroup

	for range 4 {
		group.Go(func() {
			n, err := d.EnsureTrialNetwork(t.Context())
			if err != nil || n.Name != TrialNetwork || n.Bridge != "berth0" || len(n.Gateways) != 1 || n.IPv6 {
				t.Errorf("%+v: %v", n, err)
			}
		})
	}

	group.Wait()

	all, err := d.short.NetworkList(t.Context(), network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelNetwork+"=trials"))})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "false", all[0].Options[optionICC])

	usual, err := d.Network(t.Context(), DefaultNetwork)
	require.NoError(t, err)
	require.Equal(t, usual.mtu, all[0].Options[optionMTU])

	// One that somebody made is taken as it is, with the bridge that Docker named.
	remove()

	made, err := d.short.NetworkCreate(t.Context(), TrialNetwork, network.CreateOptions{Driver: driverBridge})
	require.NoError(t, err)

	n, err := d.EnsureTrialNetwork(t.Context())
	require.NoError(t, err)
	require.Equal(t, "br-"+made.ID[:12], n.Bridge)

	_, err = d.Network(t.Context(), "host")
	require.ErrorContains(t, err, `is of the driver "host"`)
}

// The host is asked for the network before each start, also of a container that is
// there: one that was made for another network is made anew.
func TestEnsureAsksForTheNetwork(t *testing.T) {
	t.Parallel()

	var (
		name string
		fail error
	)

	d, err := New(Config{Instance: "test", Owner: berth.Owner{HostID: "host-1"}, Network: func(context.Context) (string, error) { return name, fail }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	l := launch()
	l.AttemptID, l.Network = strings.ToLower(rand.Text()), true
	l.Image, l.Command, l.Workdir, l.Mounts = "berth-test/busy:1", []string{"/busy", "exit", "0"}, "", nil

	fail = berth.Errorf(berth.KindInvalid, "no wall")
	_, err = d.Ensure(t.Context(), l)

	var start *berth.StartError

	require.ErrorAs(t, err, &start)
	require.Equal(t, berth.FailureInfra, start.Kind)
	require.ErrorContains(t, err, "no wall")

	_, err = d.Inspect(t.Context(), d.Name(l.AttemptID))
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "it was not even created")

	name, fail = DefaultNetwork, nil
	made, err := d.create(t.Context(), l)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, d.Stop(ctx, d.Name(l.AttemptID), 0))
		require.NoError(t, d.Remove(ctx, d.Name(l.AttemptID)))
	})

	fail = berth.Errorf(berth.KindUnavailable, "busy")
	_, err = d.Ensure(t.Context(), l)
	require.NotErrorAs(t, err, &start, "it may be there the next time")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	name, fail = "none", nil
	c, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.NotEqual(t, made.ID, c.ID)

	got, err := d.short.ContainerInspect(t.Context(), c.ID)
	require.NoError(t, err)
	require.EqualValues(t, "none", got.HostConfig.NetworkMode)

	ended, err := d.Wait(t.Context(), c.ID)
	require.NoError(t, err)
	require.Zero(t, ended.ExitCode)

	// Without a network nobody is asked.
	fail = berth.Errorf(berth.KindInvalid, "no wall")
	l.Network = false
	on, err := d.network(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, "none", on)
}
