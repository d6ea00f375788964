package spec

import (
	"strconv"

	"github.com/agext/levenshtein"
)

// didYouMean asks for the nearest known name; "" without one.
func didYouMean(wrong string, known []string) string {
	if near := Nearest(wrong, known); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}

	return ""
}

// Nearest is the known name within two edits of a wrong one, or "".
func Nearest(wrong string, known []string) string {
	const reach = 2

	best, distance := "", reach+1

	for _, name := range known {
		if d := len(name) - len(wrong); d > reach || d < -reach {
			continue
		}

		if d := levenshtein.Distance(wrong, name, nil); d < distance && d < len(name) {
			best, distance = name, d
		}
	}

	return best
}
