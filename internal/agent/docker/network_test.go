//go:build integration

package docker

import (
	"context"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"
)

// Trials with a network start at once on a host that has no network for them yet, on one
// that keeps them from each other and is as wide as Docker's own.
func TestEnsure_TrialNetwork(t *testing.T) {
	t.Parallel()

	d := setup(t)

	var group sync.WaitGroup

	for range 3 {
		l := busy("0")
		l.Network = true

		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			require.NoError(t, d.Stop(ctx, d.Name(l.AttemptID), 0))
			require.NoError(t, d.Remove(ctx, d.Name(l.AttemptID)))
		})
		group.Go(func() {
			c, err := d.Ensure(t.Context(), l)
			if err != nil {
				t.Errorf("ensuring a container: %v", err)

				return
			}

			if ended, err := d.Wait(t.Context(), c.ID); err != nil || ended.ExitCode != 0 {
				t.Errorf("ended with %d: %v", ended.ExitCode, err)
			}
		})
	}

	group.Wait()

	got, err := d.short.NetworkInspect(t.Context(), trialNetwork, network.InspectOptions{})
	require.NoError(t, err)
	require.Equal(t, "false", got.Options[optionICC])

	usual, err := d.short.NetworkInspect(t.Context(), network.NetworkBridge, network.InspectOptions{})
	require.NoError(t, err)
	require.Equal(t, usual.Options[optionMTU], got.Options[optionMTU])
}
