package masking

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/berthml/berth"
)

const (
	// minMaskedLine is the shortest part of a value that is hidden where the value is not
	// there in whole: a line of it. Shorter lines, such as "{", are in too many texts.
	minMaskedLine = 8
	// maxEscaped is the longest value whose escapes are hidden: servers take no longer
	// URL. The lines of a longer one are hidden, as they are.
	maxEscaped = 4 << 10
	// maxQuotedTwice is the longest value that is hidden where a text in quotes is in another
	// one: what is in quotes there is a key or a password.
	maxQuotedTwice = 1 << 10
)

// unescaped are the characters, beside letters and digits, that programs leave as they
// are in a URL.
var unescaped = []string{
	"-_.~",                 // RFC 3986, Go's QueryEscape, Python's quote_plus
	"-_.~/",                // Python's quote
	"-_.!~*'()",            // JavaScript's encodeURIComponent
	"-_.!~*'();/?:@&=+$,#", // its encodeURI
	"-_.~$&+=:@",           // Go's PathEscape
	"-._~!$'()*,?/:@",      // yarl's query, of aiohttp
	"-_.*",                 // Java's URLEncoder, forms of browsers
	"-_.",                  // PHP's urlencode
}

// base64Widths are the lengths of lines: of mail (RFC 2045), Python's encodebytes and
// base64(1), and of PEM (RFC 7468).
var base64Widths = []int{76, 64}

// formsOf are what programs make of a value and of its parts. A value that is too short
// to be hidden has none.
func formsOf(value []byte) [][]byte {
	whole := bytes.TrimSpace(value)
	if len(whole) < berth.MinMaskedBytes {
		return nil
	}

	forms := wholeForms(value)

	if len(whole) <= maxEscaped {
		for _, part := range membersOf(whole) {
			forms = append(forms, wholeForms(part)...)
		}
	}

	return forms
}

// wholeForms are what programs make of a value: they trim it, end its lines by LF, quote
// it, and send it in base64 or in a URL.
func wholeForms(value []byte) [][]byte {
	whole := bytes.TrimSpace(value)

	lines := bytes.ReplaceAll(bytes.ReplaceAll(value, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	forms := [][]byte{whole}

	for line := range bytes.Lines(whole) {
		forms = appendLong(forms, bytes.TrimSpace(line))
	}

	for _, v := range [][]byte{whole, bytes.TrimSpace(lines)} {
		forms = append(forms, v)

		if len(v) <= maxEscaped {
			forms = append(append(forms, escapes(v)...), quotedTwice(v)...)
		}
	}

	for _, v := range [][]byte{value, whole, lines, bytes.TrimSpace(lines)} {
		coded := base64.RawStdEncoding.EncodeToString(v)
		forms = append(forms, []byte(coded), []byte(base64.RawURLEncoding.EncodeToString(v)))
		forms = append(forms, within(v, base64.RawStdEncoding)...)
		forms = append(forms, within(v, base64.RawURLEncoding)...)

		for _, width := range base64Widths {
			for rest := coded; len(coded) > width && rest != ""; rest = rest[min(width, len(rest)):] {
				forms = appendLong(forms, []byte(rest[:min(width, len(rest))]))
			}
		}
	}

	return forms
}

// within are what base64 makes of a value in a longer text, such as the password in
// "user:password": the characters that no other byte has a bit in, by the place where
// the value begins in three bytes.
func within(value []byte, code *base64.Encoding) [][]byte {
	const group, bits = 3, 6 // bytes; of a character

	var forms [][]byte

	for before := range group {
		text := code.EncodeToString(append(make([]byte, before), value...))
		first, end := (8*before+bits-1)/bits, 8*(before+len(value))/bits
		forms = appendLong(forms, []byte(text[first:end]))
	}

	return forms
}

func appendLong(forms [][]byte, line []byte) [][]byte {
	if len(line) < minMaskedLine {
		return forms
	}

	return append(forms, line)
}

// escapes are a value as programs write it into a URL, each form once.
func escapes(value []byte) [][]byte {
	var forms [][]byte

	seen := make(map[string]bool)

	for _, kept := range unescaped {
		for _, hex := range []string{"%%%02X", "%%%02x"} {
			for _, blank := range []string{"%20", "+"} {
				form := escape(value, kept, hex, blank)
				if !seen[form] {
					seen[form] = true
					forms = append(forms, []byte(form))
				}
			}
		}
	}

	return forms
}

func escape(value []byte, kept, hex, blank string) string {
	var text strings.Builder

	for _, b := range value {
		switch {
		case b == ' ':
			text.WriteString(blank)
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte(kept, b) >= 0:
			text.WriteByte(b)
		default:
			fmt.Fprintf(&text, hex, b)
		}
	}

	return text.String()
}
