package spec

import (
	"strings"

	"github.com/berthml/berth"
)

// Policy is what an administrator asks of every spec. The zero Policy asks
// for nothing.
type Policy struct {
	RequireDigest bool // images are named by @sha256: only
}

// CheckPolicy says where a valid spec breaks the policy.
func CheckPolicy(s berth.Spec, policy Policy) []berth.Problem {
	if !policy.RequireDigest || strings.Contains(s.Image, "@sha256:") {
		return nil
	}

	return []berth.Problem{{
		Code: CodeImageDigest, Pointer: "/image",
		Message: "a tag can change its meaning, so images are named by digest here; write name@sha256:…, " +
			"as docker image inspect shows it",
	}}
}
