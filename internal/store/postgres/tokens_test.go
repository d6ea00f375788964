package postgres_test

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// The clocks of server and database differ by an hour. A token of 30 minutes lives for 30
// minutes, and the list agrees with the answer to its user.
func TestTokens_EndByTheDatabasesClock(t *testing.T) {
	t.Parallel()

	for name, wrong := range map[string]string{"it is ahead": "+ interval '1 hour'", "it is behind": "- interval '1 hour'"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			address := pgtest.URL(t)

			u, err := url.Parse(address)
			require.NoError(t, err)
			pgtest.Exec(t, address, "CREATE SCHEMA skewed",
				"CREATE FUNCTION skewed.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT pg_catalog.now() "+wrong+" $$",
				"ALTER DATABASE "+u.Path[1:]+" SET search_path = skewed, pg_catalog, public")

			store := open(t, address)

			for n, life := range []time.Duration{30 * time.Minute, -time.Minute} {
				hash := append(make([]byte, 31), byte(n))
				made, err := store.CreateToken(t.Context(), berth.Token{Name: "ci", Prefix: "berth_abcdef", Role: "operator"}, life, hash)
				require.NoError(t, err)

				token, err := store.TokenByHash(t.Context(), hash)
				require.NoError(t, err)
				require.Equal(t, life > 0, token.Valid)

				list, err := store.ListTokens(t.Context())
				require.NoError(t, err)
				require.Equal(t, token, list[n])
				require.Equal(t, made.ExpiresAt.UTC(), token.ExpiresAt.UTC())
				require.Equal(t, token.Valid, made.Valid)
			}

			count, err := store.CountTokens(t.Context())
			require.NoError(t, err)
			require.Equal(t, berth.TokenCount{Made: 2, Valid: 1}, count)

			left := pgtest.Count(t, address, "SELECT extract(epoch FROM expires_at - now())::int FROM api_tokens ORDER BY expires_at DESC LIMIT 1")
			require.InDelta(t, 30*60, left, 60, "seconds by the clock that decides")
		})
	}
}

// Without a token of an admin the others could only be replaced from the database. Of two
// admins who revoke each other's at once, one is refused.
func TestRevokeToken_LeavesAnAdmin(t *testing.T) {
	t.Parallel()

	s := &sessions{bundle: bare(t)}
	store := s.store
	token := func(role string, life time.Duration) string { return s.token(t, role, life).ID }

	first, second, viewer := token("admin", 0), token("admin", time.Hour), token("viewer", 0)
	token("admin", -time.Second) // has expired

	var (
		both  sync.WaitGroup
		fails [2]error
	)

	for i, id := range []string{first, second} {
		both.Go(func() { fails[i] = store.RevokeToken(t.Context(), id) })
	}

	both.Wait()

	left := 0
	if fails[1] != nil {
		left = 1
	}

	require.NoError(t, fails[1-left])
	require.Equal(t, berth.KindConflict, berth.KindOf(fails[left]))
	require.ErrorContains(t, fails[left], "1 other tokens are valid: make another first, by `berth token create NAME --role admin`")

	last := []string{first, second}[left]
	require.NoError(t, store.RevokeToken(t.Context(), viewer))
	require.NoError(t, store.RevokeToken(t.Context(), last), "the only token: access ends for all, which is meant")
	require.Equal(t, berth.KindNotFound, berth.KindOf(store.RevokeToken(t.Context(), last)))
}

// What health says of admins' tokens is by the database's clock, and not known to a worker.
func TestHealth_OfAdminsTokens(t *testing.T) {
	t.Parallel()

	g := setupRoles(t)
	_, err := g.grant(g.both())
	require.NoError(t, err)

	server := open(t, g.serverURL)
	s := &sessions{bundle: &bundle{store: server}}
	token := func(role string, life time.Duration) { s.token(t, role, life) }

	admins := func(s *postgres.Store) health.AdminTokens {
		health, err := s.Health(t.Context())
		require.NoError(t, err)

		return health.Admins
	}

	require.Equal(t, health.AdminTokens{Known: true}, admins(server))

	token("viewer", 0)
	token("admin", -time.Second)
	require.Equal(t, health.AdminTokens{Known: true, Made: 2}, admins(server))

	token("admin", time.Hour)
	token("admin", 2*time.Hour)

	a := admins(server)
	require.InDelta(t, 2*time.Hour, a.End, float64(time.Minute))

	a.End = 0
	require.Equal(t, health.AdminTokens{Known: true, Made: 4, Valid: 2}, a)

	token("admin", 0)
	require.Equal(t, health.AdminTokens{Known: true, Made: 5, Valid: 3}, admins(server))
	require.Equal(t, health.AdminTokens{}, admins(open(t, g.workerURL)))
}
