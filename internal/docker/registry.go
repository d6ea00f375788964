package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/distribution/reference"
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

	have, err := login(ctx, named)
	if err != nil {
		return berth.Image{}, err
	}

	digest, err := d.inspectRegistry(ctx, named, have)
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
func (d *Docker) inspectRegistry(ctx context.Context, image reference.Named, have authn.AuthConfig) (digest string, err error) {
	credentials, err := encoded(image, have)
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

// layers are the layers of an image in its registry: what each has compressed, and
// its digest unpacked, in order. Only Docker's API pulls, and it does not tell this
// beforehand, so this process asks the registry itself.
func layers(ctx context.Context, image reference.Named, have authn.AuthConfig, os, arch string) (sizes []int64, unpacked []string, err error) {
	ref, err := name.ParseReference(image.String())
	if err != nil {
		return nil, nil, err
	}

	got, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuth(authn.FromConfig(have)),
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
