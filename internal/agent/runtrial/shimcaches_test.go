package runtrial

import (
	"encoding/json"
	"os"
	"path/filepath"
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
caches._ROOT, caches._HOMES, caches._MOST = base + "/made", (base + "/root", base + "/home/*"), 12
for n in range(200):
    open(base + "/root/.keras/datasets/photos/%d.jpg" % n, "w").close()
os.access = lambda path, mode: path == base + "/own"
caches.link()
again = os.environ["HF_HOME"]
os.environ["HF_HOME"] = base + "/hf"
caches.link()
hub, keras = os.environ["HF_HOME"] + "/hub", os.environ["KERAS_HOME"]
made = {}
for name in ("KERAS_HOME", "TORCH_HOME", "HF_HOME", "MPLCONFIGDIR"):
    made[name] = os.environ.get(name, "").replace(base, "")
open(hub + "/token.lock", "w").write("")
lock = hub + "/.locks/abc.lock"  # as filelock opens it
os.close(os.open(lock, os.O_RDWR | os.O_TRUNC | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644))
made["same"] = again == os.environ["HF_HOME"]
made["reads"] = open(hub + "/weights").read()
made["lock is a link"] = os.path.islink(lock)
made["keras"] = open(keras + "/datasets/mnist.npz").read()
made["photos are one link"] = os.path.islink(keras + "/datasets/photos")
made["the cache itself"] = sorted(os.listdir(base + "/data/hub"))
print(json.dumps(made))
`

// A read-only cache gets a directory of links beside which a library may write its locks: one
// that a variable names, whose hub is a link to a directory and has the lock file of a download
// (filelock removes none on Unix), and one that the image has in the home of its user. A
// writable one stays. A directory with more entries than are left is one link (docs/shim.md): one
// of 100,000 photos does not cost each trial a second and its memory.
func TestShimPython_ReadOnlyCachesBecomeLinks(t *testing.T) {
	t.Parallel()

	s := python(t)

	for name, text := range map[string]string{
		"data/hub/weights": "w", "data/hub/.locks/abc.lock": "", "root/.keras/datasets/mnist.npz": "digits", "root/.keras/datasets/photos/0.jpg": "",
		"home/jovyan/.cache/torch/hub/model.pth": "m", "own/matplotlibrc": "", "hf/version.txt": "1",
	} {
		plantFile(t, filepath.Join(s.dir, name), []byte(text))
	}

	for link, to := range map[string]string{"hf/hub": filepath.Join(s.dir, "data/hub"), "hf/loop": "..", "loop": filepath.Join(s.dir, "hf")} {
		require.NoError(t, os.Symlink(to, filepath.Join(s.dir, link)))
	}

	code, out := s.run(t, linked)
	require.Zero(t, code, out)

	var made map[string]any

	require.NoError(t, json.Unmarshal([]byte(out), &made), out)
	require.Equal(t, map[string]any{
		"KERAS_HOME": "/made/KERAS_HOME", "TORCH_HOME": "/made/TORCH_HOME", "HF_HOME": "/made/HF_HOME", "MPLCONFIGDIR": "/own",
		"same": true, "reads": "w", "lock is a link": false, "keras": "digits", "photos are one link": true,
		"the cache itself": []any{".locks", "weights"},
	}, made)
}
