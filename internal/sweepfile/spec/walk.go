package spec

import (
	"math"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// maxWhole is the largest whole number that survives every JSON reader.
const maxWhole = 1 << 53

// walk finds faults of any document, at any place.
func (r *reader) walk(n *document.Node, at string) {
	switch n.Kind {
	case document.Object:
		r.walkObject(n, at)
	case document.List:
		for i := range n.Items {
			r.walk(&n.Items[i], at+"/"+strconv.Itoa(i))
		}
	case document.String:
		if c, bad := badCharacter(n.Text); bad {
			r.add(n.Offset, at, codeChar,
				"the text holds the character %U, which is invisible or reverses what follows; take it out", c)
		}

		if n.Text == berth.Placeholder {
			r.add(n.Offset, at, codeFillIn, "replace %s by a value: only the script's author knows it", berth.Placeholder)
		}
	case document.Number:
		r.walkNumber(n, at)
	case document.Null, document.Bool:
	}
}

func (r *reader) walkObject(n *document.Node, at string) {
	seen := make(map[string]bool, len(n.Fields))

	for i := range n.Fields {
		f := &n.Fields[i]
		inner := at + pointer(f.Name)

		if seen[f.Name] {
			r.add(f.Offset, inner, codeDupKey, "the key %q is here twice; keep one", shorten(f.Name))
		}

		seen[f.Name] = true

		if c, bad := badCharacter(f.Name); bad {
			r.add(f.Offset, at, codeChar, "a key holds the character %U; take it out", c)
		}

		r.walk(&f.Value, inner)
	}
}

func (r *reader) walkNumber(n *document.Node, at string) {
	v, err := strconv.ParseFloat(n.Text, 64)

	switch {
	case err != nil || math.IsInf(v, 0) || math.IsNaN(v):
		r.add(n.Offset, at, codeFloat, "%s is not a finite number that a float64 can hold", shorten(n.Text))
	case whole(n) && math.Abs(v) > maxWhole:
		r.add(n.Offset, at, codeRange,
			"%s is beyond 2^53, where whole numbers lose digits in JSON; use a smaller one or a text", shorten(n.Text))
	}
}

// whole says whether a number is written without point and exponent.
func whole(n *document.Node) bool { return !strings.ContainsAny(n.Text, ".eE") }

// badCharacter finds control characters, other than tab and line ends, and
// the marks that reorder text so that it reads differently than it is.
func badCharacter(text string) (rune, bool) {
	for _, c := range text {
		switch {
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f,
			c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069:
			return c, true
		}
	}

	return 0, false
}

// shorten cuts a text for a message.
func shorten(text string) string {
	const limit = 60

	if runes := []rune(text[:min(len(text), 4*limit)]); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}

	return text
}
