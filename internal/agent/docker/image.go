package docker

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/berthml/berth"
)

// unprivileged is the uid and gid of trials whose image names no user, if the worker is
// root: "nonroot" of the distroless images, and no one on the host.
const unprivileged = 65532

// codeImageEnv is the code of an image whose environment is refused.
const codeImageEnv = "E_IMAGE_ENV"

// ResolveImage finds an image on this host; it never pulls. The digest is a
// registry's, as repository@sha256:…, when there is one; a locally built image
// has its ID only. Errors are a *berth.SpecError: E_IMAGE_MISSING, or
// E_IMAGE_ENV for an image that preloads a library into every process
// (CVE-2025-23266 came that way).
func (d *Docker) ResolveImage(ctx context.Context, ref string) (berth.Image, error) {
	got, err := d.short.ImageInspect(ctx, ref)

	switch {
	case cerrdefs.IsNotFound(err):
		return berth.Image{}, imageProblem("E_IMAGE_MISSING", "image "+strconv.Quote(ref)+
			" is not on this host; type there `docker build -t "+ref+" .` or `docker pull "+ref+"`")
	case err != nil:
		return berth.Image{}, d.translate(ctx, err, "inspecting image %q", ref)
	}

	found := berth.Image{
		ID: got.ID, Digest: digest(ref, got.ID, got.RepoDigests), SizeBytes: got.Size, OS: got.Os, Architecture: got.Architecture,
	}
	if got.Config != nil {
		found.User, found.Env, found.Workdir = got.Config.User, got.Config.Env, got.Config.WorkingDir
		found.Entrypoint = got.Config.Entrypoint

		for volume := range got.Config.Volumes {
			found.Volumes = append(found.Volumes, path.Clean(volume))
		}

		slices.Sort(found.Volumes)
	}

	for _, line := range found.Env {
		name, _, _ := strings.Cut(line, "=")
		if name == "LD_PRELOAD" || name == "LD_AUDIT" {
			return berth.Image{}, imageProblem(codeImageEnv, "image "+strconv.Quote(ref)+" sets "+name+
				", which loads code into every process; build it without")
		}
	}

	return found, nil
}

// ListImages returns the names of this host's images that trials may use: their
// IDs, and their digests in registries, sorted.
func (d *Docker) ListImages(ctx context.Context) ([]string, error) {
	got, err := d.short.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, d.translate(ctx, err, "listing images")
	}

	names := []string{} // none is a list, too
	for i := range got {
		names = append(append(names, got[i].ID), got[i].RepoDigests...)
	}

	slices.Sort(names)

	return slices.Compact(names), nil
}

// digest picks the registry digest of ref's own repository, else the first in
// order, else the ID.
func digest(ref, id string, digests []string) string {
	if len(digests) == 0 {
		return id
	}

	sorted := slices.Sorted(slices.Values(digests))
	if own := slices.IndexFunc(sorted, func(candidate string) bool { return sameRepository(ref, candidate) }); own >= 0 {
		return sorted[own]
	}

	return sorted[0]
}

// sameRepository reports whether a reference and a digest have the same repository, in
// any spelling. An image's ID has none.
func sameRepository(ref, digest string) bool {
	repository, _, _ := strings.Cut(digest, "@")

	one, errOne := reference.ParseNormalizedNamed(ref)
	other, errOther := reference.ParseNormalizedNamed(repository)

	return errOne == nil && errOther == nil && one.Name() == other.Name()
}

// ResolveUser returns the user of a container as Docker takes it: wanted, when it is not
// empty; else the image's user; else, when that is root, the worker's own, by its uid and
// gid, which can then remove the trial's files; else, when that is root as well, an
// unprivileged one.
func ResolveUser(imageUser, wanted string, uid, gid int) string {
	user, _, _ := strings.Cut(imageUser, ":")

	switch {
	case wanted != "":
		return wanted
	case user != "" && user != "root" && user != "0":
		return imageUser
	case uid == 0:
		uid, gid = unprivileged, unprivileged
	}

	return strconv.Itoa(uid) + ":" + strconv.Itoa(gid)
}

func imageProblem(code, message string) error {
	return &berth.SpecError{Problems: []berth.Problem{{Code: code, Pointer: "/image", Message: message}}}
}
