package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/spec"
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

	url := pgtest.URL(t)
	b := setupOn(t, url)
	s := longList(t, "objective: {metric: acc, goal: minimize}\nlimits: {max_trial_duration: 3h}\nretry: {max_attempts: 5}\nresources: {memory: 3GiB}\n")
	b.sweep, b.trial = uuid.NewString(), 0

	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{ID: b.sweep, Spec: s, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)

	shown, err := b.store.GetSweep(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, s, shown.Spec)

	require.Less(t, pgtest.Count(t, url, "SELECT max(length(spec::text)) FROM sweeps"), 2000)
	require.Equal(t, 1, pgtest.Count(t, url, `SELECT count(*) FROM sweeps WHERE metric = 'acc' AND minimizes AND max_attempts = 5
		AND trial_limit::text = '"3h0m0s"' AND resources ->> 'memory' = '3221225472'`))

	record, err := b.store.SweepRecord(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, s.Command, record.Spec.Command)
	require.Empty(t, record.Spec.Enqueue)

	b.request(t, gib)

	_, _, err = b.store.Suggest(t.Context(), b.sweep, 2, 8, false, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Equal(t, 10_000, tried.Listed)
		require.Equal(t, 1, tried.From)
		require.Less(t, len(tried.Entries), 200)
		require.Equal(t, s.Enqueue[1], tried.Entries[0])

		return nil, false, nil
	})
	require.NoError(t, err)
}

// A list of 10,000 trials with a full window stops no round: the requests of such a sweep
// and of another one are listed, and fitting ones are placed.
func TestQueue_LongListBesideAnotherSweep(t *testing.T) {
	t.Parallel()

	b := setup(t)
	own := b.sweep
	b.sweep, b.trial = uuid.NewString(), 0

	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{ID: b.sweep, Spec: longList(t, ""), ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)

	for range berth.MaxOpenTrials {
		b.request(t, gib)
	}

	b.sweep, b.trial = own, 0
	innocent := b.request(t, gib)

	queue, err := b.store.Queue(t.Context(), 10_000)
	require.NoError(t, err)
	require.Contains(t, ids(queue.Waiting), innocent.AttemptID)
	b.place(t, innocent)
}

func ids(waiting []berth.WaitingRequest) []string {
	out := make([]string, len(waiting))
	for i, w := range waiting {
		out[i] = w.AttemptID
	}

	return out
}
