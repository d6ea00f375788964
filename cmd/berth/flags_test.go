package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/config"
)

// most is how many flags the processes of Berth may have: an administrator reads
// their table in one go. A new one takes the place of another, or is a constant.
const most = 50

// docs/cli.md has all flags of the processes, each with its variable and its commands.
func TestFlags_AreInOneTable(t *testing.T) {
	t.Parallel()

	users := make(map[string][]string)

	for _, name := range []string{"server", "worker", "dev", "migrate", "restore", "doctor"} {
		cmd, _, err := root().Find([]string{name})
		require.NoError(t, err)

		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				users[f.Name] = append(users[f.Name], name)
			}
		})
	}

	users["log-level"] = []string{"all"}
	want := make([]string, 0, len(users))

	for flag, commands := range users {
		want = append(want, fmt.Sprintf("| `--%s` | `%s` | %s |", flag, config.Variable(flag), strings.Join(commands, ", ")))
	}

	text, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)

	got := regexp.MustCompile("(?m)^\\| `--[a-z-]+` \\| `BERTH_[A-Z_]+` \\| [a-z, ]+ \\|").FindAllString(string(text), -1)

	slices.Sort(want)
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
	require.LessOrEqual(t, len(want), most)
}

// A wait that is misspelled would leave a test with the constant, and slow.
func TestWaits(t *testing.T) {
	t.Parallel()

	m := machine{waits: map[string]string{"heartbeat": "5s", "host": "8s", "reconcile": "1s", "grace": "4s"}}
	require.NoError(t, m.setWaits())
	require.Equal(t, []time.Duration{5 * time.Second, 8 * time.Second, time.Second, 4 * time.Second},
		[]time.Duration{m.patience.Heartbeat, m.patience.Host, m.every, m.settle})

	for name, text := range map[string]string{"reconcil": "1s", "grace": "4"} {
		m := machine{waits: map[string]string{name: text}}
		require.ErrorContains(t, m.setWaits(), "is no wait")
	}
}
