package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	helpers "github.com/docker/docker-credential-helpers/client"
	credentialerrors "github.com/docker/docker-credential-helpers/credentials"
	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/berthml/berth"
)

const (
	// helperTimeout is how long a credential helper may take: one that asks a cloud for
	// a token takes a second or two, one whose keyring is locked never ends.
	helperTimeout = 30 * time.Second

	// helperDelay is how long the output of a helper is waited for that has ended or was
	// killed, when a child of it still holds the output open.
	helperDelay = time.Second

	// helperPrefix begins the name of each helper's program, as Docker has it.
	helperPrefix = "docker-credential-"
)

// login is what this process' user has for an image's registry: what `docker login`
// wrote to ~/.docker/config.json (or DOCKER_CONFIG), or what a credential helper
// says. The zero value is none. The keychain of go-containerregistry is not used: it
// runs helpers without a context, and holds one lock for all registries meanwhile.
// Errors: *berth.PullError when that cannot be read; ctx's cause when it is canceled.
func login(ctx context.Context, image reference.Named) (authn.AuthConfig, error) {
	repository, err := name.NewRepository(image.Name())
	if err != nil {
		return authn.AuthConfig{}, berth.Errorf(berth.KindInvalid, "reading repository %q: %w", image.Name(), err)
	}

	file, err := config.Load(os.Getenv("DOCKER_CONFIG"))
	if err != nil {
		return authn.AuthConfig{}, unreadable(image, err)
	}

	for _, key := range []string{repository.String(), repository.RegistryStr()} {
		if key == name.DefaultRegistry {
			key = authn.DefaultAuthKey
		}

		found, err := loginOf(ctx, file, key)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return authn.AuthConfig{}, context.Cause(ctx)
		}

		if err != nil {
			return authn.AuthConfig{}, unreadable(image, err)
		}

		have := authn.AuthConfig{
			Username: found.Username, Password: found.Password, Auth: found.Auth, IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
		}
		if have != (authn.AuthConfig{}) {
			return have, nil
		}
	}

	return authn.AuthConfig{}, nil
}

// loginOf is what a configuration has under a key. Errors: *helperSlowError, and what
// a helper says.
func loginOf(ctx context.Context, file *configfile.ConfigFile, key string) (types.AuthConfig, error) {
	helper, own := file.CredentialHelpers[key]
	if !own {
		helper = file.CredentialsStore
	}

	if helper == "" {
		return file.GetAuthConfig(key) // reads the file only
	}

	program := &helperProgram{ctx: ctx, name: helperPrefix + helper}

	got, err := helpers.Get(func(args ...string) helpers.Program {
		program.args = args

		return program
	}, key)

	switch {
	case program.slow != nil: // the library keeps nothing but its text
		return types.AuthConfig{}, program.slow
	case credentialerrors.IsErrCredentialsNotFound(err):
		return types.AuthConfig{}, nil
	case err != nil:
		return types.AuthConfig{}, err
	case got.Username == "<token>": // the helpers' protocol
		return types.AuthConfig{IdentityToken: got.Secret}, nil
	default:
		return types.AuthConfig{Username: got.Username, Password: got.Secret}, nil
	}
}

// helperProgram is one question to a credential helper.
type helperProgram struct {
	ctx   context.Context //nolint:containedctx // the library's Output takes none
	name  string
	args  []string
	input io.Reader
	slow  *helperSlowError // why there is no answer; nil = there is one
}

// Input is helpers.Program.
func (p *helperProgram) Input(in io.Reader) { p.input = in }

// Output is helpers.Program. When ctx ends, or the helper takes too long, the helper
// is killed with its children.
func (p *helperProgram) Output() ([]byte, error) {
	began := time.Now()

	ctx, cancel := context.WithTimeout(p.ctx, helperTimeout)
	defer cancel()

	cmd := exec.CommandContext(ctx, p.name, p.args...) //nolint:gosec // G204: the program that the user's configuration names
	cmd.Stdin = p.input
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = helperDelay

	out, err := cmd.Output()

	if ctx.Err() != nil && err != nil {
		p.slow = &helperSlowError{name: p.name, after: time.Since(began)}

		return nil, p.slow
	}

	if ended, ok := errors.AsType[*exec.ExitError](err); ok && len(ended.Stderr) > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.TrimSpace(string(ended.Stderr)))
	}

	return out, err
}

// helperSlowError says that a credential helper was killed, since it did not answer.
type helperSlowError struct {
	name  string
	after time.Duration
}

func (e *helperSlowError) Error() string {
	return fmt.Sprintf("%s did not answer for %s", e.name, e.after.Round(time.Second))
}

// unreadable says that a login cannot be read, and what to do about it.
func unreadable(image reference.Named, err error) error {
	refused := pullErrorOf(image, berth.PullUnauthorized, "the credentials for "+reference.Domain(image)+" cannot be read: "+err.Error())

	if slow, ok := errors.AsType[*helperSlowError](err); ok {
		refused.Fix = "run this as the user of `berth worker`, on that machine, to see what it waits for: echo " + reference.Domain(image) + " | " + slow.name + " get"
	}

	return refused
}

// encoded is a login in the form that Docker's API takes. Empty = none.
func encoded(image reference.Named, have authn.AuthConfig) (string, error) {
	if have == (authn.AuthConfig{}) {
		return "", nil
	}

	text, err := registry.EncodeAuthConfig(registry.AuthConfig{
		Username: have.Username, Password: have.Password, Auth: have.Auth, IdentityToken: have.IdentityToken, RegistryToken: have.RegistryToken,
		ServerAddress: reference.Domain(image),
	})
	if err != nil {
		return "", berth.Errorf(berth.KindInternal, "encoding credentials for %s: %w", reference.Domain(image), err)
	}

	return text, nil
}
