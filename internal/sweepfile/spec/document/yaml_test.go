package document_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// plain turns a tree into a YAML library's decoded value.
func plain(t *testing.T, n document.Node) any {
	t.Helper()

	switch n.Kind {
	case document.Null:
		return nil
	case document.Bool:
		return n.Text == "true"
	case document.Number:
		v, err := strconv.ParseFloat(n.Text, 64)
		require.NoError(t, err)

		return v
	case document.List:
		out := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			out = append(out, plain(t, item))
		}

		return out
	case document.Object:
		out := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			out[f.Name] = plain(t, f.Value)
		}

		return out
	default:
		return n.Text
	}
}

// floats makes all numbers of a library's result float64.
func floats(v any) any {
	switch x := v.(type) {
	case uint64:
		return float64(x)
	case int64:
		return float64(x)
	case int:
		return float64(x)
	case []any:
		for i := range x {
			x[i] = floats(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = floats(x[k])
		}
	}

	return v
}

// accepted are texts whose tree equals the library's value.
var accepted = []string{
	"a: 1\nb: x\n",
	"a:\n  b:\n    c: 1\n  d: 2\ne: 3\n",
	"a:\n- 1\n- 2\nb:\n  - 3\n",
	"- a: 1\n  b: 2\n- c: 3\n",
	"- - 1\n  - 2\n- - 3\n",
	"-\n  a: 1\n-\n  - 2\n",
	"a: {b: 1, c: [1, 2.5, x y], d: {}}\ne: []\n",
	"a: [\n  1,\n  2, # two\n  3,\n]\n",
	"a: {on: on, yes: yes, t: true, n: null, tilde: ~}\n",
	"# head\n\na: 1 # one\n# between\nb: \"# no\" # yes\n",
	"---\na: 1\n...\n",
	"a: 'it''s'\nb: \"tab\\t\\u00e9 \\x41\"\n",
	"a: plain\n  goes on\n  and on\nb: 1\n",
	"a: |\n  one\n    two\n\n  three\nb: >\n  one\n  two\n\n  three\n",
	"a: |-\n  one\n  two\n\nb: >-\n  one\n  two\n",
	"a: http://x.y/z:1\nb: a#b\nc: \"a: b\"\n",
	"command: [python3, train.py, \"--lr={{lr}}\", '--x={\"a\": 1}']\n",
	"a: -1\nb: +2\nc: .5\nd: 1.\ne: 0x10\nf: 0o17\n",
	"a: 12:30\nb: 2024-01-01x\nc: 1.2.3\nd: '007'\n",
	"\"quoted key\": 1\n'single': 2\n",
	"a:\nb: 1\n",
	"a: \"one\n  two\n\n  three\"\n",
	"a: [one\n  two, three]\n",
	"  a: 1\n  b: 2\n",
	"[1, 2]\n",
	"{\"a\":1,\"b\":[true,null]}\n",
	"text\n",
	"a:   1   \nb:    x   # c\n",
	"a:\n    - x: 1\n      y:\n        - 1\n    - z\n",
	"a: \"\"\nb: ''\n",
	"ünï: cödé\n",
	"a: x - y\n",
}

func TestYAMLMeansWhatTheLibraryDecodes(t *testing.T) {
	t.Parallel()

	for _, text := range accepted {
		root, err := document.ParseYAML([]byte(text))
		require.NoError(t, err, text)

		var want any
		require.NoError(t, yaml.Unmarshal([]byte(text), &want), text)
		require.Equal(t, floats(want), plain(t, *root), text)
	}
}

func TestYAMLValues(t *testing.T) {
	t.Parallel()

	tests := map[string]any{
		"":                               nil,
		"# only\n":                       nil,
		"a: on\nb: no\nc: y\n":           map[string]any{"a": "on", "b": "no", "c": "y"},
		"a: 1e-4\nb: -2.5E+3\n":          map[string]any{"a": 1e-4, "b": -2500.0},
		"a: 007\nb: 1_000\n":             map[string]any{"a": 7.0, "b": "1_000"},
		"a: |+\n  x\n\n\nb: 1\n":         map[string]any{"a": "x\n\n\n", "b": 1.0},
		"a: |2\n    x\n   y\n":           map[string]any{"a": "  x\n y\n"},
		"a: >\n  x\n   deep\n  y\n  z\n": map[string]any{"a": "x\n deep\ny z\n"},
		"a: \"x \\\n   y\"\n":            map[string]any{"a": "x y"},
		"1: a\ntrue: b\n":                map[string]any{"1": "a", "true": "b"},
		"a: 1\r\nb: 2\r\n":               map[string]any{"a": 1.0, "b": 2.0},
		"\ufeffa: 1\n":                   map[string]any{"a": 1.0},
		"a: |\n  x\n# comment\nb: 1\n":   map[string]any{"a": "x\n", "b": 1.0},
		"a:\t1\nb: 2\n":                  map[string]any{"a": 1.0, "b": 2.0},
		"{a: , b: 1}":                    map[string]any{"a": nil, "b": 1.0},
		"- |\n x\n- y\n":                 []any{"x\n", "y"},
		"a:\n\n  # c\n  b: 1\n":          map[string]any{"a": map[string]any{"b": 1.0}},
		"a: x #y\n":                      map[string]any{"a": "x"},
		"a: 'x\n\n  y'\n":                map[string]any{"a": "x\ny"},
		"\"a\": x\n\"b\" : y\n":          map[string]any{"a": "x", "b": "y"},
		"a: [\"x\"  , 'y', {k: [v]}]\n":  map[string]any{"a": []any{"x", "y", map[string]any{"k": []any{"v"}}}},
		"a: '{{lr}}'\nb: --x={{y}}\n":    map[string]any{"a": "{{lr}}", "b": "--x={{y}}"},
		"a: x\n...\n# end\n":             map[string]any{"a": "x"},
		"a: \"!x\"\n":                    map[string]any{"a": "!x"},
	}

	for text, want := range tests {
		root, err := document.ParseYAML([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, plain(t, *root), text)
	}
}

func TestYAMLRefuses(t *testing.T) {
	t.Parallel()

	tests := []struct {
		text, want string
		cause      error
	}{
		{"a: b: c\n", "line 1: mapping values are not allowed", document.ErrSyntax},
		{"a: 1\n  b: 2\n", "line 2: mapping values are not allowed", document.ErrSyntax},
		{"a: [1\n", "did not find expected ',' or ']'", document.ErrSyntax},
		{"a: \"x\n", "unexpected end of stream", document.ErrSyntax},
		{"a: &x 1\nb: *x\n", "line 1, column 4: anchors", document.ErrDepth},
		{"a: !!str 1\n", "line 1, column 4: tags are not accepted", document.ErrSyntax},
		{"{[a]: 1}\n", "line 1, column 2: a key must be a text", document.ErrSyntax},
		{"a: 1\n---\nb: 2\n", "line 2, column 1: a second document", document.ErrSyntax},
		{"a:\n\tb: 1\n", "line 2: the line begins with a tab", document.ErrSyntax},
		{"a:\n  b: 1\n c: 2\n", "did not find expected key", document.ErrSyntax},
		{"a: [1,,2]\n", "did not find expected node content", document.ErrSyntax},
		{"a: \"\\q\"\n", "unknown escape", document.ErrSyntax},
		{"a: \"\\ud800\"\n", "invalid Unicode", document.ErrSyntax},
		{"a: 1\nb\n", "line 2: could not find expected ':'", document.ErrSyntax},
		{"a: \xff\n", "line 1, column 4: the byte 0xff is not UTF-8", document.ErrEncoding},
		{strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested deeper than 32", document.ErrDepth},
		{strings.Repeat("[", 64<<10), "exceeded max depth", document.ErrDepth},
		{strings.Repeat("- ", 40), "nested deeper than 32", document.ErrDepth},
		{strings.Repeat("{a: ", 40) + strings.Repeat("}", 40), "nested deeper than 32", document.ErrDepth},
		{"a: [" + strings.Repeat("1,", 200_000) + "]", "more than 200000 values", document.ErrSize},
	}

	for _, test := range tests {
		_, err := document.ParseYAML([]byte(test.text))
		require.ErrorContains(t, err, test.want, test.text[:min(40, len(test.text))])
		require.ErrorIs(t, err, test.cause)
	}
}

// TestYAMLLines names the line that an editor shows, for any kind of line end.
func TestYAMLLines(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"a:\n  b: 1\n c: 2\n":                     "line 3: did not find expected key",
		"x: 1\na:\n  b: 1\n  c: 2\n d: 3\ne: 4\n": "line 5: did not find expected key",
		"a: 1\nb: [1,\n  2,,3]\nc: 4\n":           "line 3: did not find expected node content",
		"a: 1\ny: {a: 1\nz: 2\nb: 1\n":            "line 2: did not find expected ',' or '}'",
		"a: 1\nb: [1\n":                           "line 2: did not find expected ',' or ']'",
		"a: 1\n\nb: c: d\n":                       "line 3: mapping values are not allowed",
		"a: 1\nb: &x 1\n":                         "line 2, column 4: anchors",
		"t: \"a\u2028b\u0085c\"\na: 1\nb: &x 1\n": "line 3, column 4: anchors",
	} {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			for _, mark := range []string{"", "\ufeff"} {
				_, err := document.ParseYAML([]byte(mark + strings.ReplaceAll(text, "\n", end)))
				require.ErrorContains(t, err, want, "%q with %q", text, end)
			}
		}
	}
}

// TestOffsets finds every value where it is written.
func TestOffsets(t *testing.T) {
	t.Parallel()

	for _, end := range []string{"\n", "\r\n", "\r"} {
		for _, mark := range []string{"", "\ufeff"} {
			text := mark + strings.ReplaceAll("{\"one\": 1,\n\"list\": [2,\n3],\n\"ünï\": 4}\n", "\n", end)

			for name, parse := range map[string]func([]byte) (*document.Node, error){"JSON": document.ParseJSON, "YAML": document.ParseYAML} {
				root, err := parse([]byte(text))
				require.NoError(t, err, "%s %q", name, text)

				for i, at := range []int{root.Fields[0].Value.Offset, root.Fields[1].Value.Items[0].Offset, root.Fields[1].Value.Items[1].Offset, root.Fields[2].Value.Offset} {
					require.Equal(t, strconv.Itoa(i+1), strings.TrimPrefix(text, mark)[at:at+1], "%s %q", name, text)
				}

				require.Equal(t, 4, document.Line(text, root.Fields[2].Value.Offset), "%s %q", name, text)
			}
		}
	}
}

func FuzzYAML(f *testing.F) {
	for _, text := range accepted {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		root, err := document.ParseYAML([]byte(text))
		if err == nil {
			require.NotNil(t, root)
		}
	})
}
