// Package masking hides the values of secrets in a program's output.
package masking

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth"
)

// Mask hides the values of an attempt's secrets in its output: each byte becomes a
// star, so that positions stay. Line breaks stay, too. nil hides nothing.
type Mask struct {
	Blind bool // the trial may have another value: all that it says is hidden

	forms  [256][][]byte     // by first byte, each once
	public []string          // names of metrics that the sweep file says; never hidden in names and texts
	begun  map[string][]byte // by stream: its end, where that begins a form
}

// New hides values, their parts, and the forms in which programs send them (formsOf). nil without values. The
// names are public: they are in the sweep file, or Berth takes them for one that is.
func New(values [][]byte, public ...string) *Mask {
	if len(values) == 0 {
		return nil
	}

	m := &Mask{public: public, begun: make(map[string][]byte)}
	seen := make(map[string]bool)

	for _, value := range values {
		for _, form := range formsOf(value) {
			if !seen[string(form)] {
				seen[string(form)] = true
				m.forms[form[0]] = append(m.forms[form[0]], form)
			}
		}
	}

	return m
}

// Chunk hides the values in a chunk of a log; it must get all chunks in order. Docker
// cuts a line after 16 KiB: where a chunk ends in the beginning of a value, Chunk
// hides that at once, and the rest of the value in the next chunk.
func (m *Mask) Chunk(c berth.LogChunk) berth.LogChunk {
	if m == nil {
		return c
	}

	if m.Blind {
		c.Data = slices.Clone(c.Data)
		star(c.Data)

		return c
	}

	before := m.begun[c.Stream]
	text := slices.Concat(before, c.Data)
	shown := slices.Clone(text)

	found, begun := m.find(text)
	for _, s := range found {
		star(shown[s.from:s.to])
	}

	// After the end of a line only a value of several lines goes on, which is hidden line
	// by line: short ones are not.
	if !bytes.HasSuffix(text, []byte("\n")) || len(begun) >= minMaskedPart {
		star(shown[len(text)-len(begun):])
	}

	m.begun[c.Stream] = begun
	c.Data = shown[len(before):]

	return c
}

// span is a part of a text, from the first byte to before the last.
type span struct{ from, to int }

// find returns where forms are in a text, and the longest end of it that begins one.
func (m *Mask) find(text []byte) (found []span, begun []byte) {
	for i, first := range text {
		rest := text[i:]

		for _, form := range m.forms[first] {
			switch {
			case bytes.HasPrefix(rest, form):
				found = append(found, span{i, i + len(form)})
			case begun == nil && bytes.HasPrefix(form, rest):
				begun = rest
			}
		}
	}

	return found, begun
}

// Text hides the values in a text of Berth's that quotes the trial.
func (m *Mask) Text(text string) string {
	if m == nil {
		return text
	}

	shown, open := []byte(text), m.publicIn(text)
	found, _ := m.find([]byte(text))

	for _, hidden := range found {
		if !slices.ContainsFunc(open, func(name span) bool { return name.from <= hidden.from && hidden.to <= name.to }) {
			star(shown[hidden.from:hidden.to])
		}
	}

	return string(shown)
}

// Quote hides the values in a text of the trial's, before it is cut, or is quoted in a
// text of Berth's: there a value may be unrecognizable.
func (m *Mask) Quote(text string) string {
	if m == nil || !m.Blind {
		return m.Text(text)
	}

	shown := []byte(text)
	star(shown)

	return string(shown)
}

// Name hides the values in the name of a metric.
func (m *Mask) Name(name string) string {
	if m == nil || slices.Contains(m.public, name) {
		return name
	}

	return m.Quote(name)
}

// publicIn is where a text has public names as words of their own.
func (m *Mask) publicIn(text string) []span {
	var found []span

	for _, name := range m.public {
		for from := 0; name != ""; {
			i := strings.Index(text[from:], name)
			if i < 0 {
				break
			}

			s := span{from + i, from + i + len(name)}
			if !endsInWord(text[:s.from]) && !beginsInWord(text[s.to:]) {
				found = append(found, s)
			}

			from = s.from + 1
		}
	}

	return found
}

func endsInWord(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)

	return inMetric(last)
}

func beginsInWord(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)

	return inMetric(first)
}

// inMetric reports whether a character may go on the name of a metric.
func inMetric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func star(text []byte) {
	for i, b := range text {
		if b != '\n' && b != '\r' {
			text[i] = '*'
		}
	}
}
