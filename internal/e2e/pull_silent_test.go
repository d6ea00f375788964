//go:build integration && nightly

package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/runtimetest"
)

// silentRegistry accepts connections, and never answers.
func silentRegistry(t *testing.T) string {
	t.Helper()

	over := make(chan struct{})
	registry := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}

		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(registry.Close)
	t.Cleanup(func() { close(over) })

	return strings.TrimPrefix(registry.URL, "http://")
}

// A registry that does not answer at the submission does not count as one without the image.
func TestPull_SilentRegistry(t *testing.T) {
	t.Parallel()

	s := startOn(t, nil)
	why := s.refused(of(silentRegistry(t)+"/team/a:1", 1, 100))
	require.Contains(t, why, "E_IMAGE_REGISTRY")
	require.Contains(t, why, "did not answer in time")
}

// A user cancels a sweep whose trial waits for a hanging credential helper. Images of
// other registries are pulled in that time.
func TestPull_CancelWhileAHelperHangs(t *testing.T) {
	t.Parallel()

	r, other, dir := runtimetest.NewRegistry(t, false), runtimetest.NewRegistry(t, false), t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // Docker's programs read it
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"credHelpers":{"`+r.Addr+`":"test"}}`), 0o600))

	// At the submission the helper answers, and then no more: its keyring was locked.
	helper := "#!/bin/sh\ncd " + dir + "\nif [ -e locked ]; then touch asked; exec sleep 600; fi\ntouch locked\necho credentials not found in native keychain\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(helper), 0o700)) //nolint:gosec // a program

	s := startOn(t, []string{"DOCKER_CONFIG=" + dir, "HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")})
	digest, elsewhere := r.Push(t, "team/helped:1", runtimetest.Image), other.Push(t, "team/free:1", runtimetest.Image)

	held := s.submit(of(digest, 1, 100))

	require.True(t, eventually(t, time.Minute, func() bool {
		_, err := os.Stat(filepath.Join(dir, "asked"))

		return err == nil
	}), "no trial asks the helper")

	id := s.submit(of(elsewhere, 1, 100))
	require.Equal(t, client.SweepStateSucceeded, s.until(id, time.Minute, ended).State, "another registry, which has no helper")

	began := time.Now()
	_, err := s.api.CancelSweepWithResponse(t.Context(), held)
	require.NoError(t, err)
	require.Equal(t, client.SweepStateCanceled, s.until(held, time.Minute, ended).State)
	require.Less(t, time.Since(began), 20*time.Second)
}
