package docker

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/client"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthml/berth"
)

// AskRegistry asks an image's registry what the image is, and pulls nothing.
// Docker on this host asks, by its own proxies, mirrors and certificates, with
// the credentials of this process' user. Errors: *berth.PullError; unavailable
// when Docker does not answer.
func (d *Docker) AskRegistry(ctx context.Context, ref string) (berth.Image, error) {
	named, err := named(ref)
	if err != nil {
		return berth.Image{}, err
	}

	digest, err := d.inspectRegistry(ctx, named)
	if err != nil {
		return berth.Image{}, err
	}

	return berth.Image{Digest: reference.FamiliarName(named) + "@" + digest}, nil
}

// named reads a reference as Docker does: a name without a registry is Docker
// Hub's, one without a tag or digest has the tag "latest".
func named(ref string) (reference.Named, error) {
	parsed, err := reference.ParseDockerRef(ref)
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "reading image reference %q: %w", ref, err)
	}

	return parsed, nil
}

// inspectRegistry returns the digest that a registry has for an image, and checks that
// the image runs on this host's kind of processor.
func (d *Docker) inspectRegistry(ctx context.Context, image reference.Named) (digest string, err error) {
	credentials, err := credentials(ctx, image)
	if err != nil {
		return "", err
	}

	got, err := d.long.DistributionInspect(ctx, image.String(), credentials)
	if err != nil {
		return "", d.pullError(ctx, image, err)
	}

	host, err := d.short.ServerVersion(ctx)
	if err != nil {
		return "", d.translate(ctx, err, "asking Docker for its version")
	}

	if len(got.Platforms) > 0 && !slices.ContainsFunc(got.Platforms, func(p ocispec.Platform) bool { return runsOn(p, host.Os, host.Arch) }) {
		return "", pullErrorOf(image, berth.PullPlatform, "it is for "+platforms(got.Platforms)+", and this machine is "+host.Os+"/"+host.Arch)
	}

	return string(got.Descriptor.Digest), nil
}

// runsOn reports whether a machine runs programs of a platform. An image that names
// none may be for any.
func runsOn(p ocispec.Platform, os, arch string) bool {
	if p.OS == "" && p.Architecture == "" {
		return true
	}

	return p.OS == os && (p.Architecture == arch || p.Architecture == "386" && arch == "amd64")
}

func platforms(all []ocispec.Platform) string {
	var names []string

	for _, p := range all {
		if p.OS != "unknown" { // an attestation
			names = append(names, p.OS+"/"+p.Architecture)
		}
	}

	return strings.Join(names, ", ")
}

// credentials are what this process' user has for an image's registry, in
// ~/.docker/config.json or by a credential helper, in the form that Docker's API
// takes. Empty = none. Errors: *berth.PullError when a helper fails.
func credentials(ctx context.Context, image reference.Named) (string, error) {
	repository, err := name.NewRepository(image.Name())
	if err != nil {
		return "", berth.Errorf(berth.KindInvalid, "reading repository %q: %w", image.Name(), err)
	}

	found, err := authn.Resolve(ctx, authn.DefaultKeychain, repository)
	if err != nil {
		return "", pullErrorOf(image, berth.PullUnauthorized, "the credentials for "+reference.Domain(image)+" cannot be read: "+err.Error())
	}

	have, err := authn.Authorization(ctx, found)
	if err != nil {
		return "", pullErrorOf(image, berth.PullUnauthorized, "the credentials for "+reference.Domain(image)+" cannot be read: "+err.Error())
	}

	if *have == (authn.AuthConfig{}) {
		return "", nil
	}

	text, err := registry.EncodeAuthConfig(registry.AuthConfig{
		Username: have.Username, Password: have.Password, IdentityToken: have.IdentityToken, RegistryToken: have.RegistryToken,
		ServerAddress: reference.Domain(image),
	})
	if err != nil {
		return "", berth.Errorf(berth.KindInternal, "encoding credentials for %s: %w", reference.Domain(image), err)
	}

	return text, nil
}

// layers are the layers of an image in its registry: what each has compressed, and
// its digest unpacked, in order. Only Docker's API pulls, and it does not tell this
// beforehand, so this process asks the registry itself.
func layers(ctx context.Context, image reference.Named, os, arch string) (sizes []int64, unpacked []string, err error) {
	ref, err := name.ParseReference(image.String())
	if err != nil {
		return nil, nil, err
	}

	got, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: os, Architecture: arch}))
	if err != nil {
		return nil, nil, err
	}

	manifest, err := got.Manifest()
	if err != nil {
		return nil, nil, err
	}

	config, err := got.ConfigFile()
	if err != nil {
		return nil, nil, err
	}

	for _, layer := range manifest.Layers {
		sizes = append(sizes, layer.Size)
	}

	for _, id := range config.RootFS.DiffIDs {
		unpacked = append(unpacked, id.String())
	}

	return sizes, unpacked, nil
}

// The words by which Docker 20.10 to 28 and registries tell why a pull failed. They
// are looked for in this order: Docker says "access denied" of a repository that is
// not there when it has no login, and answers 404 with it.
var pullWords = []struct {
	reason berth.PullReason
	words  []string
}{
	{berth.PullDiskFull, []string{"no space left on device"}},
	{berth.PullPlatform, []string{"no matching manifest for", "no match for platform", "does not match the specified platform"}},
	{berth.PullUnauthorized, []string{"unauthorized", "denied", "authentication required", "no basic auth credentials", "401", "403 forbidden"}},
	{berth.PullUnknown, []string{"manifest unknown", "name unknown", "not found", "no such image"}},
	{berth.PullUnreachable, []string{
		"connection refused", "no such host", "timeout", "timed out", "eof", "connection reset", "broken pipe", "no route to host", "network is unreachable",
		"certificate", "server gave http response", "tls:", "toomanyrequests", "too many requests", "500 internal", "502 bad", "503 service", "504 gateway",
		"unavailable", "server misbehaving", "deadline exceeded",
	}},
}

// pullError tells why Docker could not ask a registry or pull. Errors:
// *berth.PullError; unavailable when Docker itself does not answer; ctx's cause.
func (d *Docker) pullError(ctx context.Context, image reference.Named, err error) error {
	var network net.Error

	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) || client.IsErrConnectionFailed(err) || cerrdefs.IsUnavailable(err) {
		return d.translate(ctx, err, "pulling image %q", reference.FamiliarString(image))
	}

	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
		return pullErrorOf(image, berth.PullUnreachable, "its registry "+reference.Domain(image)+" did not answer in time")
	}

	said, reason := strings.TrimPrefix(err.Error(), "Error response from daemon: "), pullReason(err.Error())
	where := "its registry " + reference.Domain(image)

	switch reason {
	case berth.PullUnknown:
		said = where + " does not have it (" + said + ")"
	case berth.PullUnauthorized:
		said = where + " refuses it (" + said + ")"
	case berth.PullUnreachable:
		said = where + " does not answer (" + said + ")"
	default: // they say it themselves
	}

	return pullErrorOf(image, reason, said)
}

func pullReason(text string) berth.PullReason {
	text = strings.ToLower(text)

	for _, known := range pullWords {
		if slices.ContainsFunc(known.words, func(w string) bool { return strings.Contains(text, w) }) {
			return known.reason
		}
	}

	return berth.PullFailed
}

// pullErrorOf adds what to do about a reason.
func pullErrorOf(image reference.Named, reason berth.PullReason, detail string) *berth.PullError {
	where, ref := reference.Domain(image), reference.FamiliarString(image)

	fix := map[berth.PullReason]string{
		berth.PullUnknown: "check its name, tag or digest; where they are right, push it there: docker push " + reference.FamiliarName(image),
		berth.PullUnauthorized: "the registry wants a login, or the image does not exist: run `docker login " + where +
			"` as the user of `berth worker`, on that machine",
		berth.PullUnreachable: "Berth tries again; when that does not help, check that this works on that machine: docker pull " + ref,
		berth.PullPlatform:    "build it for this kind of processor, such as: docker build --platform linux/amd64",
		berth.PullDiskFull:    "free space on Docker's disk: docker image prune, docker system df",
	}[reason]

	fix = cmp.Or(fix, "try on that machine: docker pull "+ref)

	// A name without a registry may be of an image that is not built yet.
	local := reference.FamiliarName(image) != image.Name()
	if local && (reason == berth.PullUnknown || reason == berth.PullUnauthorized || reason == berth.PullUnreachable) {
		fix = "if it is an image of your own, type there: docker build -t " + ref + " . (in the directory of its Dockerfile); else " + fix
	}

	return &berth.PullError{Image: ref, Registry: where, Reason: reason, Detail: detail, Fix: fix}
}
