package metrics

import "strings"

// gatheredBytes of lines are gathered into one record.
const gatheredBytes = 64 << 10

// openRecord is a record of several lines, as json.dump writes it with indent.
type openRecord struct {
	lines []string
	bytes int
	depth int
}

// gather makes one line of a record that goes over several. It returns the lines to read now:
// none while more of a record is to come, and each by itself where they turn out to be none.
func (r *Reader) gather(stream, line string) []string {
	g := r.open[stream]

	if g == nil && (r.pattern != nil || !strings.Contains(line, "{") || nesting(line) <= 0 || !strings.ContainsAny(line[len(line)-1:], ",{[(")) {
		return []string{line}
	}

	if g == nil {
		g = &openRecord{}
		r.open[stream] = g
	}

	g.lines, g.bytes = append(g.lines, line), g.bytes+len(line)
	g.depth += nesting(line)

	inside := len(g.lines) == 1 || line == "" || strings.ContainsAny(line[:1], `"'{}[]-0123456789`)
	if inside && g.depth > 0 && g.bytes <= gatheredBytes {
		return nil
	}

	delete(r.open, stream)

	whole := strings.Join(g.lines, " ")
	if _, _, _, record := objectsOf(whole); !record {
		return g.lines
	}

	return []string{whole}
}

// nesting is how many braces and brackets a line leaves open.
func nesting(line string) int {
	return strings.Count(line, "{") + strings.Count(line, "[") - strings.Count(line, "}") - strings.Count(line, "]")
}
