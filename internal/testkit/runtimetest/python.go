package runtimetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Python runs a script with the libraries of the Python client's tests, pandas and
// TensorBoard among them, and returns its output. It skips the test where
// scripts/python-env did not install them.
func Python(t *testing.T, script string, args ...string) string {
	t.Helper()

	mod, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	require.NoError(t, err)

	python := filepath.Join(filepath.Dir(string(mod)), ".build", "python", "bin", "python")

	if _, err := os.Stat(python); err != nil {
		Skip(t, "there is no %s; run scripts/python-env", python)
	}

	out, err := exec.CommandContext(t.Context(), python, append([]string{script}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)

	return string(out)
}
