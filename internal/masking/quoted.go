package masking

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// dialect is how a language writes characters into a text in quotes. Letters, digits and
// most signs of ASCII it leaves as they are.
type dialect struct {
	quote rune // is escaped; 0 = none is
	short map[rune]string
	// long writes a character that has no short form and is not kept.
	long func(to *strings.Builder, r rune)
	kept func(r rune) bool // as they are, besides the quote and the short ones
	raw  bool              // each byte is a character, as in Python's bytes
}

var (
	inC      = map[rune]string{'\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	inJSON   = map[rune]string{'\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}
	dialects = []dialect{
		{quote: '"', short: inJSON, long: unicodeEscape, kept: func(r rune) bool { return r >= ' ' }}, // JavaScript; Python without ensure_ascii
		{quote: '"', short: inJSON, long: unicodeEscape, kept: printableASCII},                        // Python's json.dumps
		{quote: '"', short: inJSON, long: unicodeEscape, kept: keptByGo(`<>&`)},                       // Go's json.Marshal
		{quote: '"', short: inJSON, long: unicodeEscape, kept: keptByGo("")},                          // its Encoder without SetEscapeHTML
		{quote: '"', short: inC, long: pythonEscape, kept: unicode.IsPrint},                           // Python's repr
		{quote: '\'', short: inC, long: pythonEscape, kept: unicode.IsPrint},                          // the same
		{short: inC, long: pythonEscape, kept: unicode.IsPrint},                                       // the same: the other quotes are around it
		{quote: '\'', short: inC, long: pythonEscape, kept: printableASCII},                           // Python's ascii
		{short: inC, long: pythonEscape, kept: printableASCII},                                        // the same
		{long: pythonEscape, kept: func(r rune) bool { return r <= unicode.MaxASCII }},                // its backslashreplace, of stderr
		{quote: '\'', short: inC, long: pythonEscape, kept: printableASCII, raw: true},                // Python's bytes
		{short: inC, long: pythonEscape, kept: printableASCII, raw: true},                             // the same
	}
)

// quoted are a value as programs print it in quotes, each form once.
func quoted(value []byte) [][]byte {
	var forms [][]byte

	seen := make(map[string]bool)

	for _, d := range dialects {
		form, ok := d.write(value)
		if ok && !seen[form] {
			seen[form] = true
			forms = append(forms, []byte(form))
		}
	}

	return forms
}

// quotedTwice are a value in quotes, and where these are in a text in quotes in turn, as a logger
// of JSON writes a message that holds JSON.
func quotedTwice(value []byte) [][]byte {
	forms := quoted(value)
	if len(value) > maxQuotedTwice {
		return forms
	}

	for _, form := range slices.Clone(forms) {
		if bytes.ContainsAny(form, `\"'`) {
			forms = append(forms, quoted(form)...)
		}
	}

	return forms
}

// write is false where a value is no text in this dialect.
func (d dialect) write(value []byte) (string, bool) {
	var text strings.Builder

	for len(value) > 0 {
		r, size := utf8.DecodeRune(value)
		if d.raw {
			r, size = rune(value[0]), 1
		} else if r == utf8.RuneError && size == 1 {
			return "", false
		}

		value = value[size:]

		switch short := d.short[r]; {
		case short != "":
			text.WriteString(short)
		case d.quote != 0 && r == d.quote:
			text.WriteByte('\\')
			text.WriteRune(r)
		case d.kept(r):
			text.WriteRune(r)
		default:
			d.long(&text, r)
		}
	}

	return text.String(), true
}

// unicodeEscape writes as JSON does: beyond 16 bits in two halves.
func unicodeEscape(to *strings.Builder, r rune) {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		fmt.Fprintf(to, `\u%04x\u%04x`, high, low)

		return
	}

	fmt.Fprintf(to, `\u%04x`, r)
}

// pythonEscape takes the shortest of its three escapes.
func pythonEscape(to *strings.Builder, r rune) {
	switch {
	case r <= 0xff:
		fmt.Fprintf(to, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(to, `\u%04x`, r)
	default:
		fmt.Fprintf(to, `\U%08x`, r)
	}
}

func printableASCII(r rune) bool { return ' ' <= r && r <= '~' }

// keptByGo are the characters that Go's JSON leaves as they are. It escapes the two ends
// of lines that JavaScript has and JSON has not.
func keptByGo(escaped string) func(rune) bool {
	return func(r rune) bool {
		return r >= ' ' && r != '\u2028' && r != '\u2029' && !strings.ContainsRune(escaped, r)
	}
}
