package runtimetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// clientPython has pandas and TensorBoard: scripts/python-env makes it.
const clientPython = "../../.build/python/bin/python"

// Python runs a script with the libraries of the Python client's tests, and returns
// its output. It skips a test of a package two levels below the module's root where
// they are missing.
func Python(t *testing.T, script string, args ...string) string {
	t.Helper()

	python, err := filepath.Abs(clientPython)
	require.NoError(t, err)

	if _, err := os.Stat(python); err != nil {
		Skip(t, "there is no %s; run scripts/python-env", python)
	}

	out, err := exec.CommandContext(t.Context(), python, append([]string{script}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)

	return string(out)
}
