//go:build integration && nightly

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// A partition that heals in time repeats no work.
func TestLoss_Partition(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name               string
		postgres, temporal bool
		lasts              time.Duration
	}{
		// Longer than the trials: they end, and their results wait on the host.
		{"postgres only", true, false, 9 * time.Second},
		// Shorter than the host is waited for; longer than its heartbeat.
		{"temporal only", false, true, 7 * time.Second},
		{"both", true, true, 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c := startCluster(t, 1, "1GiB")
			h := c.hosts[0]
			id := c.submit(busy(8, 4000, half))
			c.until(id, patience, running(4))
			require.Eventually(t, func() bool { return len(c.running()) == 4 }, patience, tick)

			if tt.postgres {
				c.cut(h.postgres)
			}

			if tt.temporal {
				c.cut(h.temporal)
			}

			known := ids(c.containers())
			over := time.Now().Add(tt.lasts)

			require.Eventually(t, func() bool {
				for _, one := range c.containers() {
					require.Contains(t, known, one.name, "something started that nobody may have asked for")
				}

				return time.Now().After(over)
			}, patience, tick)

			c.heal(h.postgres)
			c.heal(h.temporal)
			c.requireOnce(id, 8)
			c.requireTidy()
		})
	}
}

// Temporal's store is lost in the middle of a sweep: Berth ends nothing for
// that, and raises an alarm. At a person's word the sweep goes on: running
// containers are adopted, and no trial is repeated.
func TestLoss_TemporalsStore(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	id := c.submit(busy(6, 20_000, half))
	c.until(id, patience, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, patience, tick)

	before := ids(c.running())

	c.killTemporal()
	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "temporal")))
	c.startTemporal()

	var health string

	require.Eventually(t, func() bool {
		health = c.health()

		return strings.Contains(health, "its store was lost")
	}, patience, tick, "no alarm: %s", &health)
	require.Contains(t, health, "berth restore")

	sweep := c.until(id, patience, func(client.Sweep) bool { return true })
	require.Equal(t, client.SweepStateRunning, sweep.State, sweep.Reason)
	require.Equal(t, before, ids(c.containers()), "containers go on")

	out, err := exec.CommandContext(t.Context(), binary, "restore",
		"--postgres-url", c.postgres.URL, "--temporal-address", c.temporal.Address).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Started again: 1 sweeps with")

	c.requireOnce(id, 6)
	c.requireTidy()
	require.NotContains(t, c.health(), "its store was lost")
}
