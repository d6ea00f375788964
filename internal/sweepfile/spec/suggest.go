package spec

import "github.com/agext/levenshtein"

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
