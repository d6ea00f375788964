package metrics

import "strings"

// gatheredBytes of lines are gathered into one record.
const gatheredBytes = 64 << 10

// gather makes one line of a record that goes over several, as json.dump writes it with indent.
// It returns the lines to read now: none while more of a record is to come, and each by itself
// where they turn out to be none.
func (r *Reader) gather(stream, line string) []string {
	lines := r.open[stream]
	opens := r.pattern == nil && strings.Contains(line, "{") && strings.ContainsAny(line[len(line)-1:], ",{[(") && nesting(line) > 0

	if lines == nil && !opens {
		return []string{line}
	}

	inside := lines == nil || line == "" || strings.ContainsAny(line[:1], `"'{}[]-0123456789`)
	lines = append(lines, line)
	whole := strings.Join(lines, " ")

	if inside && nesting(whole) > 0 && len(whole) <= gatheredBytes {
		r.open[stream] = lines

		return nil
	}

	delete(r.open, stream)

	if _, _, _, record := objectsOf(whole); !record {
		return lines
	}

	return []string{whole}
}

// nesting is how many braces and brackets a text leaves open.
func nesting(text string) int {
	return strings.Count(text, "{") + strings.Count(text, "[") - strings.Count(text, "}") - strings.Count(text, "]")
}
