package docker

import (
	"context"
	"strings"

	"github.com/distribution/reference"

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

	digest, _, err := d.inspectRegistry(ctx, named)
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

// inspectRegistry returns the digest that a registry has for an image, and the
// credentials by which it says so, and checks that the image runs on this host's kind
// of processor. An image that names no platform may be for any.
func (d *Docker) inspectRegistry(ctx context.Context, image reference.Named) (digest, credentials string, err error) {
	if credentials, err = login(ctx, image); err != nil {
		return "", "", err
	}

	got, err := d.long.DistributionInspect(ctx, image.String(), credentials)
	if err != nil {
		return "", "", d.pullError(ctx, image, err)
	}

	host, err := d.short.ServerVersion(ctx)
	if err != nil {
		return "", "", d.translate(ctx, err, "asking Docker for its version")
	}

	fits, names := len(got.Platforms) == 0, []string{}

	for _, p := range got.Platforms {
		fits = fits || p.OS == "" || p.OS == host.Os && (p.Architecture == host.Arch || p.Architecture == "386" && host.Arch == "amd64")

		if p.OS != "unknown" { // an attestation
			names = append(names, p.OS+"/"+p.Architecture)
		}
	}

	if !fits {
		return "", "", pullErrorOf(image, berth.PullPlatform, "it is for "+strings.Join(names, ", ")+", and this machine is "+host.Os+"/"+host.Arch)
	}

	return string(got.Descriptor.Digest), credentials, nil
}
