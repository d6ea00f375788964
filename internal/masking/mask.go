// Package masking hides the values of secrets in a program's output.
package masking

import (
	"bytes"
	"slices"

	"github.com/berthml/berth"
)

// Mask hides the values of an attempt's secrets in its output: each byte becomes a
// star, so that positions stay. Line breaks stay, too. nil hides nothing.
type Mask struct {
	Blind bool // the trial may have another value: all that it says is hidden

	forms  [256][][]byte     // by first byte, each once
	public []string          // names of metrics that the sweep file says; never hidden as names
	begun  map[string][]byte // by stream: its end, where that begins a form
}

// New hides values, their parts, and the forms in which programs send them (formsOf); nil without
// values. The names are public: they are in the sweep file, or stand for one that is.
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
	shown, begun := m.hide(text)

	// After the end of a line only a value of several lines goes on, which is hidden line
	// by line: short ones are not.
	if !bytes.HasSuffix(text, []byte("\n")) || len(begun) >= minMaskedPart {
		star(shown[len(text)-len(begun):])
	}

	m.begun[c.Stream] = begun
	c.Data = shown[len(before):]

	return c
}

// hide returns a text without the forms, and the longest end of it that begins one.
func (m *Mask) hide(text []byte) (shown, begun []byte) {
	shown = slices.Clone(text)

	for i, first := range text {
		rest := text[i:]

		for _, form := range m.forms[first] {
			switch {
			case bytes.HasPrefix(rest, form):
				star(shown[i : i+len(form)])
			case begun == nil && bytes.HasPrefix(form, rest):
				begun = rest
			}
		}
	}

	return shown, begun
}

// Text hides the values in a text of Berth's that quotes the trial.
func (m *Mask) Text(text string) string {
	if m == nil {
		return text
	}

	shown, _ := m.hide([]byte(text))

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

func star(text []byte) {
	for i, b := range text {
		if b != '\n' && b != '\r' {
			text[i] = '*'
		}
	}
}
