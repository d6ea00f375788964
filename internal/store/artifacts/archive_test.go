package artifacts

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// An archive that leads out of its directory, or has more than files, directories and links,
// is refused, and writes nothing outside.
func TestUnpack_StaysInItsDirectory(t *testing.T) {
	t.Parallel()

	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600} }
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
	}

	for name, c := range map[string]struct {
		entries []tar.Header
		refused bool // by the disk: no worker writes such a one
		damaged bool
	}{
		"files":                 {entries: []tar.Header{{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700}, file("a"), {Name: "d/", Typeflag: tar.TypeDir, Mode: 0o700}, file("d/b")}},
		"links inside":          {entries: []tar.Header{file("a"), link("l", "a"), {Name: "d/", Typeflag: tar.TypeDir, Mode: 0o700}, link("d/l", "../a"), link("m", "/trial/checkpoint/a")}},
		"an absolute path":      {entries: []tar.Header{file("/a")}, damaged: true},
		"a path out":            {entries: []tar.Header{file("../a")}, damaged: true},
		"a path in and out":     {entries: []tar.Header{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o700}, file("d/../../a")}, damaged: true},
		"a link out":            {entries: []tar.Header{link("l", "../a")}, damaged: true},
		"an absolute link":      {entries: []tar.Header{link("l", "/etc/passwd")}, damaged: true},
		"a link like ours":      {entries: []tar.Header{link("l", "/trial/checkpoint/../out/a")}, damaged: true},
		"a file below a link":   {entries: []tar.Header{link("l", "/trial/checkpoint"), file("l/a")}, refused: true},
		"a file twice":          {entries: []tar.Header{file("a"), file("a")}, refused: true},
		"a hard link":           {entries: []tar.Header{file("a"), {Name: "b", Linkname: "a", Typeflag: tar.TypeLink}}, damaged: true},
		"a device":              {entries: []tar.Header{{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, damaged: true},
		"a FIFO":                {entries: []tar.Header{{Name: "a", Typeflag: tar.TypeFifo}}, damaged: true},
		"what is half an entry": {entries: []tar.Header{{Name: "a", Typeflag: tar.TypeReg, Size: 1 << 20}}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var content bytes.Buffer

			w := tar.NewWriter(&content)
			for _, h := range c.entries {
				h.Uid, h.Gid = os.Geteuid(), os.Getegid()
				require.NoError(t, w.WriteHeader(&h))
			}

			_ = w.Close() // half an entry

			above := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(above, "in"), 0o700))

			root, err := os.OpenRoot(filepath.Join(above, "in"))
			require.NoError(t, err)
			t.Cleanup(func() { _ = root.Close() })

			err = unpack(&content, root)
			require.Equal(t, c.damaged, errors.Is(err, berth.ErrDamaged), err)
			require.Equal(t, c.refused || c.damaged, err != nil, err)

			names, err := os.ReadDir(above)
			require.NoError(t, err)
			require.Len(t, names, 1)
		})
	}
}

// Two archives of the same files are the same object; a file that is not as it was listed ends one.
func TestArchive_IsTheSameForTheSameFiles(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), bytes.Repeat([]byte("x"), 300_000), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o600))

	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })

	entries, size, err := listCheckpoint(t.Context(), root, Limits{}.orDefault())
	require.NoError(t, err)
	require.EqualValues(t, 300_000, size)

	read := func() (content bytes.Buffer, err error) {
		a := readArchive(t.Context(), root, entries)
		_, err = content.ReadFrom(a)

		return content, errors.Join(err, a.Close())
	}

	first, err := read()
	require.NoError(t, err)

	_, err = os.ReadFile(filepath.Join(dir, "a")) // changes its time of reading
	require.NoError(t, err)

	second, err := read()
	require.NoError(t, err)
	require.True(t, bytes.Equal(first.Bytes(), second.Bytes()))

	require.NoError(t, os.Truncate(filepath.Join(dir, "a"), 100_000))

	_, err = read()
	require.ErrorIs(t, err, ErrChanged)
	require.NotErrorIs(t, err, berth.ErrDamaged)
}

// A store that refuses is mended by a person: only files that cannot be read settle a checkpoint.
func TestOfStore_ARefusingStoreSettlesNothing(t *testing.T) {
	t.Parallel()

	_, unstorable := errors.AsType[unstorableError](ofStore(fmt.Errorf("writing to the store: %w", fs.ErrPermission)))
	require.False(t, unstorable)

	_, unstorable = errors.AsType[unstorableError](ofStore(fileError{fs.ErrPermission}))
	require.True(t, unstorable)
}
