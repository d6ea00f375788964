//go:build integration

package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// half is a small trial of half a core, so that a host of two cores runs four.
const half = "resources: {memory: 64MiB, cpus: 0.5}\nprobe: {mode: 'off'}"

// requireTidy waits until the ledger meets its final invariants (I1 to I5,
// except the named ones), and no container is left.
func (c *cluster) requireTidy(but ...string) {
	c.t.Helper()

	inspector, err := pgtest.Inspect(c.t.Context(), c.postgres.URL)
	require.NoError(c.t, err)

	defer inspector.Close(context.WithoutCancel(c.t.Context()))

	var broken []string

	require.Eventually(c.t, func() bool {
		broken, err = inspector.Broken(c.t.Context(), true)
		broken = slices.DeleteFunc(broken, func(text string) bool {
			return slices.ContainsFunc(but, func(name string) bool { return strings.HasPrefix(text, name) })
		})

		return err == nil && len(broken) == 0 && len(c.containers()) == 0
	}, patience, tick, "broken: %v, containers: %v", &broken, c.containers())
}

// requireOnce checks that a sweep succeeded, each trial by its first attempt.
func (s *stack) requireOnce(id string, trials int) {
	s.t.Helper()

	sweep := s.until(id, patience, ended)
	require.Equal(s.t, client.SweepStateSucceeded, sweep.State, "%+v", sweep)
	require.Equal(s.t, trials, sweep.Counts.Succeeded)

	attempts := s.attempts(id)
	require.Len(s.t, attempts, trials, "an attempt was repeated")

	for _, a := range attempts {
		require.Equal(s.t, "ok", a.FailureKind)
	}
}

// ids are the containers' ids by name.
func ids(all []container) map[string]string {
	found := make(map[string]string, len(all))
	for _, c := range all {
		found[c.name] = c.id
	}

	return found
}

// Each part dies alone, in the middle of a sweep, and in the end a worker freezes.
func TestLoss_EachPartAlone(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 2, "1GiB")

	for _, tt := range []struct {
		name string
		kill func()
	}{
		{"server", func() {
			stop(c.server, syscall.SIGKILL)
			c.startServer()
		}},
		{"temporal", func() {
			c.killTemporal()
			c.startTemporal()
		}},
		{"postgres", c.crashPostgres},
	} {
		id := c.submit(busy(10, 2500, half))
		c.until(id, patience, running(8))
		tt.kill()
		c.requireOnce(id, 10)
		c.requireTidy()
	}

	c.freeze(c.hosts[0])
}

// freeze shows that a worker that is frozen beyond the timeout is fenced: its trials run
// elsewhere, its leases stay booked, and its writes after the thaw find no row.
func (c *cluster) freeze(frozen *host) {
	t := c.t
	t.Helper()

	id := c.submit(busy(8, 8000, half)) // both hosts are full: nothing more goes to the frozen one
	c.until(id, patience, running(8))

	host := func() client.Host {
		hosts, err := c.api.ListHostsWithResponse(t.Context())
		require.NoError(t, err)

		for _, h := range hosts.JSON200.Data {
			if h.Name == frozen.name {
				return h
			}
		}

		return client.Host{}
	}
	held := host().MemoryReservedBytes
	require.Positive(t, held)
	require.NoError(t, frozen.worker.Process.Signal(syscall.SIGSTOP))

	fenced := func() (n int) {
		for _, a := range c.attempts(id) {
			if a.HostID == host().ID && a.FailureKind == "infra" {
				n++
			}
		}

		return n
	}
	require.Eventually(t, func() bool { return int64(fenced())*64<<20 == held }, patience, tick)
	require.Equal(t, held, host().MemoryReservedBytes, "nobody proved that it is free")
	require.NoError(t, frozen.worker.Process.Signal(syscall.SIGCONT))

	sweep := c.until(id, patience, ended)
	require.Equal(t, 8, sweep.Counts.Succeeded, "%+v", sweep)
	c.requireTidy()

	// The worker's late results changed nothing: each trial has one result. An
	// attempt that no other host had begun again by then goes back to the worker,
	// and is its trial's last.
	last, results := map[int]int{}, map[int]int{}
	for _, a := range c.attempts(id) {
		last[a.TrialNumber] = max(last[a.TrialNumber], a.Number)
	}

	for _, a := range c.attempts(id) {
		if a.FailureKind == "ok" {
			results[a.TrialNumber]++
			require.Equal(t, last[a.TrialNumber], a.Number, "%+v", a)
		} else {
			require.Equal(t, "infra", a.FailureKind, "%+v", a)
			require.Equal(t, host().ID, a.HostID)
		}
	}

	require.Equal(t, map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1}, results)
}
