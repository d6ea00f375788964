package spec

import (
	"regexp"
	"strings"
)

// The grammar of github.com/distribution/reference.
var (
	imageHost      = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?$`)
	imageComponent = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)
	imageTag       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest    = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
)

func (c *checker) checkImage() {
	if problem := imageProblem(c.spec.Image); problem != "" {
		c.add("/image", codeImage, "%s", problem)
	}
}

// imageProblem returns the problem of a reference [host/]path[:tag][@digest].
func imageProblem(image string) string {
	if image == "" {
		return "name the image to run, such as tensorflow/tensorflow:2.19.0-gpu"
	}

	name, digest, pinned := strings.Cut(image, "@")
	if pinned && !imageDigest.MatchString(digest) {
		return "the digest must be sha256: and 64 of 0-9 a-f; copy it from docker image inspect"
	}

	path := name
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		path = name[:i]
		if !imageTag.MatchString(name[i+1:]) {
			return "the tag after the colon has 1 to 128 letters, digits and . _ - and begins with a letter, digit or _"
		}
	}

	if len(path) > 255 {
		return "the name without its tag has at most 255 characters"
	}

	components := strings.Split(path, "/")
	if first := components[0]; len(components) > 1 && (strings.ContainsAny(first, ".:") || first == "localhost") {
		if !imageHost.MatchString(first) {
			return "the registry " + shorten(first) + " is no host name"
		}

		components = components[1:]
	}

	for _, component := range components {
		switch {
		case imageComponent.MatchString(component):
		case imageComponent.MatchString(strings.ToLower(component)):
			return "the name must be in lower case: " + shorten(strings.ToLower(path))
		default:
			return "write [registry/]name[:tag][@sha256:digest], such as tensorflow/tensorflow:2.19.0-gpu"
		}
	}

	return ""
}
