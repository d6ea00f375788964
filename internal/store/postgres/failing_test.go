package postgres_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Health reports failing rounds after three in a row, and withdraws the report after a
// good one; the next leading server withdraws an earlier one's report.
func TestNoteRound(t *testing.T) {
	t.Parallel()

	b := bare(t)
	s, successor := b.store, open(t, b.url)
	failing := func() map[string]string { return b.health(t).FailingRounds }

	for _, round := range []struct {
		err  error
		says string
	}{
		{nil, ""},
		{errors.New("one"), ""},
		{errors.New("two"), ""},
		{nil, ""},
		{errors.New("a"), ""},
		{errors.New("b"), ""},
		{errors.New("c"), `^since 2.* UTC: c$`},
		{errors.New("d"), `^since 2.* UTC: d$`},
		{nil, ""},
	} {
		s.NoteRound(t.Context(), "outbox", round.err)

		if round.says == "" {
			require.Empty(t, failing(), round.err)
		} else {
			require.Regexp(t, round.says, failing()["outbox"])
		}
	}

	for range 3 {
		s.NoteRound(t.Context(), "outbox", errors.New("slow"))
		s.NoteRound(t.Context(), "placer", errors.New("slow"))
	}

	require.Len(t, failing(), 2)
	successor.NoteRound(t.Context(), "placer", errors.New("one"))
	require.Len(t, failing(), 2)
	successor.NoteRound(t.Context(), "placer", nil)
	require.Len(t, failing(), 1)
}
