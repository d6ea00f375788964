//go:build integration

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/runtimetest"
)

// of is a busy sweep of an image.
func of(image string, trials, ms int, extra ...string) string {
	return strings.Replace(busy(trials, ms, append(extra, "resources: {memory: 64MiB, cpus: 0.5}", "probe: {mode: 'off'}")...), "berth-test/busy:1", image, 1)
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

	if !eventually(s.t, time.Minute, func() bool {
		last = nil

		for _, trial := range s.trials(id) {
			last = append(last, trial.Message)
			if strings.HasPrefix(trial.Message, begins) && strings.HasSuffix(trial.Message, ends) {
				return true
			}
		}

		return false
	}) {
		require.Failf(s.t, "no trial says it", "wants %q … %q, and they say %q", begins, ends, last)
	}
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

	require.True(s.t, eventually(s.t, time.Minute, func() bool {
		hosts, err := inspector.HavingImage(s.t.Context(), strings.TrimSpace(string(out)))
		require.NoError(s.t, err)

		return len(hosts) == 1
	}))
}

// Images come from a registry that wants a login, which the worker's user has.
func TestPull(t *testing.T) { //nolint:tparallel // one pause of the registry at a time
	t.Parallel()

	r := runtimetest.NewRegistry(t, true)
	login := filepath.Join(t.TempDir(), "docker")
	r.Login(t, login, runtimetest.RegistryPassword)

	s := startOn(t, []string{"DOCKER_CONFIG=" + login})
	t.Cleanup(r.GoOn)
	s.tellsImages()

	t.Run("by tag, once for many trials, by the digest that it had", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		first := r.Push(t, "team/tagged:1", runtimetest.Image)
		reached := r.PauseAfter(1 << 20)
		id := s.submit(of(r.Addr+"/team/tagged:1", 6, 300))
		require.Equal(t, first, s.sweep(id).ImageDigest)

		<-reached
		s.says(id, "pulling "+r.Addr+"/team/tagged:1: ", " of 3 MiB")

		moved := r.Push(t, "team/tagged:1", runtimetest.Image)
		require.NotEqual(t, first, moved)

		r.GoOn()
		require.Equal(t, 6, s.until(id, time.Minute, ended).Counts.Succeeded)
		require.Equal(t, 1, r.Layers())
		require.False(t, here(t, moved))

		for _, trial := range s.trials(id) {
			require.Equal(t, 1, trial.Attempts, "none gave its place back")
			require.NotContains(t, trial.Message, "pulling")
		}

		again := s.submit(of(r.Addr+"/team/tagged:1", 1, 100))
		require.Equal(t, moved, s.sweep(again).ImageDigest, "the name means another image by now")
		require.Equal(t, client.SweepStateSucceeded, s.until(again, time.Minute, ended).State)
	})

	t.Run("by digest", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		digest := r.Push(t, "team/pinned:1", runtimetest.Image)
		id := s.submit(of(digest, 2, 100))
		require.Equal(t, digest, s.sweep(id).ImageDigest)
		require.Equal(t, client.SweepStateSucceeded, s.until(id, time.Minute, ended).State)
	})

	t.Run("with its ENTRYPOINT", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		r.Push(t, "team/entry:1", runtimetest.Image, `ENTRYPOINT ["/busy", "train"]`)

		file := strings.Replace(of(r.Addr+"/team/entry:1", 2, 100), "[/busy, train, ", "[", 1)
		id := s.submit(file + "entrypoint: true\n")
		sweep := s.until(id, time.Minute, ended)
		require.Equal(t, client.SweepStateSucceeded, sweep.State)
		require.InDelta(t, 2.0, sweep.Best.Value, 0)

		without := s.submit(file)
		s.until(without, time.Minute, ended)

		trial := s.trials(without)[0]
		require.Equal(t, "bad_command", trial.FailureKind)
		require.Contains(t, trial.Message, "the image has an ENTRYPOINT (/busy train), which does not run")
		require.Contains(t, trial.Message, "`entrypoint: true`")
	})

	t.Run("refused before anything is stored", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		require.Contains(t, s.refused(of(r.Addr+"/team/none:1", 1, 100)), "E_IMAGE_MISSING")

		closed := runtimetest.NewRegistry(t, true)
		closed.Push(t, "team/closed:1", runtimetest.Image)
		why := s.refused(of(closed.Addr+"/team/closed:1", 1, 100))
		require.Contains(t, why, "E_IMAGE_LOGIN")
		require.Contains(t, why, "docker login "+closed.Addr)

		closed.Down(true)
		require.Contains(t, s.refused(of(closed.Addr+"/team/closed:1", 1, 100)), "E_IMAGE_REGISTRY")
	})

	t.Run("the registry dies in the middle, and comes back", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		digest := r.Push(t, "team/torn:1", runtimetest.Image)
		reached := r.PauseAfter(1 << 20)
		id := s.submit(of(digest, 2, 100))
		<-reached
		r.Down(true)
		r.GoOn()
		s.says(id, "pulling "+digest, " of 3 MiB")
		require.Equal(t, 2, s.sweep(id).Counts.Running)

		// What needs no image from there goes on.
		other := s.submit(of(runtimetest.Image, 1, 100))
		require.Equal(t, client.SweepStateSucceeded, s.until(other, time.Minute, ended).State)

		r.Down(false)
		require.Equal(t, client.SweepStateSucceeded, s.until(id, 2*time.Minute, ended).State)

		for _, a := range s.attempts(id) {
			require.Contains(t, []string{"ok", "infra"}, a.FailureKind, "no trial pays for it")
		}
	})

	t.Run("canceled while it waits", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		digest := r.Push(t, "team/canceled:1", runtimetest.Image)
		reached := r.PauseAfter(1 << 20)
		id := s.submit(of(digest, 2, 100))
		<-reached

		began := time.Now()
		_, err := s.api.CancelSweepWithResponse(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, client.SweepStateCanceled, s.until(id, time.Minute, ended).State)
		require.Less(t, time.Since(began), 20*time.Second)
		r.GoOn()
		require.False(t, here(t, digest))
	})

	t.Run("a host that pulls none", func(t *testing.T) { //nolint:paralleltest // the same
		s := s.on(t)
		digest := r.Push(t, "team/never:1", runtimetest.Image)

		stop(s.worker, syscall.SIGTERM)

		s.flags = []string{"--pull", "never"}
		s.startWorker()

		require.Contains(t, s.refused(of(digest, 1, 100)), "--pull never")
		require.False(t, here(t, digest))
	})
}

// eventually is require.Eventually without the failure.
func eventually(t testing.TB, patience time.Duration, condition func() bool) bool {
	t.Helper()

	for began := time.Now(); time.Since(began) < patience; {
		if condition() {
			return true
		}

		select {
		case <-time.After(tick):
		case <-t.Context().Done():
			return false
		}
	}

	return false
}
