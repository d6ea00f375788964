package runtrial

import (
	"bytes"
	"strings"
)

// gatheredBytes of lines are gathered into one record.
const gatheredBytes = 256 << 10

// gatherer makes one line of a record that goes over several, as json.dump writes it with
// indent. Lines that turn out to be none are taken one by one.
type gatherer struct {
	lines [][]byte
	bytes int
	depth int // of braces and brackets that are open
}

// add takes in a line, and passes on what is whole.
func (g *gatherer) add(line []byte, take func([]byte)) {
	text := shown(string(line))
	depth := nesting(text)

	if len(g.lines) > 0 && strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") && depth == 0 { // a record of its own
		g.release(take)
	}

	begins := depth > 0 && strings.HasPrefix(text, "{") && strings.ContainsAny(text[len(text)-1:], ",{[(")
	if len(g.lines) == 0 && !begins {
		take(line)

		return
	}

	g.lines = append(g.lines, bytes.Clone(line))
	g.bytes += len(line)
	g.depth += depth

	if g.depth > 0 && g.bytes <= gatheredBytes {
		return
	}

	record := bytes.Join(g.lines, []byte(" "))
	if _, _, _, found := objectsOf(plain(shown(string(record)))); g.depth != 0 || !found {
		g.release(take)

		return
	}

	*g = gatherer{}

	take(record)
}

// release passes on what was gathered, line by line.
func (g *gatherer) release(take func([]byte)) {
	lines := g.lines
	*g = gatherer{}

	for _, line := range lines {
		take(line)
	}
}

// nesting is how many braces and brackets a line leaves open; below zero it closes some.
func nesting(text string) (depth int) {
	outside := quotedText.ReplaceAllString(text, "")
	outside = pythonText.ReplaceAllString(outside, "")

	for _, r := range outside {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}

	return depth
}
