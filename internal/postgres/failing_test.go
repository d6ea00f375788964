package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// A placer whose rounds fail holds its lock all the same: health, of any server, says that
// nothing starts and why, until a round does not fail.
func TestHealth_SaysThatRoundsOfThePlacerFail(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	r := b.request(t, gib)

	ctx, stop := context.WithCancel(t.Context())

	var group errgroup.Group

	group.Go(func() error { return placer.New(b.store, slog.New(slog.DiscardHandler)).Run(ctx) })
	t.Cleanup(func() {
		stop()
		_ = group.Wait()
	})

	health := func() health.Finding {
		t.Helper()

		h, err := b.store.Health(t.Context())
		require.NoError(t, err)

		findings := h.Findings()

		return findings[slices.IndexFunc(findings, func(f health.Finding) bool { return f.Part == "placer" })]
	}
	placed := func() bool { return b.status(t, r) == berth.RequestPlaced }
	require.Eventually(t, placed, 20*time.Second, 50*time.Millisecond)
	require.True(t, health().OK)

	for _, statement := range []string{
		"CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'no suspects today'; END $$ LANGUAGE plpgsql",
		"CREATE TRIGGER refuse BEFORE UPDATE ON leases FOR EACH ROW WHEN (NEW.state = 'suspect') EXECUTE FUNCTION refuse()",
		"UPDATE leases SET expires_at = now() - interval '1 second'",
	} {
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}

	require.Eventually(t, func() bool { return !health().OK }, 20*time.Second, 50*time.Millisecond)
	require.Regexp(t, `the server's rounds fail since 20.*no suspects today`, health().What)

	_, err := pool.Exec(t.Context(), "DROP TRIGGER refuse ON leases")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return health().OK }, 20*time.Second, 50*time.Millisecond)
}

// Health reports failing rounds after three in a row, and withdraws the report after a
// good one; the next leading server withdraws an earlier one's report.
func TestNoteRound(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	s, successor := open(t, url), open(t, url)
	failing := func() map[string]string {
		t.Helper()

		h, err := s.Health(t.Context())
		require.NoError(t, err)

		return h.FailingRounds
	}

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
