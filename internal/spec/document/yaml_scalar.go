package document

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

// plainLine reads an unquoted scalar up to the end of its line, a comment, a
// colon that ends a key or, in a flow collection, an indicator.
func (p *yamlParser) plainLine(flow bool) string {
	start := p.at

	for ; !p.end() && p.peek(0) != '\n'; p.at++ {
		c := p.peek(0)
		if c == ':' && (p.blankAt(1) || flow && strings.IndexByte(",[]{}", p.peek(1)) >= 0) ||
			c == '#' && p.at > start && (p.text[p.at-1] == ' ' || p.text[p.at-1] == '\t') ||
			flow && strings.IndexByte(",[]{}", c) >= 0 {
			break
		}
	}

	return strings.TrimRight(p.text[start:p.at], " \t")
}

// plainBlock reads an unquoted scalar with its continuation lines, which are
// indented deeper than parent.
func (p *yamlParser) plainBlock(parent int) (string, error) {
	var text strings.Builder

	text.WriteString(p.plainLine(false))

	for {
		if p.peek(0) == ':' && !p.end() {
			return "", p.fail("a second colon on the line; quote the value")
		}

		if p.peek(0) == '#' {
			return text.String(), nil // a comment ends the scalar
		}

		at, start := p.at, p.start
		breaks := p.breaks()

		if p.end() || p.column() <= parent || p.peek(0) == '#' || p.marker() || breaks == 0 {
			p.at, p.start = at, start

			return text.String(), nil
		}

		if p.peek(0) == '\t' {
			return "", p.fail("a tab cannot indent; use spaces")
		}

		fold(&text, breaks)
		text.WriteString(p.plainLine(false))
	}
}

// breaks passes line ends and the spaces that indent the next content, and
// counts the line ends.
func (p *yamlParser) breaks() int {
	count := 0

	for !p.end() {
		switch p.peek(0) {
		case '\n':
			count++
			p.at++
			p.start = p.at
		case ' ':
			p.at++
		default:
			return count
		}
	}

	return count
}

// textWriter is what a strings.Builder and a bytes.Buffer share.
type textWriter interface {
	io.ByteWriter
	io.StringWriter
}

// fold writes what line ends inside a flowing text mean: one is a space, more
// are one less.
func fold(text textWriter, breaks int) {
	if breaks == 1 {
		_ = text.WriteByte(' ')

		return
	}

	for range breaks - 1 {
		_ = text.WriteByte('\n')
	}
}

// quoted reads a single- or double-quoted scalar.
func (p *yamlParser) quoted() (string, error) {
	var text bytes.Buffer

	opening, quote := p.at, p.peek(0)
	stop := "\n" + string(quote)

	if quote == '"' {
		stop += `\`
	}

	for p.at++; ; {
		i := strings.IndexAny(p.text[p.at:], stop)
		if i < 0 {
			p.at = opening

			return "", p.fail("a quoted text never ends; close it with %c", quote)
		}

		text.WriteString(p.text[p.at : p.at+i])
		p.at += i

		switch c := p.peek(0); {
		case c == '\n':
			p.quotedBreak(&text)
		case c == '\\':
			if err := p.escape(&text); err != nil {
				return "", err
			}
		case quote == '\'' && p.at+1 < len(p.text) && p.peek(1) == '\'':
			text.WriteByte('\'')
			p.at += 2
		default:
			p.at++

			return text.String(), nil
		}
	}
}

// quotedBreak folds line ends inside quotes, with the blanks around them.
func (p *yamlParser) quotedBreak(text *bytes.Buffer) {
	line := p.text[p.start:p.at]
	blanks := len(line) - len(strings.TrimRight(line, " \t"))

	kept := len(bytes.TrimRight(text.Bytes(), " \t"))
	text.Truncate(max(kept, text.Len()-blanks))

	count := 0

	for !p.end() && strings.IndexByte(" \t\n", p.peek(0)) >= 0 {
		if p.peek(0) == '\n' {
			count++
			p.start = p.at + 1
		}

		p.at++
	}

	fold(text, count)
}

// escapes are the one-letter escapes of a double-quoted text.
var escapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

var hexDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

func (p *yamlParser) escape(text *bytes.Buffer) error {
	if p.at+1 >= len(p.text) {
		p.at++ // the caller reports that the text never ends

		return nil
	}

	c := p.peek(1)

	if c == '\n' { // the line continues; its indentation is not part of the text
		p.at += 2
		p.start = p.at

		for p.peek(0) == ' ' || p.peek(0) == '\t' {
			p.at++
		}

		return nil
	}

	if s, ok := escapes[c]; ok {
		text.WriteString(s)
		p.at += 2

		return nil
	}

	r, size, ok := p.hex(p.at)
	if !ok {
		return p.fail("\\%c is no escape of a double-quoted text; use single quotes to keep backslashes", c)
	}

	if utf16.IsSurrogate(r) {
		low, more, ok := p.hex(p.at + size)
		if r = utf16.DecodeRune(r, low); !ok || r == '\ufffd' {
			return p.fail("half of a surrogate pair")
		}

		size += more
	}

	text.WriteRune(r)
	p.at += size

	return nil
}

// hex reads \xHH, \uHHHH or \UHHHHHHHH at the offset.
func (p *yamlParser) hex(at int) (r rune, size int, ok bool) {
	if at+1 >= len(p.text) || p.text[at] != '\\' {
		return 0, 0, false
	}

	digits := hexDigits[p.text[at+1]]
	if digits == 0 || at+2+digits > len(p.text) {
		return 0, 0, false
	}

	v, err := strconv.ParseUint(p.text[at+2:at+2+digits], 16, 32)

	return rune(v), 2 + digits, err == nil && v <= 0x10ffff
}
