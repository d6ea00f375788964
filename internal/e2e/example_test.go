//go:build integration

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// TestExample_OutOfMemory runs examples/oom: real TensorFlow where some trials
// need three times as much as the first of their shape.
func TestExample_OutOfMemory(t *testing.T) {
	t.Parallel()

	file, err := os.ReadFile("../../examples/oom/sweep.yaml")
	require.NoError(t, err)

	s := start(t, "--memory", "6GiB")

	// Any trial may measure its shape; here it is one of the smallest.
	smallest := strings.Replace(string(file), "values: [1, 16, 32, 40]", "values: [1]", 1)
	require.NotEqual(t, string(file), smallest)
	s.until(s.submit(smallest), 5*time.Minute, ended)

	id := s.submit(string(file))
	sweep := s.until(id, 10*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, 8, sweep.Counts.Succeeded)
	require.Positive(t, sweep.Counts.OomRetries)

	last := map[int]client.Attempt{}
	again := [][2]client.Attempt{} // the killed attempt, and the next of its trial
	attempts := s.attempts(id)

	for _, a := range attempts {
		if before, ok := last[a.TrialNumber]; ok {
			require.Equal(t, "host_oom", before.FailureKind, "only an out-of-memory was repeated: %s", before.Message)
			require.Greater(t, a.Demand.MemoryBytes, before.Demand.MemoryBytes)

			again = append(again, [2]client.Attempt{before, a})
		}

		if a.FailureKind == "host_oom" {
			require.Contains(t, a.Message, "the kernel killed it")
			require.LessOrEqual(t, a.Usage.MemoryPeakBytes, a.Demand.MemoryBytes)
		}

		last[a.TrialNumber] = a
	}

	for _, a := range last {
		require.Equal(t, "ok", a.FailureKind)
	}

	// A trial asks again once its shape has learned: each attempt placed since
	// then has more than the amount that was too little.
	for _, pair := range again {
		killed, next := pair[0], pair[1]

		for _, a := range attempts {
			if a.ShapeKey == killed.ShapeKey && !a.PlacedAt.Before(next.PlacedAt) {
				require.Greater(t, a.Demand.MemoryBytes, killed.Demand.MemoryBytes, "trial %d after trial %d", a.TrialNumber, killed.TrialNumber)
			}
		}
	}

	s.requireQuiet()
}
