package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/config"
	"github.com/berthml/berth/internal/dataset"
)

func TestWorker_TwoDataSetsWithoutFlags(t *testing.T) {
	t.Parallel()

	a, b := t.TempDir(), t.TempDir()
	file := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(file, []byte("dataset: [\"a="+a+"\", \"b="+b+"\"]\n"), 0o600))

	for name, env := range map[string]map[string]string{
		"file":   {config.FileVariable: file},
		"commas": {"BERTH_DATASET": "a=" + a + ",b=" + b},
		"lines":  {"BERTH_DATASET": "a=" + a + "\nb=" + b + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var m machine

			flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
			m.bind(flags)
			require.NoError(t, config.Apply(flags, func(key string) string { return env[key] }))

			sets, err := dataset.Parse(m.datasets)
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, sets.Names())
		})
	}
}
