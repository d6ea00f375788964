package docker

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	helpers "github.com/docker/docker-credential-helpers/client"
	credentialerrors "github.com/docker/docker-credential-helpers/credentials"

	"github.com/berthml/berth"
)

// helperTimeout is how long a credential helper may take: one that asks a cloud for a
// token takes a second or two, one whose keyring is locked never ends.
const helperTimeout = 30 * time.Second

// login returns what this process' user has for an image's registry, in the form that
// Docker's API takes: what `docker login` wrote to ~/.docker/config.json (or
// DOCKER_CONFIG), or what a credential helper says. Empty = nothing.
// Errors: *berth.PullError when that cannot be read; ctx's cause.
func login(ctx context.Context, image reference.Named) (string, error) {
	have, err := credentials(ctx, reference.Domain(image))

	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return "", context.Cause(ctx)
	case err != nil:
		return "", pullErrorOf(image, berth.PullUnauthorized, "the credentials for "+reference.Domain(image)+" cannot be read: "+err.Error())
	case have == (types.AuthConfig{}):
		return "", nil
	}

	text, err := json.Marshal(have) //nolint:gosec // G117: Docker's API takes it

	return base64.URLEncoding.EncodeToString(text), err
}

// credentials returns those of a registry.
func credentials(ctx context.Context, registry string) (types.AuthConfig, error) {
	file, err := config.Load(os.Getenv("DOCKER_CONFIG"))
	if err != nil {
		return types.AuthConfig{}, err
	}

	if registry == "docker.io" {
		registry = "https://index.docker.io/v1/" // as `docker login` calls it
	}

	name := cmp.Or(file.CredentialHelpers[registry], file.CredentialsStore)
	if name == "" {
		return file.GetAuthConfig(registry) // of the file alone; a helper would run without ctx
	}

	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()

	got, err := helpers.Get(func(args ...string) helpers.Program {
		cmd := exec.CommandContext(ctx, "docker-credential-"+name, args...) //nolint:gosec // G204: the program that the user's configuration names
		cmd.WaitDelay = time.Second                                         // a child of it may hold its output open

		return helper{cmd}
	}, registry)

	switch {
	case credentialerrors.IsErrCredentialsNotFound(err):
		return types.AuthConfig{}, nil
	case err != nil && ctx.Err() != nil:
		return types.AuthConfig{}, fmt.Errorf("docker-credential-%s did not answer in time", name)
	case err == nil && got.Username == "<token>": // the helpers' protocol
		return types.AuthConfig{IdentityToken: got.Secret}, nil
	case err != nil:
		return types.AuthConfig{}, err
	}

	return types.AuthConfig{Username: got.Username, Password: got.Secret}, nil
}

// helper is helpers.Program.
type helper struct{ *exec.Cmd }

func (h helper) Input(in io.Reader) { h.Stdin = in }
