package artifacts_test

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

func (b *bench) cleaner(names artifacts.Names) *artifacts.Cleaner {
	return &artifacts.Cleaner{Names: names, Store: b.store, Grace: time.Hour, Log: slog.New(slog.DiscardHandler)}
}

// age looks at all objects, and then makes all of them, and the notes on unnamed
// ones, older than the grace.
func (b *bench) age() {
	b.t.Helper()
	require.Zero(b.t, b.clean(), "it has the grace from now on")

	old := time.Now().Add(-2 * time.Hour)

	for _, name := range b.objects() {
		require.NoError(b.t, os.Chtimes(filepath.Join(b.storeDir, "sha256", name[:2], name), old, old))
	}

	b.sql().Exec("UPDATE artifacts_unnamed SET since = since - interval '2 hours'")
}

func (b *bench) clean() int {
	b.t.Helper()

	removed, err := b.cleaner(b.db).Look(b.t.Context())
	require.NoError(b.t, err)

	return removed
}

func TestCleaner_RemovesWhatNoRowNames(t *testing.T) {
	t.Parallel()

	b := setup(t)
	trial, attempt := b.ended(map[string]string{"mine": "1", "both": "2"})
	b.look(t.Context())

	text := "nobody's"
	digest := berth.Digest(sha256.Sum256([]byte(text)))
	require.NoError(t, b.store.Put(t.Context(), digest, int64(len(text)), strings.NewReader(text)))
	require.NoError(t, os.WriteFile(filepath.Join(b.storeDir, "sha256", digest.String()[:2], digest.String()+".18.tmp"), nil, 0o600))
	require.Zero(t, b.clean(), "they are too young")

	b.age()
	require.Equal(t, 2, b.clean())
	require.Len(t, b.objects(), 2)
	require.Len(t, b.stored(attempt), 2)

	b.deleteSweep()

	_, err := b.db.FileSet(t.Context(), trial, 0)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	b.age()
	require.Equal(t, 2, b.clean())
	require.Empty(t, b.objects())
}

// A database restored from an old copy names no later objects, however old these
// are.
func TestCleaner_LeavesTimeAfterARestore(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.ended(map[string]string{"model": "weights"})
	b.look(t.Context())
	b.age() // it is old, and has a name

	b.sql().Exec("DELETE FROM artifacts")
	require.Zero(t, b.clean())
	require.Len(t, b.objects(), 1)

	// Named for a moment, it has the whole grace again.
	b.age()
	_, second := b.ended(map[string]string{"model": "weights"})
	b.look(t.Context())
	require.Len(t, b.stored(second), 1)

	b.sql().Exec("DELETE FROM artifacts")
	require.Zero(t, b.clean())

	b.age()
	require.Equal(t, 1, b.clean())
}

// racing lets an upload happen after the cleaner has chosen the objects to
// remove.
type racing struct {
	*postgres.Store

	before func()
}

func (r racing) RemoveObjects(ctx context.Context, digests []berth.Digest, remove func([]berth.Digest) error) error {
	r.before()

	return r.Store.RemoveObjects(ctx, digests, remove)
}

// An attempt writes the content of an old object, which no row names any more,
// while the cleaner looks: either finds the other's change.
func TestCleaner_LeavesAnUploadAlone(t *testing.T) {
	t.Parallel()

	b := setup(t)
	text := "weights"
	digest := berth.Digest(sha256.Sum256([]byte(text)))
	require.NoError(t, b.store.Put(t.Context(), digest, int64(len(text)), strings.NewReader(text)))
	b.age()

	_, attempt := b.ended(map[string]string{"model": text})
	uploaded := false

	_, err := b.cleaner(racing{b.db, func() { b.look(t.Context()); uploaded = true }}).Look(t.Context())
	require.NoError(t, err)
	require.True(t, uploaded)
	require.Equal(t, map[string]string{"model": text}, b.stored(attempt))
	require.Zero(t, b.clean(), "it has a name")
}

// While objects are removed, no writer can name one of them.
func TestCleaner_HoldsClaimsWhileItRemoves(t *testing.T) {
	t.Parallel()

	b := setup(t)
	digest := berth.Digest{1}
	_, attempt := b.ended(map[string]string{"a": "1"})
	claim := []berth.Artifact{{Path: "a", Digest: digest}}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	require.NoError(t, b.db.RemoveObjects(t.Context(), []berth.Digest{digest}, func(unnamed []berth.Digest) error {
		require.Equal(t, []berth.Digest{digest}, unnamed)
		require.Error(t, b.db.ClaimFiles(ctx, attempt, claim))

		return nil
	}))
	require.NoError(t, b.db.ClaimFiles(t.Context(), attempt, claim))
	require.NoError(t, b.db.RemoveObjects(t.Context(), []berth.Digest{digest}, func([]berth.Digest) error { panic("it is named") }))
}
