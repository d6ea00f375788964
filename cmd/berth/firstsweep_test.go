package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every command on the page about one's own script exists in berth, with its
// flags.
func TestFirstSweep_ItsCommandsExist(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "first-sweep.md"))
	require.NoError(t, err)

	commands := regexp.MustCompile("(?m)^(berth [^#\n]+)|`(berth [^`]+)`").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(commands), 8)

	for _, match := range commands {
		words := strings.Fields(match[1] + match[2])

		cmd, rest, err := root().Find(words[1:])
		require.NoError(t, err, words)
		require.True(t, cmd.Runnable() && !cmd.HasSubCommands(), "%v is no whole command", words)
		require.NoError(t, cmd.ParseFlags(rest), words)
		require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), words)
	}
}
