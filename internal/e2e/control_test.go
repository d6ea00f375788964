//go:build integration

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// small is a size that needs no probe, so that a test is about something else.
const small = "resources: {memory: 64MiB}\nprobe: {mode: 'off'}"

func TestControl_PauseAndResume(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(8, 1000, small))
	s.until(id, time.Minute, running(2))

	paused, err := s.api.PauseSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, paused.StatusCode(), string(paused.Body))

	// Running trials go on; no new ones start.
	last := s.until(id, time.Minute, func(sweep client.Sweep) bool { return sweep.Counts.Running == 0 })
	require.Equal(t, client.SweepStatePaused, last.State)
	require.Positive(t, last.Counts.Waiting)

	started := len(s.attempts(id))
	deadline := time.Now().Add(3 * time.Second)

	require.Eventually(t, func() bool {
		require.Len(t, s.attempts(id), started, "an attempt started during the pause")

		return time.Now().After(deadline)
	}, time.Minute, tick)

	again, err := s.api.PauseSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, again.StatusCode(), "it may be repeated: %s", again.Body)

	resumed, err := s.api.ResumeSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resumed.StatusCode(), string(resumed.Body))

	require.Equal(t, 8, s.until(id, time.Minute, ended).Counts.Succeeded)
}

func TestControl_StopLetsRunningTrialsFinish(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(8, 2000, small))
	s.until(id, time.Minute, running(2))

	stopped, err := s.api.StopSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, stopped.StatusCode(), string(stopped.Body))

	sweep := s.until(id, time.Minute, ended)
	require.Equal(t, client.SweepStateStopped, sweep.State)
	require.GreaterOrEqual(t, sweep.Counts.Succeeded, 2)
	require.Equal(t, sweep.Counts.Total, sweep.Counts.Succeeded+sweep.Counts.Canceled)
	s.requireQuiet()
}

func TestControl_CancelStopsContainers(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(8, 600_000, small))
	s.until(id, time.Minute, running(2))

	asked := time.Now()
	canceled, err := s.api.CancelSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, canceled.StatusCode(), string(canceled.Body))

	// Grace is 3 s; the rest is for a busy machine.
	require.Eventually(t, func() bool { return len(s.containers()) == 0 }, time.Until(asked.Add(33*time.Second)), tick)

	sweep := s.until(id, 30*time.Second, ended)
	require.Equal(t, client.SweepStateCanceled, sweep.State)
	require.Equal(t, sweep.Counts.Total, sweep.Counts.Canceled)
	require.NotContains(t, s.output("worker"), "level=ERROR", "what was asked for is no error")
	s.requireQuiet()
}

func TestControl_MaxParallelChangesLive(t *testing.T) {
	t.Parallel()

	s := start(t, "--cpus", "4")
	id := s.submit(busy(12, 1000, small, "limits: {max_parallel: 1}"))
	s.until(id, time.Minute, func(sweep client.Sweep) bool { return sweep.Counts.Succeeded >= 1 })
	require.LessOrEqual(t, s.sweep(id).Counts.Running, 1)

	changed, err := s.api.UpdateSweepWithResponse(t.Context(), id, client.SweepPatch{MaxParallel: 3})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, changed.StatusCode(), string(changed.Body))

	s.until(id, 30*time.Second, running(3))
	require.Equal(t, 12, s.until(id, time.Minute, ended).Counts.Succeeded)
	require.LessOrEqual(t, s.most(id), 3)
}

// most is how many attempts of a sweep ran at the same time, by their own times.
func (s *stack) most(id string) int {
	s.t.Helper()

	attempts := s.attempts(id)
	most := 0

	for _, a := range attempts {
		at := 0

		for _, b := range attempts {
			if !b.StartedAt.After(*a.StartedAt) && b.FinishedAt.After(*a.StartedAt) {
				at++
			}
		}

		most = max(most, at)
	}

	return most
}

func TestTwoSweeps_ShareMachineAndProbe(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "4GiB")
	first, second := s.submit(busy(4, 700)), s.submit(busy(4, 700))

	require.Equal(t, 4, s.until(first, time.Minute, ended).Counts.Succeeded)
	require.Equal(t, 4, s.until(second, time.Minute, ended).Counts.Succeeded)

	shapes := map[string]int{}
	for _, a := range append(s.attempts(first), s.attempts(second)...) {
		shapes[a.ShapeKey] += 0

		if a.Purpose == "probe" {
			shapes[a.ShapeKey]++
		}
	}

	for shape, probes := range shapes {
		require.Equal(t, 1, probes, "shape %s was probed %d times", shape, probes)
	}
}
