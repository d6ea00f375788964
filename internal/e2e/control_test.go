//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

const (
	// small is a size that needs no probe, so that a test is about something else.
	small = "resources: {memory: 64MiB}\nprobe: {mode: 'off'}"
	// twoAtOnce bounds a sweep whose others have to wait.
	twoAtOnce = "limits: {max_parallel: 2}"
)

// A sweep is paused, resumed, and stopped, which lets running trials finish.
func TestControl_PauseResumeStop(t *testing.T) {
	t.Parallel()

	s := plain(t)
	id := s.submit(busy(40, 1000, small, twoAtOnce))
	s.until(id, patience, running(2))

	paused, err := s.api.PauseSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, paused.StatusCode(), string(paused.Body))

	// Running trials go on; no new ones start.
	last := s.until(id, patience, func(sweep client.Sweep) bool { return sweep.Counts.Running == 0 })
	require.Equal(t, client.SweepStatePaused, last.State)
	require.Positive(t, last.Counts.Waiting)
	s.requireOneTrial() // of another sweep: the placer has had its round

	sweep := s.sweep(id)
	require.Equal(t, client.SweepStatePaused, sweep.State)
	require.Equal(t, last.Counts, sweep.Counts)

	resumed, err := s.api.ResumeSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resumed.StatusCode(), string(resumed.Body))

	done := last.Counts.Succeeded
	s.until(id, patience, running(2))

	stopped, err := s.api.StopSweepWithResponse(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, stopped.StatusCode(), string(stopped.Body))

	sweep = s.until(id, patience, ended)
	require.Equal(t, client.SweepStateStopped, sweep.State)
	require.GreaterOrEqual(t, sweep.Counts.Succeeded, done+2)
	require.Equal(t, sweep.Counts.Total, sweep.Counts.Succeeded+sweep.Counts.Canceled)
	s.requireQuiet(id)
}

// A cancellation ends a job that ignores SIGTERM, too, and no neighbour's.
func TestControl_CancelStopsContainers(t *testing.T) {
	t.Parallel()

	s := plain(t)
	neighbour := s.submit(untilTold(2))
	boxes := s.twoRunning(neighbour)

	for _, file := range []string{busy(8, 600_000, small, twoAtOnce), one("[/busy, ignore]")} {
		id := s.submit(file)
		s.until(id, patience, running(1))
		require.Eventually(t, func() bool { return len(s.running(id)) > 0 }, patience, tick)

		canceled, err := s.api.CancelSweepWithResponse(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, canceled.StatusCode(), string(canceled.Body))

		sweep := s.until(id, patience, ended)
		require.Equal(t, client.SweepStateCanceled, sweep.State)
		require.Equal(t, sweep.Counts.Total, sweep.Counts.Canceled)
		s.requireQuiet(id)
	}

	require.Equal(t, boxes, s.running(neighbour))

	for _, box := range boxes {
		s.touch(box, "/tmp/end")
	}

	s.requireOnce(neighbour, 2)
}

// Two sweeps of one shape run at once, and one probe serves both, as the preview said.
func TestTwoSweeps_ShareMachineAndProbe(t *testing.T) {
	t.Parallel()

	s := plain(t)
	file := busy(4, 710)

	before := s.preview(file)
	require.Equal(t, 4, before.Trials)
	require.Len(t, before.Shapes, before.ProbesNeeded)

	first, second := s.submit(file), s.submit(file)

	require.Equal(t, 4, s.until(first, patience, ended).Counts.Succeeded)
	require.Equal(t, 4, s.until(second, patience, ended).Counts.Succeeded)

	shapes := map[string]int{}
	for _, a := range append(s.attempts(first), s.attempts(second)...) {
		shapes[a.ShapeKey] += 0

		if a.Purpose == "probe" {
			shapes[a.ShapeKey]++
		}
	}

	require.Len(t, shapes, len(before.Shapes))

	for shape, probes := range shapes {
		require.Equal(t, 1, probes, "shape %s was probed %d times", shape, probes)
	}
}

// preview is what the server says of a file once the image is known.
func (s *stack) preview(file string) client.Preview {
	s.t.Helper()

	var response *client.PreviewSweepResponse

	require.Eventually(s.t, func() bool {
		var err error

		response, err = s.api.PreviewSweepWithBodyWithResponse(s.t.Context(), "application/yaml", strings.NewReader(file))
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusOK, response.StatusCode(), string(response.Body))

		return response.JSON200.ImageDigest != ""
	}, patience, tick)

	return *response.JSON200
}
