package artifacts_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
)

// marks are the stores that a database knows of.
type marks map[string]bool

func (m marks) StoreMarked(_ context.Context, store string) (bool, error) { return m[store], nil }

func (m marks) NoteStoreMark(_ context.Context, store string) error {
	m[store] = true

	return nil
}

func TestOpen_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for where, want := range map[string]string{
		"":                       "is no directory",
		"gs://bucket":            `has the scheme "gs"`,
		"s3://":                  "the name of a bucket",
		"s3://bucket/folder":     "?prefix=folder/",
		"file://relative/path":   "an absolute path",
		"s3://bucket?regoin=eu":  "regoin",
		"s3://b:secret@[::1?x=1": "--artifacts is no URL",
		file:                     "not a directory",
	} {
		_, err := artifacts.Open(t.Context(), where, "one", marks{})
		require.ErrorContains(t, err, want, where)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), where)
		require.NotContains(t, err.Error(), "secret")
	}
}

// conform tests the rules of every store.
func conform(t *testing.T, open func(installation string) *artifacts.Store) {
	t.Helper()

	ctx, store := t.Context(), open("one")
	require.NoError(t, store.Ready(ctx))
	require.NoError(t, store.Ready(ctx), "its own")

	err := open("two").Ready(ctx)
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	require.ErrorContains(t, err, "belongs to another Berth (one)")

	text := strings.Repeat("0123456789", 1_200_000) // more than one part of S3's
	size := int64(len(text))
	digest := berth.Digest(sha256.Sum256([]byte(text)))

	has := func() bool {
		there, err := store.Has(ctx, digest, size)
		require.NoError(t, err)

		return there
	}
	require.False(t, has())

	_, err = store.Read(ctx, digest, 0, -1)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	broken := errors.New("broken")
	require.ErrorIs(t, store.Put(ctx, digest, size, io.MultiReader(strings.NewReader(text[:7<<20]), iotest.ErrReader(broken))), broken)
	require.False(t, has(), "nothing of half an upload is seen")
	require.ErrorIs(t, store.Put(ctx, digest, size, strings.NewReader("other")), artifacts.ErrChanged)
	require.False(t, has())

	require.NoError(t, store.Put(ctx, digest, size, strings.NewReader(text)))
	require.True(t, has())

	there, err := store.Has(ctx, digest, 3)
	require.NoError(t, err)
	require.False(t, there, "of another size, as after a crash of its disk")

	for _, part := range []struct{ offset, length int64 }{{0, -1}, {5, 3}, {size - 2, -1}} {
		r, err := store.Read(ctx, digest, part.offset, part.length)
		require.NoError(t, err)

		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())

		end := size
		if part.length >= 0 {
			end = part.offset + part.length
		}

		require.Equal(t, text[part.offset:end], string(got))
	}
}

func TestStore_InADirectory(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "new", "store")
	conform(t, func(installation string) *artifacts.Store {
		store, err := artifacts.Open(t.Context(), "file://"+dir, installation, marks{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })

		return store
	})

	left, err := filepath.Glob(filepath.Join(dir, "sha256", "*", "*"))
	require.NoError(t, err)
	require.Len(t, left, 1, "halves of uploads do not stay")
}

// A mount point is an empty directory while its disk is away. The returning disk
// hides files written there.
func TestStore_WithoutItsMark(t *testing.T) {
	t.Parallel()

	known, dir := marks{}, filepath.Join(t.TempDir(), "store")
	store, err := artifacts.Open(t.Context(), dir, "one", known)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Ready(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(dir, "installation")))

	again, err := artifacts.Open(t.Context(), "file://"+dir, "one", known)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })

	for _, s := range []*artifacts.Store{store, again} {
		err := s.Ready(t.Context())
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "has lost its mark")
		require.ErrorContains(t, err, "--artifacts-empty")

		_, err = s.Read(t.Context(), berth.Digest{1}, 0, -1)
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "no object is lost: %v", err)
	}

	require.NoError(t, again.TakeEmpty(t.Context()))
	require.NoError(t, store.Ready(t.Context()))
}
