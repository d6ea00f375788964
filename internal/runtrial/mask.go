package runtrial

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"

	"github.com/berthml/berth"
)

// minMaskedLine is the shortest part of a value that is hidden where the value is not
// there in whole: a line of it. Shorter lines, such as "{", are in too many texts.
const minMaskedLine = 8

// mask hides the values of an attempt's secrets in what it prints: each byte becomes a
// star, so that positions stay. Line breaks stay, too. nil hides nothing.
type mask struct {
	values [][]byte          // what is hidden
	blind  bool              // what the trial has is not known: everything is hidden
	begun  map[string][]byte // by stream: its end, where that begins a value
}

// newMask hides values, each of their lines, and what programs make of values to send
// them: base64, and the escapes of a URL. nil when there are none.
func newMask(values [][]byte) *mask {
	if len(values) == 0 {
		return nil
	}

	m := &mask{begun: make(map[string][]byte)}

	for _, value := range values {
		whole := bytes.TrimSpace(value) // programs trim what they read
		m.add(whole, berth.MinMaskedBytes)
		m.add([]byte(url.QueryEscape(string(whole))), minMaskedLine)

		for line := range bytes.Lines(whole) {
			m.add(bytes.TrimSpace(line), minMaskedLine)
		}

		for _, coded := range [][]byte{value, whole} {
			m.add([]byte(base64.RawStdEncoding.EncodeToString(coded)), minMaskedLine)
			m.add([]byte(base64.RawURLEncoding.EncodeToString(coded)), minMaskedLine)
		}
	}

	return m
}

func (m *mask) add(value []byte, least int) {
	if len(value) >= least && !slices.ContainsFunc(m.values, func(known []byte) bool { return bytes.Equal(known, value) }) {
		m.values = append(m.values, value)
	}
}

// chunk hides what is in a chunk of a log, and is told all of them in order. Docker
// cuts a line after 16 KiB: where a chunk ends in what begins a value, that is hidden
// at once, and the rest of the value in the next chunk.
func (m *mask) chunk(c berth.LogChunk) berth.LogChunk {
	if m == nil {
		return c
	}

	before := m.begun[c.Stream]
	text := slices.Concat(before, c.Data)
	hidden := slices.Clone(text)
	m.hide(text, hidden)

	whole := bytes.HasSuffix(text, []byte("\n"))

	begun := m.beginning(text, whole)
	if !whole || begun >= minMaskedLine {
		star(hidden[len(hidden)-begun:])
	}

	m.begun[c.Stream] = text[len(text)-begun:]
	c.Data = hidden[len(before):]

	return c
}

// text hides what is in a text of Berth's that quotes the trial.
func (m *mask) text(text string) string {
	if m == nil || m.blind { // what it quotes is hidden
		return text
	}

	hidden := []byte(text)
	m.hide([]byte(text), hidden)

	return string(hidden)
}

// hide puts stars into hidden, a copy of text.
func (m *mask) hide(text, hidden []byte) {
	if m.blind {
		star(hidden)

		return
	}

	for _, value := range m.values {
		for from := 0; ; {
			i := bytes.Index(text[from:], value)
			if i < 0 {
				break
			}

			star(hidden[from+i : from+i+len(value)])
			from += i + 1 // values may overlap themselves
		}
	}
}

// beginning is how many bytes at the end of a text begin a value. After the end of a
// line only a value of several lines goes on.
func (m *mask) beginning(text []byte, whole bool) int {
	longest := 0

	for _, value := range m.values {
		if whole && bytes.IndexByte(value, '\n') < 0 {
			continue
		}

		for n := min(len(value)-1, len(text)); n > longest; n-- {
			if bytes.HasSuffix(text, value[:n]) {
				longest = n

				break
			}
		}
	}

	return longest
}

func star(text []byte) {
	for i, b := range text {
		if b != '\n' && b != '\r' {
			text[i] = '*'
		}
	}
}
