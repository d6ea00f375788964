package docker

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/cli/cli/config/types"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// configured makes a user with a configuration of Docker and with the credential helper
// "test", a script, and returns the user's directory.
func configured(t *testing.T, config, helper string) string {
	t.Helper()

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte("#!/bin/sh\ncd "+dir+"\n"+helper), 0o700)) //nolint:gosec // a program
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	return dir
}

// What `docker login` wrote, and what helpers answer by their protocol.
func TestLogin(t *testing.T) { //nolint:paralleltest // it sets the environment
	configured(t, `{
		"auths": {"plain.example": {"auth": "`+base64.StdEncoding.EncodeToString([]byte("anna:secret"))+`"}, "token.example": {"identitytoken": "t1"}},
		"credHelpers": {"helped.example": "test", "cloud.example": "test", "unknown.example": "test", "broken.example": "test", "absent.example": "none"}}`,
		`case $(cat) in
			helped.example) echo '{"Username":"bert","Secret":"s2"}' ;;
			cloud.example) echo '{"Username":"<token>","Secret":"t2"}' ;;
			unknown.example) echo 'credentials not found in native keychain'; exit 1 ;;
			*) echo 'the keyring is locked' >&2; exit 1 ;;
		esac`)

	for registry, want := range map[string]types.AuthConfig{
		"plain.example":   {Username: "anna", Password: "secret"},
		"token.example":   {IdentityToken: "t1"},
		"helped.example":  {Username: "bert", Password: "s2"},
		"cloud.example":   {IdentityToken: "t2"},
		"unknown.example": {},
		"other.example":   {},
	} {
		have, err := credentials(t.Context(), registry)
		require.NoError(t, err, registry)

		have.ServerAddress = "" // of the file
		require.Equal(t, want, have, registry)
	}

	for registry, want := range map[string]string{
		"broken.example": "the credentials for broken.example cannot be read: error getting credentials - err: exit status 1",
		"absent.example": `exec: "docker-credential-none": executable file not found in $PATH`,
	} {
		image, err := named(registry + "/team/a:1")
		require.NoError(t, err)

		_, err = login(t.Context(), image)
		requirePullError(t, err, berth.PullUnauthorized, want)
	}
}

// A helper that does not answer (a locked keyring, a cloud login) holds no canceled trial.
func TestLogin_HelperThatHangs(t *testing.T) { //nolint:paralleltest // it sets the environment
	dir := configured(t, `{"credsStore":"test"}`, "touch asked\nwhile [ -e asked ]; do sleep 0.1; done\n")
	asked := filepath.Join(dir, "asked")
	pulls := NewPulls(setup(t), PullConfig{})
	canceled := errors.New("canceled by a person")
	done := make(chan error, 1)

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)

	go func() { done <- pulls.Pull(ctx, "registry.example/team/a@"+someDigest, unheard) }()

	require.Eventually(t, func() bool { // the helper runs
		_, err := os.Stat(asked)

		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	cancel(canceled)
	require.ErrorIs(t, <-done, canceled)
	require.NoError(t, os.Remove(asked)) // it ends
}
