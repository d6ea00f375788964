//go:build integration

package e2e

import (
	"net/http"
	"strconv"
	"strings"
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
	}, patience, tick)

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

	return s.until(id, patience, func(client.Sweep) bool { return true })
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

// requireQuiet checks that an ended sweep leaves no container. What all of them
// reserved is checked when their stack ends.
func (s *stack) requireQuiet(id string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.containers(id)) == 0 }, patience, tick, "containers are left")
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
