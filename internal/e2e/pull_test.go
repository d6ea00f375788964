//go:build integration

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/pgtest"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// of is a busy sweep of an image.
func of(image string, trials, ms int, extra ...string) string {
	return strings.Replace(busy(trials, ms, append(extra, half)...), "berth-test/busy:1", image, 1)
}

// here reports whether this machine has an image.
func here(t *testing.T, image string) bool {
	t.Helper()

	return exec.CommandContext(t.Context(), "docker", "image", "inspect", image).Run() == nil
}

// says waits until a trial says something of itself, as lists and its page show it.
func (s *stack) says(id, begins, ends string) {
	s.t.Helper()

	var last []string

	require.Eventually(s.t, func() bool {
		last = nil

		for _, trial := range s.trials(id) {
			last = append(last, trial.Message)
		}

		return slices.ContainsFunc(last, func(text string) bool { return strings.HasPrefix(text, begins) && strings.HasSuffix(text, ends) })
	}, patience, tick, "wants %q … %q, and trials say %q", begins, ends, &last)
}

// tellsImages waits until the worker has told the database which images its machine has.
func (s *stack) tellsImages() {
	s.t.Helper()

	out, err := exec.CommandContext(s.t.Context(), "docker", "image", "inspect", "--format", "{{.Id}}", runtimetest.Image).Output()
	require.NoError(s.t, err)

	postgresURL, _ := s.backends()
	inspector, err := pgtest.Inspect(s.t.Context(), postgresURL)
	require.NoError(s.t, err)

	defer inspector.Close(context.WithoutCancel(s.t.Context()))

	require.Eventually(s.t, func() bool {
		hosts, err := inspector.HavingImage(s.t.Context(), strings.TrimSpace(string(out)))
		require.NoError(s.t, err)

		return len(hosts) == 1
	}, patience, tick)
}

// An image comes from a registry that wants a login, which the worker's user has: once
// for many trials, by the digest that its tag had. What cannot come is refused at once.
func TestPull(t *testing.T) {
	t.Parallel()

	s, r := plain(t), runtimetest.NewRegistry(t, true)
	r.Login(t, filepath.Join(s.dir, "login"), runtimetest.RegistryPassword)
	t.Cleanup(r.GoOn)
	s.tellsImages()

	first := r.Push(t, "team/tagged:1", runtimetest.Image)
	reached := r.PauseAfter(1 << 20)
	id := s.submit(of(r.Addr+"/team/tagged:1", 6, 300))
	require.Equal(t, first, s.sweep(id).ImageDigest)

	<-reached
	s.says(id, "pulling "+r.Addr+"/team/tagged:1: ", " of 3 MiB")

	moved := r.Push(t, "team/tagged:1", runtimetest.Image)
	require.NotEqual(t, first, moved)

	r.GoOn()
	require.Equal(t, 6, s.until(id, patience, ended).Counts.Succeeded)
	require.Equal(t, 1, r.Layers())
	require.False(t, here(t, moved))

	for _, trial := range s.trials(id) {
		require.Equal(t, 1, trial.Attempts, "none gave its place back")
		require.NotContains(t, trial.Message, "pulling")
	}

	require.Contains(t, s.refused(of(r.Addr+"/team/none:1", 1, 100)), "E_IMAGE_MISSING")

	closed := runtimetest.NewRegistry(t, true)
	closed.Push(t, "team/closed:1", runtimetest.Image)
	why := s.refused(of(closed.Addr+"/team/closed:1", 1, 100))
	require.Contains(t, why, "E_IMAGE_LOGIN")
	require.Contains(t, why, "docker login "+closed.Addr)

	closed.Down(true)
	require.Contains(t, s.refused(of(closed.Addr+"/team/closed:1", 1, 100)), "E_IMAGE_REGISTRY")
}
