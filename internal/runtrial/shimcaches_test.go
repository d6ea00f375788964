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
