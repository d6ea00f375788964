package runtrial

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// written is when the files of an image's directory were.
var written = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// image is a directory of an image: contents by path; a path that ends with a slash
// is a directory, and a content that begins with -> a symbolic link.
type image map[string]string

func (i image) archive(t *testing.T, dir string) []byte {
	t.Helper()

	var b bytes.Buffer

	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}))

	for _, name := range slices.Sorted(maps.Keys(i)) {
		h := &tar.Header{Name: dir + "/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(i[name])), ModTime: written}

		if link, is := strings.CutPrefix(i[name], "->"); is {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, link, 0
		}

		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}

		if strings.HasSuffix(name, ".sh") {
			h.Mode = 0o755
		}

		require.NoError(t, w.WriteHeader(h))

		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, i[name])
			require.NoError(t, err)
		}
	}

	require.NoError(t, w.Close())

	return b.Bytes()
}

// has gives the images of a host this working directory, and counts how often it is read.
func (r *rig) has(t *testing.T, where string, i image) (reads *int) {
	t.Helper()

	reads = new(int)
	archive := i.archive(t, filepath.Base(where))

	r.config.Workdir = func(context.Context, string, string) (string, io.ReadCloser, error) {
		*reads++

		return where, io.NopCloser(bytes.NewReader(archive)), nil
	}

	return reads
}

func TestRun_KeepsWhatIsWrittenIntoTheWorkingDirectory(t *testing.T) {
	t.Parallel()

	r := setup(t)
	reads := r.has(t, "/app", image{
		"train.py": "import model", "lib/": "", "lib/model.py": "x", "run.sh": "#!", "notes.txt": "old", "data": "->/data", "up": "->../../..",
	})

	box, ended := r.begin(t)

	work := r.file(workName)
	mounts := r.docks.launches()[0].Mounts
	require.Equal(t, berth.Mount{Source: work, Target: "/app"}, mounts[len(mounts)-1])

	for name, mode := range map[string]os.FileMode{".": 0o777 | os.ModeDir, "lib": 0o777 | os.ModeDir, "train.py": 0o666, "run.sh": 0o777} {
		info, err := os.Stat(filepath.Join(work, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}

	info, err := os.Stat(filepath.Join(work, "lib/model.py"))
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(written), "byte code stays valid")

	link, err := os.Readlink(filepath.Join(work, "data"))
	require.NoError(t, err)
	require.Equal(t, "/data", link)

	for name, content := range map[string]string{"m.keras": "model", "runs/1/events": "e", "notes.txt": "new", "lib/of-the-job": "x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(content), 0o600))
	}

	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(work, "passwd")))
	got := ends(t, box, ended, "acc=1\n", 0)
	require.Equal(t, berth.FailureOK, got.Kind, got.Message)

	kept := map[string]string{}

	out := os.DirFS(r.file("out"))
	require.NoError(t, fs.WalkDir(out, "work", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		if !entry.Type().IsRegular() {
			kept[path] = entry.Type().String()

			return nil
		}

		data, err := fs.ReadFile(out, path)
		kept[path] = string(data)

		return err
	}))
	require.Equal(t, map[string]string{
		"work/m.keras": "model", "work/runs/1/events": "e", "work/notes.txt": "new", "work/lib/of-the-job": "x", "work/passwd": "L---------",
	}, kept, "and nothing that the image has")
	require.NoDirExists(t, work)
	require.NoFileExists(t, r.file(workManifest))
	require.Equal(t, 1, *reads)

	again := r.dirs(r.who(t))
	require.NoError(t, again.clean(), "as after a crash")
	require.FileExists(t, r.file("out/work/m.keras"))
}

// A worker that starts again must not put the image's files over those of a job that runs.
func TestPrepare_LeavesAWorkingDirectoryAlone(t *testing.T) {
	t.Parallel()

	r := setup(t)
	reads := r.has(t, "/app", image{"notes.txt": "old"})
	first := r.launch(t)
	require.NoError(t, os.WriteFile(r.file("work/notes.txt"), []byte("new"), 0o600))
	require.NoError(t, os.Remove(r.file(launchName)), "it was not written")
	require.Equal(t, first, r.launch(t))

	data, err := os.ReadFile(r.file("work/notes.txt"))
	require.NoError(t, err)
	require.Equal(t, "new", string(data))
	require.Equal(t, 1, *reads, "the host keeps a copy")
}

func TestPrepare_LeavesWorkingDirectoriesReadOnly(t *testing.T) {
	t.Parallel()

	many := image{}
	for i := range workEntries + 1 {
		many["f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String()] = ""
	}

	for name, c := range map[string]struct {
		where string
		image image
	}{
		"large":          {"/app", image{"data.npz": strings.Repeat("x", workBytes+1)}},
		"many files":     {"/app", many},
		"the root":       {"/", image{}},
		"of the system":  {"/usr/lib/python3", image{"a": ""}},
		"Berth's":        {"/trial/out", image{"a": ""}},
		"system's above": {"/opt", image{"a": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			reads := r.has(t, c.where, c.image)
			first := r.launch(t)
			require.Len(t, first.Mounts, 3)
			require.NoDirExists(t, r.file(workName))
			require.NoError(t, os.Remove(r.file(launchName)))
			require.Equal(t, first, r.launch(t))
			require.Equal(t, 1, *reads, "that is remembered, too")
		})
	}

	require.True(t, writableWorkdir("/usr/src/app"))
	require.True(t, writableWorkdir("/root"))
	require.True(t, writableWorkdir("/binary"))
}

// Copies that nobody uses go; those of yesterday stay.
func TestPrepare_ForgetsOldCopies(t *testing.T) {
	t.Parallel()

	r := setup(t)
	dir := filepath.Join(r.dir, "workdirs")

	for age, name := range map[time.Duration]string{6 * 24 * time.Hour: "used.tar", 8 * 24 * time.Hour: "old.tar"} {
		plantFile(t, filepath.Join(dir, name), nil)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), time.Now(), time.Now().Add(-age)))
	}

	r.has(t, "/app", image{"train.py": "x"})
	r.launch(t)
	require.FileExists(t, filepath.Join(dir, "used.tar"))
	require.NoFileExists(t, filepath.Join(dir, "old.tar"))
}
