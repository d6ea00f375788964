//go:build integration

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
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
	}, 30*time.Second, tick, "broken: %v, containers: %v", &broken, c.containers())
}

// requireOnce checks that a sweep succeeded, each trial by its first attempt.
func (s *stack) requireOnce(id string, trials int) {
	s.t.Helper()

	sweep := s.until(id, 3*time.Minute, ended)
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

// A worker that is frozen beyond the timeout is fenced: its trials run
// elsewhere, its leases stay booked, and its writes after the thaw find no row.
func TestLoss_FrozenWorkerIsFenced(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 2, "1GiB")
	frozen := c.hosts[0]
	id := c.submit(busy(8, 8000, half)) // both hosts are full: nothing more goes to the frozen one
	c.until(id, time.Minute, running(8))

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
	require.Eventually(t, func() bool { return int64(fenced())*64<<20 == held }, time.Minute, tick)
	require.Equal(t, held, host().MemoryReservedBytes, "nobody proved that it is free")
	require.NoError(t, frozen.worker.Process.Signal(syscall.SIGCONT))

	sweep := c.until(id, 2*time.Minute, ended)
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

func TestLoss_WorkerKilledTwentyTimes(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	h := c.hosts[0]
	id := c.submit(busy(6, 20_000, half))
	c.until(id, time.Minute, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick)

	before := ids(c.running())

	hits := 0 // of a worker that serves

	for round := range 20 {
		serves := strings.Count(c.output(h.name), "worker serves")
		stop(h.worker, syscall.SIGKILL)
		c.startHost(h)

		served := func() bool { return strings.Count(c.output(h.name), "worker serves") > serves }
		if round%2 == 0 {
			require.Eventually(t, served, startTimeout, tick)
		}

		select { // at another point of its start each round, adoption or work
		case <-time.After(time.Duration(45*round) * time.Millisecond):
		case <-t.Context().Done():
		}

		if served() {
			hits++
		}
	}

	require.GreaterOrEqual(t, hits, 10, "the kills hit workers that had not begun")
	c.requireOnce(id, 6)

	after := map[string]bool{}
	for _, a := range c.attempts(id) {
		after[a.ContainerID] = true
	}

	for name, container := range before {
		require.True(t, after[container], "container %s was restarted or replaced", name)
	}

	c.requireTidy()
}

// Each part dies alone, in the middle of a sweep.
func TestLoss_EachPartAlone(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")

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
		id := c.submit(busy(6, 2500, half))
		c.until(id, time.Minute, running(4))
		tt.kill()
		c.requireOnce(id, 6)
		c.requireTidy()
	}
}

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
			c.until(id, time.Minute, running(4))
			require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick)

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
			}, time.Minute, tick)

			c.heal(h.postgres)
			c.heal(h.temporal)
			c.requireOnce(id, 8)
			c.requireTidy()
		})
	}
}

// A host is gone for good: its trials go elsewhere, and its leases stay booked
// until the host itself reports that nothing runs there.
func TestLoss_HostGoneForEver(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 2, "1GiB")
	gone := c.hosts[0]
	id := c.submit(busy(8, 6000, half))
	c.until(id, time.Minute, running(8))
	stop(gone.worker, syscall.SIGKILL)

	sweep := c.until(id, 3*time.Minute, ended)
	require.Equal(t, 8, sweep.Counts.Succeeded, "%+v", sweep)

	hosts, err := c.api.ListHostsWithResponse(t.Context())
	require.NoError(t, err)

	byName := map[string]client.Host{}
	for _, h := range hosts.JSON200.Data {
		byName[h.Name] = h
	}

	require.EqualValues(t, 4*64<<20, byName[gone.name].MemoryReservedBytes, "nobody proved that it is free")
	require.Zero(t, byName["host-2"].MemoryReservedBytes)

	lost := 0

	for _, a := range c.attempts(id) {
		if a.HostID == byName[gone.name].ID {
			require.Equal(t, "infra", a.FailureKind, a.Message)

			lost++
		}
	}

	require.Equal(t, 4, lost)

	// It comes back after all: its worker proves that its leases are free.
	c.startHost(gone)
	c.requireTidy()
}

// Temporal's store is lost in the middle of a sweep: Berth ends nothing for
// that, and raises an alarm. At a person's word the sweep goes on: running
// containers are adopted, and no trial is repeated.
func TestLoss_TemporalsStore(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	id := c.submit(busy(6, 20_000, half))
	c.until(id, time.Minute, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick)

	before := ids(c.running())

	c.killTemporal()
	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "temporal")))
	c.startTemporal()

	var health string

	require.Eventually(t, func() bool {
		health = c.health()

		return strings.Contains(health, "its store was lost")
	}, time.Minute, tick, "no alarm: %s", &health)
	require.Contains(t, health, "berth restore")

	sweep := c.until(id, time.Minute, func(client.Sweep) bool { return true })
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
