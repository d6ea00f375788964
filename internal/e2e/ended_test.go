//go:build integration

package e2e

import (
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/workflows"
)

// terminate ends a workflow as a person does in Temporal's web interface.
func (c *cluster) terminate(workflowID string) {
	c.t.Helper()

	require.True(c.t, c.terminated(workflowID), workflowID)
}

// terminated ends a workflow, and reports whether it existed.
func (c *cluster) terminated(workflowID string) bool {
	c.t.Helper()

	connected, err := dialTemporal(c.t.Context(), c.temporal.Address)
	require.NoError(c.t, err)

	defer connected.Close()

	return connected.TerminateWorkflow(c.t.Context(), workflowID, "", "a test") == nil
}

// Failure 42: the workflow of a trial, and then of a sweep, is terminated.
// Other parts then end the trial and the sweep: they stop containers, release
// leases, and store the reason in the rows.
func TestEnded_InTemporal(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	id := c.submit(busy(4, 7000, half))
	c.until(id, time.Minute, running(4))
	c.terminate(workflows.TrialWorkflowID(id, 1))

	sweep := c.until(id, time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, "%+v", sweep)
	require.Equal(t, 3, sweep.Counts.Succeeded)

	trial := c.trials(id)[0]
	require.Equal(t, client.TrialStateCanceled, trial.State)
	require.Contains(t, trial.Message, "ended in Temporal")
	c.requireTidy()

	id = c.submit(busy(6, 600_000, half))
	c.until(id, time.Minute, running(4))
	c.terminate(workflows.SweepWorkflowID(id))

	sweep = c.until(id, 90*time.Second, ended)
	require.Equal(t, client.SweepStateCanceled, sweep.State)
	require.Contains(t, sweep.Reason, "ended in Temporal")
	require.Equal(t, 6, sweep.Counts.Canceled)
	c.requireTidy()

	// And a sweep that no worker has begun yet.
	stop(c.hosts[0].worker, syscall.SIGTERM)
	id = c.submit(busy(1, 100, half))
	require.Eventually(t, func() bool { return c.terminated(workflows.SweepWorkflowID(id)) }, 30*time.Second, tick)

	sweep = c.until(id, time.Minute, ended)
	require.Equal(t, client.SweepStateCanceled, sweep.State)
	require.Contains(t, sweep.Reason, "ended in Temporal")
	c.requireTidy()
}

// Failures 38 and 39, on everything: cancel comes before, while and after a trial
// ends. The first sweep is canceled before its trial can run for its tenth of a
// second, and the last one once it has ended.
func TestRace_CancelCompletionAndRepetition(t *testing.T) {
	t.Parallel()

	// A place that is given while its trial is being canceled is freed on proof: by the reconciler.
	s := start(t, "--cpus", "4", "--waits", "reconcile="+fastReconcile.String()+",grace="+fastGrace.String())
	file := busy(1, 100, small)
	ids := make([]string, 30)
	last := len(ids) - 1

	var group sync.WaitGroup

	for i := range ids {
		ids[i] = s.submit(file)

		if i == last {
			break
		}

		group.Go(func() {
			if i > 0 {
				select {
				case <-time.After(time.Duration(170*i) * time.Millisecond):
				case <-t.Context().Done():
				}
			}

			if _, err := s.api.CancelSweepWithResponse(t.Context(), ids[i]); err != nil {
				t.Errorf("canceling: %v", err)
			}
		})
	}

	group.Wait()
	s.until(ids[last], time.Minute, ended)

	_, err := s.api.CancelSweepWithResponse(t.Context(), ids[last])
	require.NoError(t, err)

	for i, id := range ids {
		sweep := s.until(id, time.Minute, ended)

		switch i {
		case 0:
			require.Equal(t, client.SweepStateCanceled, sweep.State)
		case last:
			require.Equal(t, client.SweepStateSucceeded, sweep.State)
		default:
			require.Contains(t, []client.SweepState{client.SweepStateCanceled, client.SweepStateSucceeded}, sweep.State)
		}

		if sweep.State == client.SweepStateSucceeded {
			require.Equal(t, 1, sweep.Counts.Succeeded)
		}

		for _, trial := range s.trials(id) {
			succeeded := 0

			for _, a := range s.attempts(id) {
				require.NotNil(t, a.FinishedAt)

				if a.FailureKind == "ok" {
					succeeded++
				}
			}

			require.NotEmpty(t, trial.FailureKind, "an end has a cause")

			if trial.State == client.TrialStateSucceeded {
				require.Equal(t, 1, succeeded)
			} else {
				require.Equal(t, client.TrialStateCanceled, trial.State, trial.Message)
			}
		}
	}

	s.requireQuiet()
	s.requireOneOfFifty(file)
}

// requireOneOfFifty is failure 39, on everything: fifty calls at once with one
// key are one sweep, and another body under that key is refused.
func (s *stack) requireOneOfFifty(file string) {
	s.t.Helper()

	key := uuid.NewString()
	answers := make([]*client.CreateSweepResponse, 50)
	failed := make([]error, len(answers))

	var group sync.WaitGroup

	for i := range answers {
		group.Go(func() { answers[i], failed[i] = s.send(file, key) })
	}

	group.Wait()

	made, found := map[string]bool{}, 0

	for i, answer := range answers {
		require.NoError(s.t, failed[i])

		switch {
		case answer.JSON201 != nil:
			made[answer.JSON201.ID] = true
		case answer.JSON200 != nil:
			made[answer.JSON200.ID] = true
			found++
		default:
			require.Fail(s.t, "refused", "%s", answer.Body)
		}
	}

	require.Len(s.t, made, 1)
	require.Equal(s.t, 49, found, "one made it")

	other, err := s.send(file+"# another\n", key)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusConflict, other.StatusCode())

	for id := range made {
		s.until(id, time.Minute, ended)
	}
}
