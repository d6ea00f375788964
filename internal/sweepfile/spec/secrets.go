package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// CheckSecrets reports the secrets that a valid spec mounts and that are not stored.
// names are the stored ones, sorted; seals reports whether the server could store
// one.
func CheckSecrets(s berth.Spec, names []string, seals bool) []berth.Problem {
	var out []berth.Problem

	known := "none is stored"
	if len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}

	for i, m := range s.Secrets {
		if slices.Contains(names, m.Name) {
			continue
		}

		next := "an administrator stores it with `berth secret set " + m.Name + "`"
		if !seals {
			next = "this server has no key to store one with: start it, and the workers, with --secrets-key FILE, which `berth secret key FILE` makes"
		}

		out = append(out, problem(codeSecret, fmt.Sprintf("/secrets/%d/name", i), "there is no secret %q (%s); %s", m.Name, known, next))
	}

	return out
}
