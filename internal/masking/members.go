package masking

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
)

var (
	// maskedField is a line that gives a value a name, as files of environment variables,
	// INI, properties and YAML do.
	maskedField = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?["']?[\w.-]+["']?[ \t]*[=:][ \t]*(\S.*?)[ \t\r]*$`)
	// maskedLogin is the password of a machine in .netrc.
	maskedLogin = regexp.MustCompile(`\bpassword\s+(\S+)`)
	// maskedUser is the password in a URL.
	maskedUser = regexp.MustCompile(`://[^\s/:@]*:([^\s/@]+)@`)
)

// membersOf are the parts of a value that programs take out of it: the texts in JSON, the
// values of named fields, the password of a URL or in .netrc. Those shorter than
// minMaskedLine are left out, as they are in too many texts.
func membersOf(value []byte) [][]byte {
	var parts [][]byte

	add := func(part []byte) {
		if len(part) >= minMaskedLine && len(part) < len(value) {
			parts = append(parts, part)
		}
	}

	var document any
	if json.Unmarshal(value, &document) == nil {
		eachText(document, add)
	}

	for _, shape := range []*regexp.Regexp{maskedField, maskedLogin} {
		for _, found := range shape.FindAllSubmatch(value, -1) {
			add(bytes.Trim(found[1], `"',`))
		}
	}

	for _, found := range maskedUser.FindAllSubmatch(value, -1) {
		add(found[1])

		if plain, err := url.PathUnescape(string(found[1])); err == nil {
			add([]byte(plain))
		}
	}

	return parts
}

// eachText gives the texts in a JSON document, whatever they are in.
func eachText(document any, take func([]byte)) {
	switch v := document.(type) {
	case string:
		take([]byte(v))
	case []any:
		for _, item := range v {
			eachText(item, take)
		}
	case map[string]any:
		for _, item := range v {
			eachText(item, take)
		}
	}
}
