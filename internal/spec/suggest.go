package spec

// Nearest is the known name within two edits of a wrong one, or "".
func Nearest(wrong string, known []string) string {
	const reach = 2

	best, distance := "", reach+1

	for _, name := range known {
		if d := len(name) - len(wrong); d > reach || d < -reach {
			continue
		}

		if d := edits(wrong, name); d < distance && d < len(name) {
			best, distance = name, d
		}
	}

	return best
}

// edits is the Levenshtein distance in bytes; both texts are short.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}

			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(b)]
}
