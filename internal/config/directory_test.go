package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// A relative path would end in mounts that Docker refuses, trial after trial.
func TestDirectory_IsAbsolute(t *testing.T) {
	t.Parallel()

	here, err := os.Getwd()
	require.NoError(t, err)

	for given, want := range map[string]string{
		"data":     filepath.Join(here, "data"),
		"./data/.": filepath.Join(here, "data"),
		"/data":    "/data",
	} {
		var path string

		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		Directory(flags, &path, "dir", given, "")
		require.Equal(t, want, path, "default")

		require.NoError(t, flags.Parse([]string{"--dir", given}))
		require.Equal(t, want, path)
	}
}
