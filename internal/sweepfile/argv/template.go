// Package argv makes the argument vector of a trial from the command of its
// sweep: {{name}} inside an element is replaced by the value of a parameter.
// No shell sees the result, so a value is always one element or a part of one.
//
//	template.go  elements and their placeholders
//	render.go    the argument vector of one trial
//	prove.go     what can be said of every trial before one is drawn
package argv

import (
	"regexp"
	"strings"
)

// parameterName is what {{…}} may hold: the name of a parameter.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// IsName reports whether a text may name a parameter.
func IsName(name string) bool { return parameterName.MatchString(name) }

// Part is a piece of a command element: a literal, or the name of a parameter.
// Exactly one is set.
type Part struct {
	Literal string
	Name    string
}

// Parse splits an element at its placeholders. "{{" always begins one; "{" and
// "}" alone, and "}}" without a beginning, are ordinary characters, so that
// most JSON passes. broken is the text from the first "{{" that begins none.
func Parse(element string) (parts []Part, broken string) {
	for {
		literal, rest, ok := strings.Cut(element, "{{")
		if literal != "" {
			parts = append(parts, Part{Literal: literal})
		}

		if !ok {
			return parts, ""
		}

		name, after, ok := strings.Cut(rest, "}}")
		if name = strings.Trim(name, " "); !ok || !IsName(name) {
			return parts, "{{" + rest
		}

		parts = append(parts, Part{Name: name})
		element = after
	}
}

// Names returns the parameters that texts use, in order of appearance, each once.
func Names(texts []string) []string {
	var names []string

	seen := map[string]bool{}

	for _, element := range texts {
		parts, _ := Parse(element)
		for _, p := range parts {
			if p.Name != "" && !seen[p.Name] {
				seen[p.Name] = true
				names = append(names, p.Name)
			}
		}
	}

	return names
}
