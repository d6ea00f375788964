package spec

import (
	"regexp"
	"strings"
)

// parameterName is also what {{…}} may hold.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// part is a piece of a command element: a literal, or the name of a
// parameter. Exactly one is set, except in the part of an empty element.
type part struct {
	literal string
	name    string
}

// parseTemplate splits an element at its placeholders. "{{" always begins one;
// "{" and "}" alone, and "}}" without a beginning, are ordinary characters, so
// that most JSON passes. broken is what followed a "{{" that is none.
func parseTemplate(element string) (parts []part, broken string) {
	for {
		literal, rest, ok := strings.Cut(element, "{{")
		if literal != "" {
			parts = append(parts, part{literal: literal})
		}

		if !ok {
			return parts, ""
		}

		name, after, ok := strings.Cut(rest, "}}")
		if name = strings.Trim(name, " "); !ok || !parameterName.MatchString(name) {
			return parts, "{{" + rest
		}

		parts = append(parts, part{name: name})
		element = after
	}
}

// placeholders are the parameters a command uses, in order, each once.
func placeholders(command []string) []string {
	var names []string

	seen := map[string]bool{}

	for _, element := range command {
		parts, _ := parseTemplate(element)
		for _, p := range parts {
			if p.name != "" && !seen[p.name] {
				seen[p.name] = true
				names = append(names, p.name)
			}
		}
	}

	return names
}
