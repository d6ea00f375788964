package runtrial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked has the shim's caches.py see directories as read-only, which a test that runs as root
// cannot make, and says what it made.
const linked = `
import json, os, sys
from berth_shim import caches
base = sys.argv[0].rsplit("/", 1)[0]
for name in ("KERAS_HOME", "TORCH_HOME", "HF_HOME"):
    os.environ.pop(name, None)
os.environ.update(HOME=base + "/empty", HF_HOME=base + "/hf", MPLCONFIGDIR=base + "/own")
caches._ROOT, caches._HOMES, caches._MOST = base + "/made", (base + "/root", base + "/home/*"), 6
writable = os.access
os.access = lambda path, mode: path == base + "/own"
caches.link()
again = os.environ["HF_HOME"]
os.environ["HF_HOME"] = base + "/hf"
caches.link()
made = {}
for name in ("KERAS_HOME", "TORCH_HOME", "HF_HOME", "MPLCONFIGDIR"):
    made[name] = os.environ.get(name, "").replace(base, "")
open(os.environ["HF_HOME"] + "/hub/token.lock", "w").write("")
made["same"] = again == os.environ["HF_HOME"]
made["reads"] = open(os.environ["HF_HOME"] + "/hub/blobs/a/weights").read()
made["deep is a link"] = os.path.islink(os.environ["HF_HOME"] + "/hub/deep/deeper")
made["keras"] = open(os.environ["KERAS_HOME"] + "/datasets/mnist.npz").read()
print(json.dumps(made))
`

// A read-only cache gets a directory of links beside which a library may write: one that a
// variable names, and one that the image has in the home of its user. A writable one stays.
func TestShimPython_ReadOnlyCachesBecomeLinks(t *testing.T) {
	t.Parallel()

	s := python(t)

	for name, text := range map[string]string{
		"hf/hub/blobs/a/weights": "w", "hf/hub/deep/deeper/deepest/x": "", "hf/hub/version.txt": "1",
		"root/.keras/datasets/mnist.npz": "digits", "home/jovyan/.cache/torch/hub/model.pth": "m", "own/matplotlibrc": "",
	} {
		path := filepath.Join(s.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}

	code, out := s.run(t, linked)
	require.Zero(t, code, out)

	var made map[string]any

	require.NoError(t, json.Unmarshal([]byte(out), &made), out)
	require.Equal(t, map[string]any{
		"KERAS_HOME": "/made/KERAS_HOME", "TORCH_HOME": "/made/TORCH_HOME", "HF_HOME": "/made/HF_HOME", "MPLCONFIGDIR": "/own",
		"same": true, "reads": "w", "deep is a link": true, "keras": "digits",
	}, made)

	_, err := os.Lstat(filepath.Join(s.dir, "hf/hub/token.lock"))
	require.ErrorIs(t, err, os.ErrNotExist, "the cache itself is as it was")
}

// linkedDirectory is linked for a cache with a link to a directory.
const linkedDirectory = `
import json, os, sys
from berth_shim import caches
base = sys.argv[0].rsplit("/", 1)[0]
os.environ.update(HOME=base + "/empty", HF_HOME=base + "/hf")
caches._ROOT, caches._HOMES = base + "/made", ()
os.access = lambda path, mode: False
caches.link()
try:
    open(os.environ["HF_HOME"] + "/hub/.lock", "w").write("")
except OSError as error:
    print(error)
print(json.dumps(sorted(os.listdir(base + "/data/hub"))))
`

// The image's ~/.cache/huggingface/hub is a link to /data/hub: beside its files Hugging Face
// must be able to write its locks, as in a cache without links.
func TestShimPython_LinkedDirectoryOfACacheCanBeWrittenBeside(t *testing.T) {
	t.Parallel()

	s := python(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "data/hub"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "data/hub/weights"), []byte("w"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "hf"), 0o750))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "data/hub"), filepath.Join(s.dir, "hf/hub")))
	require.NoError(t, os.Symlink("..", filepath.Join(s.dir, "hf/loop")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "hf"), filepath.Join(s.dir, "loop")))

	code, out := s.run(t, linkedDirectory)
	require.Zero(t, code, out)

	var left []string
	require.NoError(t, json.Unmarshal([]byte(out), &left), out)
	require.Equal(t, []string{"weights"}, left, "the lock went into the cache itself, which is read-only in a trial")
}

// lockedFile is linked for a cache with the lock file that the download left.
const lockedFile = `
import json, os, sys
from berth_shim import caches
base = sys.argv[0].rsplit("/", 1)[0]
os.environ.update(HOME=base + "/empty", HF_HOME=base + "/hf")
caches._ROOT, caches._HOMES = base + "/made", ()
os.access = lambda path, mode: False
caches.link()
lock = os.environ["HF_HOME"] + "/hub/.locks/models--bert/abc.lock"
try:  # as filelock opens it
    os.close(os.open(lock, os.O_RDWR | os.O_TRUNC | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644))
    opened = ""
except OSError as error:
    opened = str(error)
print(json.dumps([opened, os.path.islink(lock)]))
`

// The image was built by from_pretrained or load_dataset, which leave their lock files in the
// cache (filelock removes none on Unix). A trial loads the same, and locks the same file.
func TestShimPython_LockFileOfACacheCanBeLocked(t *testing.T) {
	t.Parallel()

	s := python(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "hf/hub/.locks/models--bert"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "hf/hub/.locks/models--bert/abc.lock"), nil, 0o600))

	code, out := s.run(t, lockedFile)
	require.Zero(t, code, out)
	require.Equal(t, `["", false]`, strings.TrimSpace(out), "a link to a file that is read-only in a trial")
}

// manyFiles counts what caches.py makes of a cache with a directory of many files.
const manyFiles = `
import json, os, sys
from berth_shim import caches
base = sys.argv[0].rsplit("/", 1)[0]
os.environ.update(HOME=base + "/empty", KERAS_HOME=base + "/keras")
caches._ROOT, caches._HOMES, caches._MOST = base + "/made", (), 20
os.makedirs(base + "/keras/datasets/photos")
for n in range(200):
    open(base + "/keras/datasets/photos/%d.jpg" % n, "w").close()
os.access = lambda path, mode: False
caches.link()
print(json.dumps(sum(len(below) + len(files) for _, below, files in os.walk(base + "/made"))))
`

// docs/shim.md: "a directory with more entries than are left is one link". One of 100,000
// photos does not cost each trial a second and its memory (/tmp counts as memory).
func TestShimPython_LargeDirectoryOfACacheIsOneLink(t *testing.T) {
	t.Parallel()

	s := python(t)
	code, out := s.run(t, manyFiles)
	require.Zero(t, code, out)

	var made int

	require.NoError(t, json.Unmarshal([]byte(out), &made), out)
	require.LessOrEqual(t, made, 20+3, "entries, of at most 20 and what is beside them")
}
