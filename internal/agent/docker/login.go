package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"

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
	case have == (types.AuthConfig{ServerAddress: have.ServerAddress}):
		return "", nil
	}

	text, err := json.Marshal(have) //nolint:gosec // G117: Docker's API takes it

	return base64.URLEncoding.EncodeToString(text), err
}

// credentials returns those of a registry. A helper that does not answer in time goes on by
// itself.
func credentials(ctx context.Context, registry string) (types.AuthConfig, error) {
	file, err := config.Load(os.Getenv("DOCKER_CONFIG"))
	if err != nil {
		return types.AuthConfig{}, err
	}

	if registry == "docker.io" {
		registry = "https://index.docker.io/v1/" // as `docker login` calls it
	}

	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()

	type answer struct {
		have types.AuthConfig
		err  error
	}

	answers := make(chan answer, 1)

	go func() {
		have, err := file.GetAuthConfig(registry)
		answers <- answer{have, err}
	}()

	select {
	case a := <-answers:
		return a.have, a.err
	case <-ctx.Done():
		return types.AuthConfig{}, errors.New("the credential helper did not answer in time")
	}
}
