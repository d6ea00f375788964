package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// A server on which Berth cannot run is refused at once, with a sentence.
func TestOpen_RefusesServersItCannotRunOn(t *testing.T) {
	t.Parallel()

	for function, says := range map[string]string{
		"pg_backend_pid() RETURNS integer LANGUAGE sql AS 'SELECT 7'":              "behind a connection pooler", // which makes up the process ids by which its clients cancel
		"current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '130014' $$": "this is PostgreSQL 13, and Berth needs version 14 or newer",
		"current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '140000' $$": "",
	} {
		b := bare(t)
		b.exec(t, "CREATE FUNCTION "+function)
		b.exec(t, "ALTER DATABASE "+databaseOf(b.url)+" SET search_path = public, pg_catalog")

		for _, err := range []error{opens(t, b.url), postgres.Migrate(t.Context(), b.url)} {
			if says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, says)
				require.Equal(t, berth.KindInvalid, berth.KindOf(err), "it is not tried again")
			}
		}
	}
}

// opens is the error of opening a store.
func opens(t *testing.T, url string) error {
	t.Helper()

	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err == nil {
		store.Close()
	}

	return err
}

// The statements of a round are long and return few rows: a server that compiles them takes
// several times as long, and with a long queue longer than the statement timeout.
func TestOpen_CompilesNoStatements(t *testing.T) {
	t.Parallel()
	require.Equal(t, "off", number[string](t, open(t, pgtest.URL(t)).Pool(), "SELECT current_setting('jit')"))
}

// A process that cannot ask for its lock logs that, and healthz shows it; it
// leads as soon as it can.
func TestLead_SaysWhyItDoesNotLead(t *testing.T) {
	t.Parallel()

	var log bytes.Buffer // read once Lead has ended

	b := bare(t)
	require.True(t, b.health(t).NoPlacer)

	// What PostgreSQL 13 answers to a setting that it does not know, here to a function that is gone.
	b.exec(t, `CREATE FUNCTION pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'no locks today'; END $$;
		ALTER DATABASE `+databaseOf(b.url)+` SET search_path = public, pg_catalog`)

	broken, err := postgres.Open(t.Context(), postgres.Config{URL: b.url, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	t.Cleanup(broken.Close)

	ctx, cancel := context.WithCancel(t.Context())
	led, done := make(chan struct{}), make(chan error, 1)

	go func() {
		done <- broken.Lead(ctx, "placer", func(ctx context.Context) error {
			close(led)
			<-ctx.Done()

			return ctx.Err()
		})
	}()

	require.Eventually(t, func() bool {
		health, err := broken.Health(t.Context())

		return err == nil && health.NoPlacer && strings.Contains(health.PlacerReason, "no locks today")
	}, 20*time.Second, 10*time.Millisecond)

	b.exec(t, "DROP FUNCTION public.pg_try_advisory_lock(bigint)")
	<-led
	require.False(t, b.health(t).NoPlacer, "also a process that does not lead sees that another does")

	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Equal(t, 1, strings.Count(log.String(), "no locks today"))
}

func databaseOf(url string) string {
	name := url[strings.LastIndex(url, "/")+1:]
	name, _, _ = strings.Cut(name, "?")

	return name
}

// What the leader's work returns is the caller's, not a reason to try again.
func TestLead_ReturnsWhatLeadingReturns(t *testing.T) {
	t.Parallel()

	failure := errors.New("failed")
	require.ErrorIs(t, pgtest.Store(t).Lead(t.Context(), "x", func(context.Context) error { return failure }), failure)
}

// A password of `openssl rand -base64 24` has a slash more often than not. With digits before
// it, the URL even names a host.
func TestURL_WithASlashInThePassword(t *testing.T) {
	t.Parallel()

	for _, url := range []string{
		"postgres://berth:geheim/rest@127.0.0.1:1/berth", "postgres://berth:12/rest@127.0.0.1:1/berth", "postgresql://berth:a/b?c@127.0.0.1:1/berth?sslmode=disable",
	} {
		_, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		require.ErrorContains(t, err, "write / as %2F", url)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
		require.NotContains(t, err.Error(), "geheim")
		require.ErrorContains(t, postgres.Migrate(t.Context(), url), "write / as %2F", url)
	}

	for _, url := range []string{"postgres://berth:geheim%2Frest@127.0.0.1:1/berth", "postgres:///berth?host=127.0.0.1&port=1&user=a@b", "postgres://a:b@127.0.0.1:1/x@y"} {
		_, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "it is read, and nothing answers: %v", err)
	}

	_, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://berth@127.0.0.1:many/berth"})
	require.ErrorContains(t, err, "invalid port")
	require.NotContains(t, err.Error(), "%2F")
}
