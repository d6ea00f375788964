//go:build integration

package docker

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// busy is a launch of the test image, which exits with a code at once.
func busy(code string) berth.Launch {
	l := launch()
	l.AttemptID = strings.ToLower(rand.Text())
	l.Image, l.Command, l.Workdir, l.Mounts = "berth-test/busy:1", []string{"/busy", "exit", code}, "", nil

	return l
}

// TestEnsureStartsWhatWasCreated is the worker that died between create and
// start (reliability.md, failure 3).
func TestEnsureStartsWhatWasCreated(t *testing.T) {
	t.Parallel()

	d := setup(t)
	l := busy("4")

	made, err := d.create(t.Context(), l)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, d.Stop(ctx, made.ID, 0))
		require.NoError(t, d.Remove(ctx, made.ID))
	})

	found, err := d.Inspect(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, berth.ContainerCreated, found.State)

	c, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.True(t, c.Adopted)
	require.Equal(t, made.ID, c.ID)

	ended, err := d.Wait(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, 4, ended.ExitCode)
}
