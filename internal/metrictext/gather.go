package metrictext

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth/internal/failure"
)

const (
	gatheredBytes = 256 << 10 // of lines are gathered into one record
	printedBytes  = 64 << 10  // of what is printed, whose points wait meanwhile
)

// inRecord is a line in a record of several: a field or a text, a number, a word of JSON or
// of Python, or brackets only.
var inRecord = regexp.MustCompile(`^(?:["'].*|[+-]?[\d.][\d.eE+-]*,?|(?:null|true|false|NaN|-?Infinity|None|True|False|nan|-?inf),?|[^\pL\d]*)$`)

// opening is the brace that begins an object, alone or behind words.
var opening = regexp.MustCompile(`(?:^|[\s:=(|\]>-])\{`)

// PartLine is the beginning of a line that its stream has not ended.
type PartLine struct {
	Data []byte    `json:"data"`          // of what was not read yet
	At   time.Time `json:"at"`            // of its newest part
	Bar  string    `json:"bar,omitempty"` // where a progress bar was in what was read

	Depth int `json:"depth,omitempty"` // of braces and brackets that are open: it is a record of several lines
}

// Gatherer makes one line of a record that goes over several, as json.dump writes it with
// indent. Lines that turn out to be none are taken one by one.
type Gatherer struct {
	parser *LineParser
	lines  [][]byte
	bytes  int
	depth  int // of braces and brackets that are open
}

// Gatherer gathers records for the parser.
func (l *LineParser) Gatherer() *Gatherer { return &Gatherer{parser: l} }

// knows reports whether a record tells of the objective, or, where there is none, of the best: then its lines tell
// less, as each has lost its split, its depth and the words before the record.
func (l *LineParser) knows(record string) bool {
	if l.Objective == "" {
		best, _ := bestLine(record)

		return best != ""
	}

	records, unread := *l.Records, l.Unread
	defer func() { *l.Records, l.Unread = records, unread }()

	found, _ := l.find(record)

	return l.Unread != unread || slices.ContainsFunc(found, func(f sighting) bool {
		return l.isObjective(f) || failure.PlainName(f.name.bare) == failure.PlainName(l.Objective)
	})
}

// Add takes in a line, and passes on what is whole.
func (g *Gatherer) Add(line []byte, take func([]byte)) {
	text := Shown(string(line))
	depth := nesting(text)

	if len(g.lines) > 0 && !indented(line) && strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") && depth == 0 { // a record of its own
		g.Release(take)
	}

	if len(g.lines) == 0 && !beginsRecord(text, depth) {
		take(line)

		return
	}

	g.lines = append(g.lines, bytes.TrimRight(bytes.Clone(line), "\r"))
	g.bytes += len(line)
	g.depth += depth

	if g.depth > 0 && g.bytes <= gatheredBytes {
		return
	}

	record := bytes.Join(g.lines, []byte(" "))
	shown := Shown(string(record))
	objects, _, _, found := objectsOf(plain(shown))

	if behindWords := !strings.HasPrefix(shown, "{"); g.depth != 0 || !found || behindWords && slices.ContainsFunc(objects, hidesMetrics) && !g.parser.knows(shown) {
		g.Release(take)

		return
	}

	g.Forget()
	take(record)
}

// hidesMetrics reports whether an object has metrics where find does not know them: in an
// object that is of no split, deeper, in a list, or beside a type of its own. Their own lines
// tell more, unless the record knows the objective.
func hidesMetrics(object map[string]any) bool {
	_, typed := object["type"].(string)
	if _, nested := object["metrics"].(map[string]any); typed && nested {
		return true
	}

	for name, value := range object {
		inner, nested := value.(map[string]any)
		if !nested {
			if holdsObject(value) {
				return true
			}

			continue
		}

		of, _ := withoutReport(name)
		if name != "metrics" && !splitWord.MatchString(of) && !isQuality(of) {
			return true
		}

		for _, part := range inner {
			if holdsObject(part) {
				return true
			}
		}
	}

	return false
}

// holdsObject reports whether a decoded value is an object, or a list with one in it.
func holdsObject(value any) bool {
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, holdsObject)
	}

	_, ok := value.(map[string]any)

	return ok
}

// beginsRecord reports whether a line is the first of a record of several. Words may be before
// that: "Results: {", "INFO:root:{".
func beginsRecord(text string, depth int) bool {
	return depth > 0 && strings.ContainsAny(text[len(text)-1:], ",{[(") && opening.MatchString(text)
}

// indented reports whether a line is so, as what is inside a record is.
func indented(line []byte) bool { return len(line) > 0 && (line[0] == ' ' || line[0] == '\t') }

// Open reports whether what a stream printed, up to the end of a line, is the beginning of
// a record that goes over several lines.
func (p *PartLine) Open() bool {
	whole := bytes.TrimSuffix(p.Data, []byte("\n"))
	line := whole[bytes.LastIndexByte(whole, '\n')+1:]
	text := Shown(string(line))
	depth := nesting(text)

	inside := inRecord.MatchString(text) || indented(line) && strings.HasPrefix(text, "{")
	if p.Depth == 0 && !beginsRecord(text, depth) || p.Depth > 0 && !inside {
		return false
	}

	p.Depth += depth

	return p.Depth > 0 && len(p.Data) <= printedBytes
}

// Release passes on what was gathered, line by line. Behind words that tell of the best, each of them does.
func (g *Gatherer) Release(take func([]byte)) {
	lines := g.lines
	g.Forget()

	if len(lines) > 1 {
		g.parser.best, _ = bestLine(Shown(string(lines[0])))
		defer func() { g.parser.best = "" }()
	}

	for _, line := range lines {
		take(line)
	}
}

// Forget leaves out what was gathered.
func (g *Gatherer) Forget() { g.lines, g.bytes, g.depth = nil, 0, 0 }

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
