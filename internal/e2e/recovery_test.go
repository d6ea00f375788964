//go:build integration

package e2e

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startWorkerProcess starts a worker and does not wait for it.
func (s *stack) startWorkerProcess() {
	s.t.Helper()

	postgresURL, temporalAddress := s.workerBackends()
	s.started = time.Now()
	s.worker = s.run(append([]string{
		"worker", "--instance", s.instance, "--postgres-url", postgresURL, "--temporal-address", temporalAddress, "--grace", "3s",
	}, s.flags...)...)
}

// recovered waits until the new worker has adopted the containers that still
// run, and until two containers run; one may be new. It returns how long each
// took from the worker's start.
func (s *stack) recovered(before map[string]string) (adopted, filled time.Duration) {
	s.t.Helper()

	require.Eventually(s.t, func() bool {
		now := ids(s.running())
		took := time.Since(s.started)
		log := s.output("worker")
		all := true

		for name, id := range before {
			if now[name] != "" && !strings.Contains(log, id[:12]) {
				all = false // it runs and its worker does not follow it
			}
		}

		if all && adopted == 0 && strings.Contains(log, "worker serves") {
			adopted = took
		}

		if len(now) == 2 && filled == 0 {
			filled = took
		}

		return adopted != 0 && filled != 0
	}, 2*time.Minute, 20*time.Millisecond, "worker: %s", s.output("worker"))

	return adopted, filled
}

// BenchmarkRecovery kills the worker at random moments of a sweep. Every other
// time it restarts it at once, and measures how long the worker takes to adopt
// the running containers. In between it waits until a place is free, and
// measures how long from the start until the worker fills it.
func BenchmarkRecovery(b *testing.B) {
	runs := 20
	if n, err := strconv.Atoi(os.Getenv("RUNS")); err == nil && n > 0 {
		runs = n
	}

	s := start(b, "--cpus", "2")
	id := s.submit(busy(500, 20_000, small))
	s.until(id, time.Minute, running(2))

	var adopted, filled []time.Duration

	for run := range max(runs, 2) {
		select {
		case <-time.After(time.Duration(rand.IntN(22_000)) * time.Millisecond):
		case <-b.Context().Done():
		}

		before := ids(s.running())

		stop(s.worker, syscall.SIGKILL)

		for run%2 == 1 && len(s.running()) == 2 {
			select {
			case <-time.After(tick):
			case <-b.Context().Done():
			}
		}

		s.startWorkerProcess()

		a, f := s.recovered(before)
		b.Logf("adopted %s, both places filled %s after the start", a.Round(time.Millisecond), f.Round(time.Millisecond))

		if adopted = append(adopted, a); run%2 == 1 {
			filled = append(filled, f)
		}
	}

	for name, times := range map[string][]time.Duration{"adopted": adopted, "filled": filled} {
		b.ReportMetric(percentile(times, 0.5).Seconds(), name+"-p50-s")
		b.ReportMetric(slices.Max(times).Seconds(), name+"-max-s")
	}

	b.ReportMetric(0, "ns/op")

	_, err := s.api.CancelSweepWithResponse(b.Context(), id)
	require.NoError(b, err)
}

// The only host is away beyond the timeout: no other host took its attempts, so
// it takes them back when it returns.
func TestRecovery_OnlyHostTakesItsAttemptsBack(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	h := c.hosts[0]
	id := c.submit(busy(4, 35_000, half))
	c.until(id, time.Minute, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick)

	before := ids(c.running())

	stop(h.worker, syscall.SIGKILL)

	over := time.Now().Add(fastHeartbeat + fastHost + 5*time.Second)
	require.Eventually(t, func() bool { return time.Now().After(over) }, time.Minute, tick)
	c.startHost(h)
	c.requireOnce(id, 4)

	for _, a := range c.attempts(id) {
		require.Contains(t, before, "berth-"+c.instance+"-"+a.ID, "the container of before went on")
	}

	c.requireTidy()
}
