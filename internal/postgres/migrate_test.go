package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/migrations"
)

// migrator moves the schema of a database, with further steps after the real ones.
func migrator(t *testing.T, url string, further ...migrations.Step) *postgres.Migrator {
	t.Helper()

	m, err := postgres.NewMigrator(url)
	require.NoError(t, err)

	m.Steps = append(m.Steps, further...)

	return m
}

func newest(t *testing.T) int {
	t.Helper()

	n, err := migrations.Newest()
	require.NoError(t, err)

	return n
}

// requireVersion wants the version as golang-migrate, by which older berths
// migrate, has it.
func requireVersion(t *testing.T, pool *pgxpool.Pool, want int) {
	t.Helper()

	var (
		version int
		dirty   bool
	)

	require.NoError(t, pool.QueryRow(t.Context(), "SELECT version, dirty FROM schema_migrations").Scan(&version, &dirty))
	require.Equal(t, want, version)
	require.False(t, dirty)
}

// objects is what is in a schema: every column and constraint.
func objects(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()

	var all string

	require.NoError(t, pool.QueryRow(t.Context(), `SELECT string_agg(o, E'\n' ORDER BY o) FROM (
		SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(column_default, '') AS o
		FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT conname || ' ' || pg_get_constraintdef(c.oid) FROM pg_constraint c WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public') s`).Scan(&all))

	return all
}

func TestMigrate_UpDownUp(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store, pool, m := open(t, url), openPool(t, url), migrator(t, url)
	whole := objects(t, pool)

	require.NoError(t, store.CheckSchema(t.Context()))
	require.NoError(t, m.To(t.Context(), 0))
	require.ErrorContains(t, store.CheckSchema(t.Context()), "the database is empty: run `berth migrate`")

	require.NoError(t, postgres.Migrate(t.Context(), url))
	require.NoError(t, postgres.Migrate(t.Context(), url))
	require.NoError(t, store.CheckSchema(t.Context()))
	require.Equal(t, whole, objects(t, pool))
}

// Each step can be taken back alone, and done again.
func TestMigrate_To(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool, m := openPool(t, url), migrator(t, url)
	at := map[int]string{}

	for _, step := range slices.Backward(m.Steps) {
		require.NoError(t, m.To(t.Context(), step.Number))
		requireVersion(t, pool, step.Number)
		at[step.Number] = objects(t, pool)
	}

	for _, step := range m.Steps {
		require.NoError(t, m.To(t.Context(), step.Number))
		requireVersion(t, pool, step.Number)
		require.Equal(t, at[step.Number], objects(t, pool), step.Name)
	}

	require.ErrorContains(t, m.To(t.Context(), 900), "there is no schema version 900")
	require.ErrorContains(t, m.To(t.Context(), -1), "there is no schema version -1")
	requireVersion(t, pool, newest(t))
}

// A person who goes back is told what that loses.
func TestMigrate_SaysWhatGoingBackLoses(t *testing.T) {
	t.Parallel()

	m := migrator(t, pgtest.URL(t))
	losses, err := m.Losses(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, losses, len(m.Steps))
	require.Equal(t, "001_initial_schema: everything.", losses[len(losses)-1])

	for _, step := range m.Steps {
		require.NotEmpty(t, step.Loses, "%s.down.sql begins with -- Lost:", step.Name)
	}

	losses, err = m.Losses(t.Context(), newest(t))
	require.NoError(t, err)
	require.Empty(t, losses)
}

func TestMigrate_SaysWhatToDoWithAnotherVersion(t *testing.T) {
	t.Parallel()

	last := newest(t)

	for name, test := range map[string]struct {
		further string // a newer step
		check   string // of what CheckSchema says; empty = nothing
		migrate string // the same of Migrate
	}{
		"newer and additive":               {"ALTER TABLE hosts ADD further integer NOT NULL DEFAULT 0", "", ""},
		"newer, and takes something away":  {fmt.Sprintf("INSERT INTO schema_compat VALUES (%d, %d)", last+1, last+1), "use the newer berth", "use the newer berth"},
		"newer, but it was not used by us": {fmt.Sprintf("INSERT INTO schema_compat VALUES (%d, %d)", last+1, last), "", ""},
	} {
		url := pgtest.URL(t)
		version, err := migrator(t, url, migrations.Step{Number: last + 1, Up: test.further}).Up(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, last+1, version, name)

		requireSays(t, open(t, url).CheckSchema(t.Context()), test.check)
		requireSays(t, postgres.Migrate(t.Context(), url), test.migrate)
		requireVersion(t, openPool(t, url), last+1)
		requireSays(t, migrator(t, url).To(t.Context(), last), "use the berth that knows version")
	}

	url := pgtest.URL(t)
	m := migrator(t, url)
	require.NoError(t, m.To(t.Context(), m.Steps[len(m.Steps)-2].Number))
	requireSays(t, open(t, url).CheckSchema(t.Context()), "older than")
}

// A step that fails in its middle changes nothing: what ran before goes on, and
// the mended step continues.
func TestMigrate_AFailedStepChangesNothing(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store, pool, last := open(t, url), openPool(t, url), newest(t)
	before := objects(t, pool)
	good := migrations.Step{Number: last + 1, Name: "good", Up: "CREATE TABLE good (n integer)", Down: "DROP TABLE good"}
	bad := migrations.Step{Number: last + 2, Name: "bad", Up: "CREATE TABLE half (n integer); SELECT 1 / 0; CREATE TABLE other (n integer)", Down: "DROP TABLE half"}

	version, err := migrator(t, url, good, bad).Up(t.Context())
	require.ErrorContains(t, err, "migration bad failed and changed nothing")
	require.Equal(t, last+1, version)
	requireVersion(t, pool, last+1)
	require.NoError(t, store.CheckSchema(t.Context()))
	require.NotContains(t, objects(t, pool), "half")

	bad.Up = strings.Replace(bad.Up, "SELECT 1 / 0; ", "", 1)
	_, err = migrator(t, url, good, bad).Up(t.Context())
	require.NoError(t, err)
	requireVersion(t, pool, last+2)

	bad.Down = "DROP TABLE half; DROP TABLE nothing"
	require.ErrorContains(t, migrator(t, url, good, bad).To(t.Context(), last), "migration bad failed and changed nothing")
	requireVersion(t, pool, last+2)

	bad.Down = "DROP TABLE half, other"
	require.NoError(t, migrator(t, url, good, bad).To(t.Context(), last))
	requireVersion(t, pool, last)
	require.Equal(t, before, objects(t, pool))
}

// Ctrl-C ends a migration, which changes nothing then.
func TestMigrate_CanBeInterrupted(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool, last := openPool(t, url), newest(t)
	slow := migrations.Step{Number: last + 1, Name: "slow", Up: "CREATE TABLE half (n integer); SELECT pg_sleep(600)"}

	ctx, interrupt := context.WithCancel(t.Context())
	m, done := migrator(t, url, slow), make(chan error, 1)

	go func() {
		_, err := m.Up(ctx)
		done <- err
	}()

	sleeping := func() (n int) {
		_ = pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'").Scan(&n)

		return n
	}

	require.Eventually(t, func() bool { return sleeping() == 1 }, 20*time.Second, 10*time.Millisecond)
	interrupt()

	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "migration slow was interrupted and changed nothing")
	case <-time.After(10 * time.Second):
		require.Fail(t, "the migration goes on")
	}

	require.Eventually(t, func() bool { return sleeping() == 0 }, 20*time.Second, 10*time.Millisecond, "the statement ends, too")
	requireVersion(t, pool, last)
	require.NotContains(t, objects(t, pool), "half")
	require.NoError(t, postgres.Migrate(t.Context(), url), "its lock is free")
}

// A step does not make everybody wait behind it while a backup reads.
func TestMigrate_DoesNotWaitForEverForATable(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool, last := openPool(t, url), newest(t)
	m := migrator(t, url, migrations.Step{Number: last + 1, Name: "wide", Up: "ALTER TABLE hosts ADD wide integer"})
	m.LockWait = 50 * time.Millisecond

	backup, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = backup.Exec(t.Context(), "LOCK TABLE hosts IN ACCESS SHARE MODE")
	require.NoError(t, err)

	_, err = m.Up(t.Context())
	require.ErrorContains(t, err, "such as a backup")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	requireVersion(t, pool, last)

	require.NoError(t, backup.Rollback(t.Context()))

	_, err = m.Up(t.Context())
	require.NoError(t, err)
	requireVersion(t, pool, last+1)
}

// An older berth that was cut off left a mark, and its changes as a whole or
// not at all. Nobody has to find out by hand which.
func TestMigrate_FinishesWhatAnOlderBerthLeft(t *testing.T) {
	t.Parallel()

	for i, step := range migrator(t, "").Steps {
		for _, there := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, applied %v", step.Name, there), func(t *testing.T) { // its connections end with it
				t.Parallel()

				url := pgtest.URL(t)
				pool, m := openPool(t, url), migrator(t, url)
				whole := objects(t, pool)

				before := 0
				if i > 0 {
					before = m.Steps[i-1].Number
				}

				if there {
					before = step.Number
				}

				require.NoError(t, m.To(t.Context(), before))

				_, err := pool.Exec(t.Context(), fmt.Sprintf("DELETE FROM schema_migrations; INSERT INTO schema_migrations VALUES (%d, true)", step.Number))
				require.NoError(t, err)
				require.ErrorContains(t, open(t, url).CheckSchema(t.Context()), "was cut off: run `berth migrate`")

				require.NoError(t, postgres.Migrate(t.Context(), url))
				requireVersion(t, pool, newest(t))
				require.Equal(t, whole, objects(t, pool))
			})
		}
	}
}

// requireSays wants an error with these words, or none when there are none.
func requireSays(t *testing.T, err error, words string) {
	t.Helper()

	if words == "" {
		require.NoError(t, err)

		return
	}

	require.ErrorContains(t, err, words)
	require.NotEqual(t, berth.KindInternal, berth.KindOf(err))
}
