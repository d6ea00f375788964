package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// longList is a sweep file that lists 10,000 trials.
func longList(t testing.TB, more string) berth.Spec {
	t.Helper()

	var file strings.Builder

	file.WriteString("name: long\nimage: b\ncommand: [train, '--lr={{lr}}', '--seed={{seed}}']\n" + more + "enqueue:\n")

	for i := range 10_000 {
		fmt.Fprintf(&file, "- {lr: %d.5, seed: %d, note: 'a listed trial of a long sweep file'}\n", i, i)
	}

	s, err := spec.Decode([]byte(file.String()), "")
	require.NoError(t, err)

	return s
}

// Rounds and trials read equally little of a sweep of 10,000 listed trials and of a small
// one. The file request returns the whole file, and the search reads the entries that
// come next.
func TestSweepFile_IsReadByThoseWhoShowIt(t *testing.T) {
	t.Parallel()

	b := bare(t)
	s := longList(t, "objective: {metric: acc, goal: minimize}\nlimits: {max_trial_duration: 3h}\nretry: {max_attempts: 5}\nresources: {memory: 3GiB}\n")
	b.begin(t, s)

	shown, err := b.store.GetSweep(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, s, shown.Spec)

	require.Less(t, number[int](t, b.pool, "SELECT max(length(spec::text)) FROM sweeps"), 2000)
	require.Equal(t, 1, number[int](t, b.pool, `SELECT count(*) FROM sweeps WHERE metric = 'acc' AND minimizes AND max_attempts = 5
		AND trial_limit::text = '"3h0m0s"' AND resources ->> 'memory' = '3221225472'`))

	record, err := b.store.SweepRecord(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, s.Command, record.Spec.Command)
	require.Empty(t, record.Spec.Enqueue)

	b.request(t, gib)

	_, _, err = b.store.Suggest(t.Context(), b.sweep, 2, 8, berth.SearchNeeds{}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Equal(t, 10_000, tried.Listed)
		require.Equal(t, 1, tried.From)
		require.Less(t, len(tried.Entries), 200)
		require.Equal(t, s.Enqueue[1], tried.Entries[0])

		return nil, false, nil
	})
	require.NoError(t, err)
}
