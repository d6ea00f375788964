//go:build integration

package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// send posts a sweep file once.
func (s *stack) send(file, key string) (*client.CreateSweepResponse, error) {
	return s.api.CreateSweepWithBodyWithResponse(s.t.Context(),
		&client.CreateSweepParams{IdempotencyKey: key}, "application/yaml", strings.NewReader(file))
}

// post sends a sweep file, again and again like a user: a busy machine may not
// resolve an image in time.
func (s *stack) post(file string) *client.CreateSweepResponse {
	s.t.Helper()

	key := uuid.NewString()

	var response *client.CreateSweepResponse

	require.Eventually(s.t, func() bool {
		var err error

		response, err = s.send(file, key)

		return err == nil && response.StatusCode() != http.StatusServiceUnavailable
	}, time.Minute, tick)

	return response
}

// submit posts a sweep file and returns the sweep's id.
func (s *stack) submit(file string) string {
	s.t.Helper()

	response := s.post(file)
	require.Equal(s.t, http.StatusCreated, response.StatusCode(), string(response.Body))

	return response.JSON201.ID
}

// refused posts a sweep file that must be, and returns why.
func (s *stack) refused(file string) string {
	s.t.Helper()

	response := s.post(file)
	require.Equal(s.t, http.StatusUnprocessableEntity, response.StatusCode(), string(response.Body))

	return string(response.Body)
}

// sweep returns a sweep as it is now.
func (s *stack) sweep(id string) client.Sweep {
	s.t.Helper()

	return s.until(id, time.Minute, func(client.Sweep) bool { return true })
}

// until polls a sweep until the condition holds. A 503 is an answer, too: a
// database that has just restarted may end a connection in the middle of a call.
func (s *stack) until(id string, patience time.Duration, condition func(client.Sweep) bool) client.Sweep {
	s.t.Helper()

	var last client.Sweep

	require.Eventually(s.t, func() bool {
		response, err := s.api.GetSweepWithResponse(s.t.Context(), id)
		require.NoError(s.t, err)

		if response.StatusCode() == http.StatusServiceUnavailable {
			requireRefused(s.t, response.HTTPResponse, response.Body)

			return false
		}

		require.NotNil(s.t, response.JSON200, string(response.Body))
		last = *response.JSON200

		return condition(last)
	}, patience, tick, "sweep stays %+v", &last)

	return last
}

func ended(sweep client.Sweep) bool { return sweep.FinishedAt != nil }

func running(n int) func(client.Sweep) bool {
	return func(sweep client.Sweep) bool { return sweep.Counts.Running >= n }
}

func (s *stack) trials(id string) []client.Trial {
	s.t.Helper()

	response, err := s.api.ListTrialsWithResponse(s.t.Context(), id, &client.ListTrialsParams{Limit: new(client.Limit(500))})
	require.NoError(s.t, err)
	require.NotNil(s.t, response.JSON200, string(response.Body))

	return response.JSON200.Data
}

func (s *stack) attempts(id string) []client.Attempt {
	s.t.Helper()

	response, err := s.api.ListSweepAttemptsWithResponse(s.t.Context(), id, &client.ListSweepAttemptsParams{Limit: new(client.Limit(500))})
	require.NoError(s.t, err)
	require.NotNil(s.t, response.JSON200, string(response.Body))

	return response.JSON200.Data
}

// requireQuiet checks that a sweep left nothing: no container, nothing reserved.
func (s *stack) requireQuiet() {
	s.t.Helper()

	require.Eventually(s.t, func() bool {
		hosts, err := s.api.ListHostsWithResponse(s.t.Context())
		if err != nil || hosts.JSON200 == nil {
			return false
		}

		h := hosts.JSON200.Data[0]

		return h.MemoryReservedBytes == 0 && h.CPUMilliReserved == 0 && len(s.containers()) == 0
	}, 30*time.Second, tick, "containers or reservations are left: %v", s.containers())
}

// busy is a sweep of n trials of the test program: each works for ms and
// reports its number. Extra lines go into the file as they are.
func busy(n, ms int, extra ...string) string {
	var numbers []string
	for i := range n {
		numbers = append(numbers, strconv.Itoa(i+1))
	}

	file := `
name: busy
image: berth-test/busy:1
command: [/busy, train, "` + strconv.Itoa(ms) + `", "{{n}}"]
parameters: [{name: n, values: [` + strings.Join(numbers, ", ") + `]}, {name: shape, type: fixed, value: 1}]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
`

	return file + strings.Join(extra, "\n") + "\n"
}

func TestSweep_RunsToItsEnd(t *testing.T) {
	t.Parallel()

	s := start(t)
	id := s.submit(busy(6, 200, "resources: {memory: 64MiB}", "probe: {mode: 'off'}"))
	sweep := s.until(id, time.Minute, ended)

	require.Equal(t, client.SweepStateSucceeded, sweep.State)
	require.Equal(t, 6, sweep.Counts.Succeeded)
	require.InDelta(t, 6.0, sweep.Best.Value, 0)

	for _, attempt := range s.attempts(id) {
		require.Equal(t, "ok", attempt.FailureKind)
		require.Equal(t, int64(64<<20), attempt.Demand.MemoryBytes)
	}

	s.requireQuiet()
}
