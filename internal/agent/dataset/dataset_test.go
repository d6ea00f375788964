package dataset

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestParse(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "flowers"), 0o750))
	require.NoError(t, os.Symlink("flowers", link))

	s, err := Parse([]string{"flowers-1.0=" + link, "a=" + dir})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "flowers-1.0"}, s.Names())

	path, version, found := s.Find("flowers-1.0")
	require.True(t, found)
	require.Empty(t, version, "nobody has looked yet")
	require.Equal(t, filepath.Join(dir, "flowers"), path, "a link that is changed later changes no mount")

	_, _, found = s.Find("b")
	require.False(t, found)

	for pair, want := range map[string]string{
		"flowers":                "NAME=PATH",
		"../x=" + dir:            "is no name",
		"a=relative":             "absolute path",
		"a=" + dir + "/missing":  "must be there",
		"a=/":                    "root directory",
		"a=/dev/null":            "a directory or a file",
		"=" + dir:                "is no name",
		"a=" + dir + ",a=/x":     "must be there",
		"berth.sock name=" + dir: "is no name",
	} {
		_, err := Parse([]string{pair})
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), pair)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "--dataset")
	}

	_, err = Parse([]string{"a=" + dir, "a=" + dir})
	require.ErrorContains(t, err, "twice")
}

// A version changes with the files, and only with them.
func TestVersion(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "train", "a.npz")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

	write := func(text string, at time.Time) {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(file, at, at))
	}
	write("one", at)

	s, err := Parse([]string{"d=" + dir})
	require.NoError(t, err)

	require.Equal(t, []string{"d"}, s.IDs(), "before the first look")

	version := func() string {
		s.look(t.Context(), slog.New(slog.DiscardHandler))
		_, version, _ := s.Find("d")

		return version
	}

	first := version()
	require.Len(t, first, versionDigits)
	require.Equal(t, first, version())

	write("longer", at)
	longer := version()
	require.NotEqual(t, first, longer)

	write("longer", at.Add(time.Nanosecond))
	require.NotEqual(t, longer, version())

	write("one", at)
	require.Equal(t, first, version())

	moved := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.Rename(dir, moved))

	there, err := versionOf(t.Context(), moved)
	require.NoError(t, err)
	require.Equal(t, first, there, "two hosts that have the same say so, wherever they have it")

	require.Equal(t, []string{"d@" + first}, s.IDs(), "as last seen: it touches no file")
	require.Empty(t, version(), "it cannot be read")
	require.Equal(t, []string{"d"}, s.IDs())
}

// An attempt must not be recorded with an earlier version of a data set.
func TestFind_SaysNoVersionOfBefore(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "flowers")
	require.NoError(t, os.Mkdir(dir, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rose"), []byte("x"), 0o600))

	s, err := Parse([]string{"flowers=" + dir})
	require.NoError(t, err)
	s.look(t.Context(), slog.New(slog.DiscardHandler))

	_, first, found := s.Find("flowers")
	require.True(t, found)
	require.NotEmpty(t, first)

	require.NoError(t, os.Remove(filepath.Join(dir, "rose")))
	_, version, found := s.Find("flowers")
	require.True(t, found)
	require.Empty(t, version)
	require.Len(t, s.changed, 1, "it is looked at now")

	disk := dir + "-disk"
	require.NoError(t, os.Rename(dir, disk))
	_, _, found = s.Find("flowers")
	require.False(t, found, "it is gone")

	require.NoError(t, os.Mkdir(dir, 0o750)) // the mount point
	_, _, found = s.Find("flowers")
	require.False(t, found, "it is another directory")

	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(disk, dir))
	s.look(t.Context(), slog.New(slog.DiscardHandler))

	_, version, found = s.Find("flowers")
	require.True(t, found)
	require.NotEmpty(t, version)
	require.NotEqual(t, first, version)
}
