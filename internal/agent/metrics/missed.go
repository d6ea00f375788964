package metrics

import (
	"fmt"
	"regexp"
	"strings"
)

// missedBytes of a line are shown.
const missedBytes = 200

// Missed counts the lines that have the words of the objective and a number, and that Berth
// cannot read.
type Missed struct {
	Times   int
	Values  int    // of them in which its value cannot be read as a number
	Value   string // the first of these
	First   string // the first of them
	Pattern string // a metrics.pattern that reads it; empty = there is none
}

// Note says which values could not be read; empty when all were. What it quotes of the program
// goes through hide first.
func (m *Missed) Note(hide func(string) string) string {
	const what = "of its objective could not be read and did not count"

	switch m.Values {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("a value %s: %q; write numbers such as 0.91", what, clip(hide(m.Value)))
	default:
		return fmt.Sprintf("%d values %s, such as %q; write numbers such as 0.91", m.Values, what, clip(hide(m.Value)))
	}
}

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), missedBytes)], "") }

var spaces = regexp.MustCompile(`\s+`)

func (m *Missed) add(t target, line string) {
	start, from := t.span(line)
	if from == 0 {
		return
	}

	digits := strings.IndexAny(line[from:], "0123456789")
	if digits < 0 || aimOf(line) != "" && m.Times > 0 {
		return
	}

	if m.Times++; m.Times > 1 {
		return
	}

	m.First = line

	between := line[from : from+digits]
	if sign := strings.TrimRight(between, "+-."); len(between) > 0 && len(between) < 40 {
		m.Pattern = `(?P<name>` + loosely(line[start:from]) + `)` + loosely(sign) + `(?P<value>[-+.\deE]+)`
	}
}

// loosely is a pattern of a text in which spaces and numbers may be others.
func loosely(text string) string {
	return spaces.ReplaceAllString(regexp.QuoteMeta(text), `\s+`)
}

// in returns where in a line the words of the objective's name end; 0 = they are not all
// there, or there is none.
func (t target) in(line string) (end int) {
	_, end = t.span(line)

	return end
}

// span returns where in a line the words of the objective's name begin and end.
func (t target) span(line string) (from, to int) {
	lower := strings.ToLower(line)
	if t.base == "" || len(lower) != len(line) {
		return 0, 0
	}

	from = len(line)

	for word := range t.own {
		begin, end := wordIn(lower, word)
		if end == 0 {
			return 0, 0
		}

		from, to = min(from, begin), max(to, end)
	}

	return from, to
}

// wordIn finds a word in a text in lower case; of a split any form.
func wordIn(lower, word string) (from, to int) {
	split := splits[word]
	if split != "" {
		word = split
	}

	for at := 0; ; at = to {
		next := strings.Index(lower[at:], word)
		if next < 0 {
			return 0, 0
		}

		from, to = at+next, at+next+len(word)
		for split != "" && to < len(lower) && isSmall(lower[to]) { // validation
			to++
		}

		if (from == 0 || !isSmall(lower[from-1])) && (to == len(lower) || !isSmall(lower[to])) {
			return from, to
		}
	}
}

func isSmall(b byte) bool { return b >= 'a' && b <= 'z' }
