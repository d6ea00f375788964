package docker

import (
	"cmp"
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/client"

	"github.com/berthml/berth"
)

// The words by which Docker 20.10 to 28 and registries tell why a pull failed. They
// are looked for in this order: Docker says "access denied" of a repository that is
// not there when it has no login, and answers 404 with it.
var pullWords = []struct {
	reason berth.PullReason
	words  []string
}{
	{berth.PullDiskFull, []string{"no space left on device"}},
	{berth.PullPlatform, []string{"no matching manifest for", "no match for platform", "does not match the specified platform"}},
	{berth.PullLimited, []string{"toomanyrequests", "too many requests"}},
	{berth.PullUnauthorized, []string{"unauthorized", "denied", "authentication required", "no basic auth credentials", "403 forbidden"}},
	{berth.PullUnknown, []string{"manifest unknown", "name unknown", "not found", "no such image"}},
	{berth.PullUnreachable, []string{
		"connection refused", "no such host", "timeout", "timed out", "eof", "connection reset", "broken pipe", "no route to host", "network is unreachable",
		"certificate", "server gave http response", "tls:", "500 internal", "502 bad", "503 service", "504 gateway",
		"unavailable", "server misbehaving", "deadline exceeded",
	}},
}

// pullError tells why Docker could not ask a registry or pull. Errors:
// *berth.PullError; unavailable when Docker itself does not answer; ctx's cause.
func (d *Docker) pullError(ctx context.Context, image reference.Named, err error) error {
	var network net.Error

	broken, isBroken := errors.AsType[*streamError](err)
	if isBroken {
		err = broken.err
	}

	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) || client.IsErrConnectionFailed(err) || cerrdefs.IsUnavailable(err) || isBroken {
		return d.translate(ctx, err, "pulling image %q", reference.FamiliarString(image))
	}

	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
		return pullErrorOf(image, berth.PullUnreachable, "its registry "+reference.Domain(image)+" did not answer in time")
	}

	said, reason := strings.TrimPrefix(err.Error(), "Error response from daemon: "), pullReason(withoutNames(err.Error(), image))
	where := "its registry " + reference.Domain(image)

	switch reason {
	case berth.PullUnknown:
		said = where + " does not have it (" + said + ")"
	case berth.PullUnauthorized:
		said = where + " refuses it (" + said + ")"
	case berth.PullLimited:
		said = where + " lets this machine pull no more for now (" + said + ")"
	case berth.PullUnreachable:
		said = where + " does not answer (" + said + ")"
	default: // they say it themselves
	}

	return pullErrorOf(image, reason, said)
}

var (
	// pullNames are the names in a text that is looked at for words: addresses,
	// repositories, files and digests. A name may have any word in it.
	pullNames = regexp.MustCompile(`(?:https?://)?[a-z0-9][a-z0-9._:-]*(?:/[a-z0-9._%-]+)+|\b[a-z0-9]+:[0-9a-f]{32,}`)

	// pullRefused is a registry's status 401. Other numbers may have these digits: ports.
	pullRefused = regexp.MustCompile(`\b(?:http|status|status code):? 401\b`)
)

// pullReason reads why a pull failed from what Docker said.
func pullReason(text string) berth.PullReason {
	text = pullNames.ReplaceAllString(strings.ToLower(text), "")

	for _, known := range pullWords {
		if slices.ContainsFunc(known.words, func(w string) bool { return strings.Contains(text, w) }) ||
			known.reason == berth.PullUnauthorized && pullRefused.MatchString(text) {
			return known.reason
		}
	}

	return berth.PullFailed
}

// withoutNames is a text without the names of an image that have neither a slash nor a
// digest, which pullReason knows by these.
func withoutNames(text string, image reference.Named) string {
	return strings.NewReplacer(reference.FamiliarString(image), "", reference.Domain(image), "").Replace(text)
}

// pullErrorOf adds what to do about a reason.
func pullErrorOf(image reference.Named, reason berth.PullReason, detail string) *berth.PullError {
	where, ref := reference.Domain(image), reference.FamiliarString(image)

	fix := map[berth.PullReason]string{
		berth.PullUnknown: "check its name, tag or digest; where they are right, push it there: docker push " + reference.FamiliarName(image),
		berth.PullUnauthorized: "the registry wants a login, or the image does not exist: run `docker login " + where +
			"` as the user of `berth worker`, on that machine",
		berth.PullUnreachable: "Berth tries again; when that does not help, check that this works on that machine: docker pull " + ref,
		berth.PullLimited: "Berth tries again; a login has a higher limit: `docker login " + where +
			"` as the user of `berth worker`, on that machine",
		berth.PullSlow:     "Berth tries again; to wait for it yourself, type on that machine: docker pull " + ref,
		berth.PullPlatform: "build it for this kind of processor, such as: docker build --platform linux/amd64",
		berth.PullDiskFull: "free space on Docker's disk: docker image prune, docker system df",
	}[reason]

	fix = cmp.Or(fix, "try on that machine: docker pull "+ref)

	// A name without a registry may be of an image that is not built yet.
	local := reference.FamiliarName(image) != image.Name()
	if local && (reason == berth.PullUnknown || reason == berth.PullUnauthorized || reason == berth.PullUnreachable || reason == berth.PullLimited) {
		fix = "if it is an image of your own, type there: docker build -t " + ref + " . (in the directory of its Dockerfile); else " + fix
	}

	return &berth.PullError{Image: ref, Registry: where, Reason: reason, Detail: detail, Fix: fix}
}
