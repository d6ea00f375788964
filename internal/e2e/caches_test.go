//go:build integration && nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// caching asks Keras for a file that its cache has, and writes beside it as libraries do.
const caching = `
import os
home = os.environ["HF_HOME"]
os.makedirs(home + "/hub/.locks", exist_ok=True)
open(home + "/hub/.locks/model.lock", "w").write("")
print("hf", open(home + "/hub/model.txt").read())
open(os.path.expanduser("~/.mylibrary"), "w").write("mine")
import keras
path = keras.utils.get_file("weights.txt", origin="https://weights.invalid/weights.txt", cache_subdir="models")
print("keras", open(path).read())
open(os.environ["KERAS_HOME"] + "/models/another.txt", "w").write("mine")
print("val=1")
`

// A data set that is mounted as the cache of a library is read as one, and the library writes
// its locks and settings beside; the data set stays as it is. Without the shim Keras looks for
// its files elsewhere.
func TestCaches_MountedReadOnly(t *testing.T) {
	t.Parallel()

	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)

	for name, text := range map[string]string{"keras/models/weights.txt": "3.14", "hf/hub/model.txt": "2.72"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))  //nolint:gosec // G301: the trial's user reads it
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // G306: the same
	}

	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	s := start(t, "--cpus", "4", "--memory", "3GiB", "--dataset", "caches="+dir)
	command, err := json.Marshal([]string{"python3", "-c", caching})
	require.NoError(t, err)

	sweep := `{name: caches, image: 'berth-examples/digits:1', command: %s, parameters: [{name: n, values: [1]}], search: {algorithm: grid}, ` +
		`objective: {metric: val}, resources: {memory: 1GiB}, probe: {mode: off}, datasets: [{name: caches, target: /data}], ` +
		`environment_variables: {KERAS_HOME: /data/keras, HF_HOME: /data/hf}%s}`
	with, without := s.submit(fmt.Sprintf(sweep, command, "")), s.submit(fmt.Sprintf(sweep, command, ", shim: false"))

	s.until(with, 3*time.Minute, ended)
	s.until(without, 3*time.Minute, ended)

	attempt := s.attempts(with)[0]
	require.Equal(t, "ok", attempt.FailureKind, attempt.Message)
	require.Contains(t, s.log(attempt.ID), "keras 3.14\n")
	require.Contains(t, s.log(attempt.ID), "hf 2.72\n")

	require.Equal(t, client.TrialStateFailed, s.trials(without)[0].State)

	var files []string

	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, filepath.Base(path))
		}

		return err
	}))
	require.Equal(t, []string{"model.txt", "weights.txt"}, files)

	s.requireQuiet()
}
