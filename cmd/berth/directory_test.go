package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// A relative path would end in mounts that Docker refuses, trial after trial.
func TestDataDir_IsAbsolute(t *testing.T) {
	t.Parallel()

	here, err := os.Getwd()
	require.NoError(t, err)

	for given, want := range map[string]string{
		"data":     filepath.Join(here, "data"),
		"./data/.": filepath.Join(here, "data"),
		"/data":    "/data",
	} {
		for _, cmd := range []string{"worker", "dev"} {
			flags := workerCommand().Flags()
			if cmd == "dev" {
				flags = devCommand().Flags()
			}

			require.NoError(t, flags.Parse([]string{"--data-dir", given}))
			require.Equal(t, want, flags.Lookup("data-dir").Value.String(), "berth %s --data-dir %s", cmd, given)
		}

		var path string

		bindDirectory(pflag.NewFlagSet("", pflag.ContinueOnError), &path, "dir", given, "")
		require.Equal(t, want, path, "default")
	}
}

// `--secrets-dir ""` means the default, as its help says, and never the working directory.
// There the worker would remove files of others.
func TestSecretsDir_EmptyIsNotTheWorkingDirectory(t *testing.T) {
	t.Parallel()

	var m machine

	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	m.bind(flags)
	require.Empty(t, m.secretsDir)
	require.NoError(t, flags.Parse([]string{"--secrets-dir", ""}))
	require.Empty(t, m.secretsDir, "runtrial takes empty for the data directory's own")
}
