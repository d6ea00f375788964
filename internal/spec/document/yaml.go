package document

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ParseYAML reads one YAML document of the kind doc.go describes.
func ParseYAML(data []byte) (*Node, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}

	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}

	decoder := yaml.NewDecoder(strings.NewReader(text))
	b := &yamlBuilder{text: text, lines: lineStarts(text)}

	var document yaml.Node

	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // nothing but comments
		return &Node{Kind: Null}, nil
	case err != nil:
		return nil, b.syntax(err)
	}

	root := b.node(&document, 0)
	if b.err != nil {
		return nil, b.err
	}

	var second yaml.Node

	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return &root, nil
	case err != nil:
		return nil, b.syntax(err)
	default:
		return nil, fail(ErrSyntax, text, b.offset(&second), "a second document begins; one file holds one sweep")
	}
}

// yamlBuilder turns the library's nodes into ours.
type yamlBuilder struct {
	text  string
	lines []int // offset of each line's first byte
	last  place
	nodes int
	err   error // the first; the rest of the tree is then unfinished
}

func lineStarts(text string) []int {
	starts := []int{0}

	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}

	return starts
}

// place is a position in a line, in the library's count and in bytes.
type place struct {
	line, column, offset int
}

// offset is the byte at which a node begins. The library counts columns in
// characters. Nodes come in the order of the text, so counting goes on where
// it ended.
func (b *yamlBuilder) offset(n *yaml.Node) int {
	line := min(max(n.Line, 1), len(b.lines))
	at := b.last

	if at.line != line || at.column > n.Column {
		at = place{line: line, column: 1, offset: b.lines[line-1]}
	}

	for at.column < n.Column && at.offset < len(b.text) {
		_, size := utf8.DecodeRuneInString(b.text[at.offset:])
		at.offset += size
		at.column++
	}

	b.last = at

	return at.offset
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax gives the library's error its place.
func (b *yamlBuilder) syntax(err error) error {
	match := yamlLine.FindStringSubmatch(err.Error())
	if match == nil {
		return fail(ErrSyntax, b.text, 0, "%v", err)
	}

	cause := ErrSyntax
	if strings.Contains(match[2], "exceeded max depth") {
		cause = ErrDepth
	}

	line, _ := strconv.Atoi(match[1]) // empty = the first

	return &Error{Line: max(line, 1), Message: match[2] + "; check the indentation and the quotes up to here", cause: cause}
}

func (b *yamlBuilder) refuse(cause error, n *yaml.Node, format string, args ...any) Node {
	if b.err == nil {
		b.err = fail(cause, b.text, b.offset(n), format, args...)
	}

	return Node{}
}

// node builds one value and what is below it.
func (b *yamlBuilder) node(n *yaml.Node, depth int) Node {
	b.nodes++

	switch {
	case b.err != nil:
		return Node{}
	case n.Kind == yaml.DocumentNode:
		return b.node(n.Content[0], depth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return b.refuse(ErrDepth, n, "anchors and aliases are not accepted; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		return b.refuse(ErrSyntax, n, "tags are not accepted; quote the value to make it a text")
	case depth > MaxDepth:
		return b.refuse(ErrDepth, n, "nested deeper than %d", MaxDepth)
	case b.nodes > MaxNodes:
		return b.refuse(ErrSize, n, "more than %d values", MaxNodes)
	}

	out := Node{Offset: b.offset(n)}

	switch n.Kind {
	case yaml.MappingNode:
		b.object(&out, n, depth)
	case yaml.SequenceNode:
		out.Kind = List
		for _, item := range n.Content {
			out.Items = append(out.Items, b.node(item, depth+1))
		}
	default:
		b.scalar(&out, n)
	}

	return out
}

func (b *yamlBuilder) object(out *Node, n *yaml.Node, depth int) {
	out.Kind = Object

	for i := 0; i+1 < len(n.Content) && b.err == nil; i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			b.refuse(ErrSyntax, key, "a key must be a text")

			return
		}

		out.Fields = append(out.Fields, Field{Name: key.Value, Offset: b.offset(key), Value: b.node(n.Content[i+1], depth+1)})
	}
}

// scalar gives an unquoted scalar its kind by the core schema of YAML 1.2; the
// library would go by that of YAML 1.1, where 010 is eight.
func (b *yamlBuilder) scalar(out *Node, n *yaml.Node) {
	quoted := yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Style&quoted != 0 {
		out.Kind, out.Text = String, n.Value

		return
	}

	resolve(out, n.Value)
}
