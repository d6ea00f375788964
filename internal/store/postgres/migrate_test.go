package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/migrations"
)

// migrator has a further step, with this SQL, after the real ones.
func migrator(t *testing.T, url, name, sql string) *postgres.Migrator {
	t.Helper()

	m, err := postgres.NewMigrator(url)
	require.NoError(t, err)

	m.Steps = append(m.Steps, migrations.Step{Number: m.Newest() + 1, Name: name, SQL: sql})

	return m
}

func newest(t *testing.T) int {
	t.Helper()

	steps, err := migrations.Read()
	require.NoError(t, err)

	return len(steps)
}

func (b *bundle) requireVersion(t *testing.T, want int) {
	t.Helper()
	require.Equal(t, want, number[int](t, b.pool, "SELECT version FROM schema_version"))
}

func (b *bundle) requireTable(t *testing.T, name string, is bool) {
	t.Helper()
	require.Equal(t, is, number[bool](t, b.pool, "SELECT to_regclass($1) IS NOT NULL", name))
}

// The number in a file's name is its version: a gap or a second 002 would skip a step.
func TestMigrations_AreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()

	steps, err := migrations.Read()
	require.NoError(t, err)

	for i, step := range steps {
		require.Equal(t, i+1, step.Number)
		require.True(t, strings.HasPrefix(step.Name, fmt.Sprintf("%03d_", step.Number)), step.Name)
	}
}

func TestMigrate_FillsAnEmptyDatabase(t *testing.T) {
	t.Parallel()

	b := bare(t)
	b.exec(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	requireSays(t, b.store.CheckSchema(t.Context()), "the database is empty: run `berth migrate`")

	require.NoError(t, postgres.Migrate(t.Context(), b.url))
	require.NoError(t, postgres.Migrate(t.Context(), b.url), "again")
	require.NoError(t, b.store.CheckSchema(t.Context()))
	b.requireVersion(t, newest(t))
}

func TestMigrate_SaysWhatToDoWithAnotherVersion(t *testing.T) {
	t.Parallel()

	b := bare(t)
	require.NoError(t, migrator(t, b.url, "further", "CREATE TABLE further (n integer)").Up(t.Context()))
	requireSays(t, b.store.CheckSchema(t.Context()), "use the newer berth")
	requireSays(t, postgres.Migrate(t.Context(), b.url), "use the newer berth")
	b.requireVersion(t, newest(t)+1)

	b.exec(t, "UPDATE schema_version SET version = $1", newest(t)-1)

	want := "older than"
	if newest(t) == 1 {
		want = "the database is empty"
	}

	requireSays(t, b.store.CheckSchema(t.Context()), want)
}

// A step that fails in the middle changes nothing: earlier steps stay, and the
// mended step continues.
func TestMigrate_AFailedStepChangesNothing(t *testing.T) {
	t.Parallel()

	b := bare(t)
	last := newest(t)

	err := migrator(t, b.url, "bad", "CREATE TABLE half (n integer); SELECT 1 / 0; CREATE TABLE other (n integer)").Up(t.Context())
	require.ErrorContains(t, err, "migration bad failed and changed nothing")
	b.requireVersion(t, last)
	require.NoError(t, b.store.CheckSchema(t.Context()))
	b.requireTable(t, "half", false)

	require.NoError(t, migrator(t, b.url, "mended", "CREATE TABLE half (n integer); CREATE TABLE other (n integer)").Up(t.Context()))
	b.requireVersion(t, last+1)
	b.requireTable(t, "half", true)
}

// Ctrl-C ends a migration, which changes nothing then.
func TestMigrate_CanBeInterrupted(t *testing.T) {
	t.Parallel()

	b := bare(t)
	last := newest(t)
	ctx, interrupt := context.WithCancel(t.Context())
	m, done := migrator(t, b.url, "slow", "CREATE TABLE half (n integer); SELECT pg_sleep(600)"), make(chan error, 1)

	go func() { done <- m.Up(ctx) }()

	sleeping := func() int {
		return b.rows(t, "pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'")
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
	b.requireVersion(t, last)
	b.requireTable(t, "half", false)
	require.NoError(t, postgres.Migrate(t.Context(), b.url), "its lock is free")
}

// A step does not make every query wait behind it while a backup reads.
func TestMigrate_DoesNotWaitForEverForATable(t *testing.T) {
	t.Parallel()

	b := bare(t)
	last := newest(t)
	m := migrator(t, b.url, "wide", "ALTER TABLE hosts ADD wide integer")
	m.LockWait = 50 * time.Millisecond

	backup, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = backup.Exec(t.Context(), "LOCK TABLE hosts IN ACCESS SHARE MODE")
	require.NoError(t, err)

	err = m.Up(t.Context())
	require.ErrorContains(t, err, "such as a backup")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	b.requireVersion(t, last)

	require.NoError(t, backup.Rollback(t.Context()))
	require.NoError(t, m.Up(t.Context()))
	b.requireVersion(t, last+1)
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
