package spec

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/berthml/berth"
)

// Policy is an administrator's rules for every spec. The zero Policy has none.
type Policy struct {
	// AllowImages are the repositories that images may be of, as patterns of path.Match
	// with a name as Docker reads it: python is library/python of Docker's own registry. One that ends in
	// /** has all below it. Empty = any.
	AllowImages []string

	DenyNetwork bool // no trial may have a network
}

// Check returns the problem of the policy itself. Errors: invalid.
func (p Policy) Check() error {
	for _, pattern := range p.AllowImages {
		if _, err := path.Match(repositoryOf(pattern), ""); err != nil || pattern == "" || strings.ContainsAny(pattern, "@ ") {
			return berth.Errorf(berth.KindInvalid, "%q is no pattern of repositories such as registry.example/team/*", pattern)
		}
	}

	return nil
}

// CheckPolicy says where a valid spec breaks the policy.
func CheckPolicy(s berth.Spec, policy Policy) (problems []berth.Problem) {
	for at, image := range s.Images() {
		if !policy.allows(image) {
			problems = append(problems, problem(codeImageDenied, at, "images of %s are not allowed here; use one of: %s", repositoryOf(image), strings.Join(policy.AllowImages, ", ")))
		}
	}

	if policy.DenyNetwork && s.Network {
		problems = append(problems, problem(codeNetworkDenied, "/network", "trials have no network here; leave it out, and bake what they load into the image, or mount a data set"))
	}

	return problems
}

// imageID matches an image's ID, or the beginning of one, which Docker also accepts
// and which does not name the image's origin.
var imageID = regexp.MustCompile(`^(sha256:)?[0-9a-f]{1,64}$`)

func (p Policy) allows(image string) bool {
	if len(p.AllowImages) == 0 {
		return true
	}

	if imageID.MatchString(image) {
		return false
	}

	repository := repositoryOf(image)

	return slices.ContainsFunc(p.AllowImages, func(pattern string) bool {
		pattern, repository := repositoryOf(pattern), repository
		if above, all := strings.CutSuffix(pattern, "/**"); all {
			depth := strings.Count(above, "/") + 1
			parts := strings.Split(repository, "/")

			if len(parts) <= depth {
				return false
			}

			pattern, repository = above, strings.Join(parts[:depth], "/")
		}

		matches, err := path.Match(pattern, repository)

		return err == nil && matches
	})
}

// hub is the registry of names that say none.
var hub = func() string {
	named, err := reference.ParseNormalizedNamed("a")
	if err != nil {
		panic(err) // it is a name
	}

	return reference.Domain(named)
}()

// repositoryOf is the whole name of an image's repository, or of a pattern of some, with
// its registry and without tag and digest.
func repositoryOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}

	switch first, rest, below := strings.Cut(name, "/"); {
	case !below:
		return hub + "/library/" + name
	case first == "index."+hub: // as Docker once called it
		return repositoryOf(hub + "/" + rest)
	case first == hub && !strings.Contains(rest, "/") && rest != "**":
		return hub + "/library/" + rest
	case strings.ContainsAny(first, ".:") || first == "localhost":
		return name
	default:
		return hub + "/" + name
	}
}
