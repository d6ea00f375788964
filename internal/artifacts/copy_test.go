package artifacts_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/artifacts"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

// drill restores a dump of the database beside it, and opens the same store with it.
func (b *bench) drill() (db *postgres.Store, store *artifacts.Store, session *pgtest.Session) {
	b.t.Helper()

	u, err := url.Parse(b.url)
	require.NoError(b.t, err)

	name := u.Path[1:]
	u.Path = "/postgres"

	b.db.Close() // a template may have no other sessions: stands for pg_dump and pg_restore
	pgtest.Exec(b.t, u.String(), "CREATE DATABASE "+name+"_drill TEMPLATE "+name)

	b.db, err = postgres.Open(b.t.Context(), postgres.Config{URL: b.url})
	require.NoError(b.t, err)
	b.t.Cleanup(b.db.Close)
	b.store = b.open(b.storeDir, "one")
	b.uploader = b.newUploader(b.db)

	u.Path = "/" + name + "_drill"
	db, err = postgres.Open(b.t.Context(), postgres.Config{URL: u.String()})
	require.NoError(b.t, err)
	b.t.Cleanup(db.Close)

	store, err = artifacts.Open(b.t.Context(), b.storeDir, "one", db)
	require.NoError(b.t, err)

	store.Original = func(context.Context) (bool, error) { return false, nil }
	b.t.Cleanup(func() { require.NoError(b.t, store.Close()) })

	return db, store, pgtest.Connect(b.t, u.String())
}

// A restore drill runs beside the installation in use, with the same id and store. It
// removes nothing of what the one in use has stored since the dump, until a person says
// that it replaces that one.
func TestCleaner_OfARestoredCopy(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.ended(map[string]string{"before": "the dump"})
	b.look(t.Context())

	db, store, session := b.drill()
	_, attempt := b.ended(map[string]string{"model": "of the installation in use"})
	b.look(t.Context())
	require.Len(t, b.objects(), 2)

	cleaner := b.cleaner(db)
	cleaner.Store = store

	for range 2 {
		_, err := cleaner.Look(t.Context())
		require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "another copy of this database")
		require.ErrorContains(t, err, "berth adopt-temporal --replace-original --take-artifacts")
	}

	require.NoError(t, store.Ready(t.Context()), "it reads, and stores")
	require.Zero(t, b.clean(), "the one in use goes on")
	require.Len(t, b.stored(attempt), 1)

	// It replaces the one in use.
	require.NoError(t, store.Take(t.Context()))

	_, err := b.cleaner(b.db).Look(t.Context())
	require.ErrorContains(t, err, "another copy of this database")

	removed, err := cleaner.Look(t.Context())
	require.NoError(t, err)
	require.Zero(t, removed, "it has the grace from now on")
	session.Exec("UPDATE artifacts_unnamed SET since = since - interval '2 hours'")

	removed, err = cleaner.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, removed)
}

// A store that an earlier version has marked says nothing of databases. The first process
// of this version that is known to be of the installation's own database writes it.
func TestStore_RemovableOfAnEarlierVersion(t *testing.T) {
	t.Parallel()

	b := setup(t)
	require.NoError(t, b.store.Ready(t.Context()))

	path := filepath.Join(b.storeDir, "database")
	require.NoError(t, os.Remove(path))

	away := berth.Errorf(berth.KindUnavailable, "Temporal does not answer")
	b.store.Original = func(context.Context) (bool, error) { return false, away }
	require.NoError(t, b.store.Ready(t.Context()))
	require.ErrorIs(t, b.store.Removable(t.Context()), away)
	require.NoFileExists(t, path)

	require.NoError(t, b.open(b.storeDir, "one").Removable(t.Context()))
	require.FileExists(t, path)
	require.NoError(t, b.store.Removable(t.Context()))
}

// Before the upgrade an administrator tries the new version in a restore drill, with the store of
// the installation in use, which the version before has marked.
func TestCleaner_OfARestoredCopyThatTriesTheNewVersionFirst(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.ended(map[string]string{"before": "the dump"})
	b.look(t.Context())

	db, store, session := b.drill()
	_, attempt := b.ended(map[string]string{"model": "of the installation in use"})
	b.look(t.Context())
	require.Len(t, b.objects(), 2)
	require.NoError(t, os.Remove(filepath.Join(b.storeDir, "database"))) // as the version before left it

	cleaner := b.cleaner(db)
	cleaner.Store = store

	for range 2 { // a week of a drill later, too
		_, err := cleaner.Look(t.Context())
		require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "berth adopt-temporal --replace-original --take-artifacts")
		session.Exec("UPDATE artifacts_unnamed SET since = since - interval '8 days'")
	}

	require.Len(t, b.objects(), 2, "the drill removed a file of the installation in use")
	require.Len(t, b.stored(attempt), 1)
	require.NoError(t, b.open(b.storeDir, "one").Removable(t.Context()), "the one in use, after its upgrade")
	require.Equal(t, berth.KindConflict, berth.KindOf(store.Removable(t.Context())))
}

// Who looks makes a store nobody's.
func TestStore_CheckOnlyLooks(t *testing.T) {
	t.Parallel()

	b := setup(t)

	fresh, err := b.store.Check(t.Context())
	require.NoError(t, err)
	require.True(t, fresh)

	there, err := os.ReadDir(b.storeDir)
	require.NoError(t, err)
	require.Empty(t, there)

	require.NoError(t, b.store.Ready(t.Context()))

	fresh, err = b.store.Check(t.Context())
	require.NoError(t, err)
	require.False(t, fresh)

	_, err = b.open(b.storeDir, "two").Check(t.Context())
	require.ErrorContains(t, err, "belongs to another Berth (one)")

	require.NoError(t, os.RemoveAll(b.storeDir))
	require.NoError(t, os.Mkdir(b.storeDir, 0o750))

	_, err = b.open(b.storeDir, "one").Check(t.Context())
	require.ErrorContains(t, err, "has lost its mark")
}

// A store whose mark a person has removed, to give it to another installation, says
// which database it belonged to.
func TestStore_RemovableOfAnInstallationThatIsGone(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.Mkdir(dir, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "database"), []byte("gone 5/5"), 0o600))

	store, err := artifacts.Open(t.Context(), dir, "one", marks{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Ready(t.Context()))
	require.NoError(t, store.Removable(t.Context()))

	text, err := os.ReadFile(filepath.Join(dir, "database"))
	require.NoError(t, err)
	require.Equal(t, "one 1/1", string(text))
}
