package docker

import (
	"context"
	"errors"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/client"

	"github.com/berthml/berth"
)

// pullWords tell what a person can do about an error of Docker 20.10 to 28. They are
// looked for in this order: Docker says "access denied" of a repository that is not
// there when it has no login, and answers 404 with it.
var pullWords = []struct {
	reason berth.PullReason
	words  *regexp.Regexp
}{
	{berth.PullDiskFull, regexp.MustCompile(`no space left on device`)},
	{berth.PullPlatform, regexp.MustCompile(`no matching manifest for|no match for platform|does not match the specified platform`)},
	{berth.PullUnauthorized, regexp.MustCompile(`unauthorized|denied|authentication required|no basic auth credentials|forbidden`)},
	{berth.PullUnknown, regexp.MustCompile(`manifest unknown|name unknown|not found|no such image`)},
}

// pullError tells, in Docker's words, why it could not ask a registry or pull. Errors:
// *berth.PullError; unavailable when Docker itself does not answer; ctx's cause.
func (d *Docker) pullError(ctx context.Context, image reference.Named, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return pullErrorOf(image, berth.PullUnreachable, "its registry "+reference.Domain(image)+" did not answer in time")
	}

	if ctx.Err() != nil || errors.Is(err, errStream) || client.IsErrConnectionFailed(err) || cerrdefs.IsUnavailable(err) {
		return d.translate(ctx, err, "pulling image %q", reference.FamiliarString(image))
	}

	said := strings.TrimPrefix(err.Error(), "Error response from daemon: ")

	for _, known := range pullWords {
		if known.words.MatchString(strings.ToLower(said)) {
			return pullErrorOf(image, known.reason, said)
		}
	}

	return pullErrorOf(image, berth.PullUnreachable, said)
}

// pullErrorOf adds what to do about a reason.
func pullErrorOf(image reference.Named, reason berth.PullReason, detail string) *berth.PullError {
	where, ref := reference.Domain(image), reference.FamiliarString(image)

	fix := map[berth.PullReason]string{
		berth.PullUnknown: "check its name, tag or digest; where they are right, push it there: docker push " + reference.FamiliarName(image),
		berth.PullUnauthorized: "the registry wants a login, or the image does not exist: run `docker login " + where +
			"` as the user of `berth worker`, on that machine",
		berth.PullUnreachable: "Berth tries again; when that does not help, check that this works on that machine: docker pull " + ref,
		berth.PullTimeout:     "Berth tries again; to wait for it yourself, type on that machine: docker pull " + ref,
		berth.PullPlatform:    "build it for this kind of processor, such as: docker build --platform linux/amd64",
		berth.PullDiskFull:    "free space on Docker's disk: docker image prune, docker system df",
	}[reason]

	// A name without a registry may be of an image that is not built yet.
	local := reference.FamiliarName(image) != image.Name()
	if local && (reason == berth.PullUnknown || reason == berth.PullUnauthorized || reason == berth.PullUnreachable) {
		fix = "if it is an image of your own, type there: docker build -t " + ref + " . (in the directory of its Dockerfile); else " + fix
	}

	return &berth.PullError{Image: ref, Reason: reason, Detail: detail, Fix: fix}
}
