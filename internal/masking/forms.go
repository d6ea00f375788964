package masking

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/berthml/berth"
)

// minMaskedPart is the shortest part of a value that is hidden by itself: a line of it,
// a leaf of JSON. Shorter parts, such as "{", occur in too many texts.
const minMaskedPart = 8

// setting is a line that gives a name a value, as .env, INI and YAML have it, or the end
// of a line of .netrc.
var setting = regexp.MustCompile(`(?m)(?:^[ \t]*(?:export[ \t]+)?["']?[\w.-]+["']?[ \t]*[=:]|\bpassword[ \t])[ \t]*["']?(.*?)["']?,?[ \t]*$`)

// formsOf returns the forms in which programs print a value, its lines, and the parts
// of it that they read from JSON or settings. A value too short to be hidden has none.
func formsOf(value []byte) [][]byte {
	whole := bytes.TrimSpace(value)
	if len(whole) < berth.MinMaskedBytes {
		return nil
	}

	forms := encodings(whole)
	if !bytes.Equal(whole, value) {
		forms = append(forms, inBase64(value)...) // whose beginning is that of whole, but not its end
	}

	unix := bytes.ReplaceAll(whole, []byte("\r\n"), []byte("\n"))
	forms = append(forms, unix)

	var parts []string
	for line := range strings.Lines(string(unix)) {
		parts = append(parts, strings.TrimSpace(line))
	}

	for _, found := range setting.FindAllStringSubmatch(string(unix), -1) {
		parts = append(parts, found[1])
	}

	var document any
	if json.Unmarshal(whole, &document) == nil {
		parts = appendLeaves(parts, document)
	}

	for _, part := range parts {
		if len(part) >= minMaskedPart {
			forms = append(forms, encodings([]byte(part))...)
		}
	}

	return forms
}

// appendLeaves appends the texts in a JSON document.
func appendLeaves(parts []string, document any) []string {
	switch d := document.(type) {
	case string:
		parts = append(parts, d)
	case []any:
		for _, e := range d {
			parts = appendLeaves(parts, e)
		}
	case map[string]any:
		for _, e := range d {
			parts = appendLeaves(parts, e)
		}
	}

	return parts
}

// hexDigits are the escapes of a URL, which some programs write in lower case.
var hexDigits = regexp.MustCompile(`%[0-9A-F]{2}`)

// encodings are a text as it is, in JSON, in a URL and in base64.
func encodings(text []byte) [][]byte {
	forms := append(inBase64(text), text)

	if quoted, err := json.Marshal(string(text)); err == nil {
		forms = append(forms, quoted[1:len(quoted)-1])
	}

	query := url.QueryEscape(string(text)) // as Python's quote_plus
	plain := strings.ReplaceAll(query, "+", "%20")

	for _, escaped := range []string{query, plain, strings.ReplaceAll(plain, "%2F", "/"), url.PathEscape(string(text))} { // the third is Python's quote
		forms = append(forms, []byte(escaped), []byte(hexDigits.ReplaceAllStringFunc(escaped, strings.ToLower)))
	}

	return forms
}

// inBase64 are the base64 forms of a text, also within a longer one such as HTTP's
// "user:password": the characters that depend on no other byte, for each of the three
// offsets of the text.
func inBase64(text []byte) (forms [][]byte) {
	const group, bits = 3, 6 // bytes; of a character

	for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, []byte(code.EncodeToString(text)))

		for before := range group {
			coded := code.EncodeToString(append(make([]byte, before), text...))
			first, end := (8*before+bits-1)/bits, 8*(before+len(text))/bits

			if form := coded[first:end]; len(form) >= minMaskedPart {
				forms = append(forms, []byte(form))
			}
		}
	}

	return forms
}
