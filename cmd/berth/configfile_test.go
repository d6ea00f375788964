package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/config"
)

// One file serves server, worker and people's commands: each takes its keys, and leaves those
// of the others. A key of none is a mistake.
func TestConfigFile_KeysOfAllCommands(t *testing.T) { //nolint:paralleltest // t.Setenv
	for _, c := range []struct{ file, says string }{
		{"allow-images: [a]\nsecrets-key: /x\nserver: http://127.0.0.1:1\ndataset: [a=/b]\nlog-level: info\nrole: owner\n", "--role"},
		{"allow-image: [a]\n", "key allow-image of "},
		{"allow-image: [a]\n", "did you mean allow-images?"},
	} {
		path := filepath.Join(t.TempDir(), "berth.yaml")
		require.NoError(t, os.WriteFile(path, []byte(c.file), 0o600))
		t.Setenv(config.FileVariable, path)

		cmd := root()
		cmd.SetArgs([]string{"token", "create", "me", "--postgres-url", "postgres://127.0.0.1:1/x"})
		require.ErrorContains(t, cmd.ExecuteContext(t.Context()), c.says)
	}
}
