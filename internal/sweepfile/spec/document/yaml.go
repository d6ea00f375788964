package document

import (
	"errors"
	"io"
	"regexp"
	"sort"
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

	b := &yamlBuilder{text: text, lines: lineStarts(text, yamlBreaks)}
	reader := &lineReader{text: text, lines: b.lines}
	decoder := yaml.NewDecoder(reader)

	var document yaml.Node

	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // nothing but comments
		return &Node{Kind: Null}, nil
	case err != nil:
		return nil, b.syntax(err, reader.read)
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
		return nil, b.syntax(err, reader.read)
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

// lineReader hands out one line at a time, so that the lines read tell how far
// the library came.
type lineReader struct {
	text  string
	lines []int
	read  int // bytes handed out
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.read == len(r.text) {
		return 0, io.EOF
	}

	end := len(r.text)
	if next := sort.SearchInts(r.lines, r.read+1); next < len(r.lines) {
		end = r.lines[next]
	}

	n := copy(p, r.text[r.read:end])
	r.read += n

	return n, nil
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

// expected matches the errors of the library's parser, without its scanner's.
// It gives them the line before the one at which the enclosing list or object
// begins.
var expected = regexp.MustCompile(`^did not find expected (<document start>|<stream-start>|node content|key|'-' indicator|',' or '[]}]')$`)

// syntax gives the library's error its place; read is how many bytes it took.
func (b *yamlBuilder) syntax(err error, read int) error {
	match := yamlLine.FindStringSubmatch(err.Error())
	if match == nil {
		return fail(ErrSyntax, b.text, 0, "%v", err)
	}

	cause := ErrSyntax
	if strings.Contains(match[2], "exceeded max depth") {
		cause = ErrDepth
	}

	at := 0 // without a line it is the first

	if line, convErr := strconv.Atoi(match[1]); convErr == nil {
		at = b.lines[min(max(line, 1), len(b.lines))-1]
	}

	if expected.MatchString(match[2]) {
		at = b.lines[b.lastLine(match[2], read)-1]
	}

	message := match[2] + "; check the indentation and the quotes up to here"

	switch line, _, _ := strings.Cut(b.text[at:], "\n"); {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		message = "the line begins with a tab; indent it with spaces"
	case strings.Contains(line, "{{"):
		message = match[2] + "; " + quotePlaceholders
	}

	return &Error{Line: Line(b.text, at), Message: message, cause: cause}
}

// quotePlaceholders is the likeliest mend: in YAML, { begins an object.
const quotePlaceholders = `put an element with a placeholder in quotes, such as "--lr={{lr}}"`

// lastLine is the line, from 1, at which the parser gives up. Its scanner has
// read on, so lines are taken away while the text still fails alike, however it
// goes on.
func (b *yamlBuilder) lastLine(message string, read int) int {
	const most = 3 // the scanner is seldom further ahead; each try reads the text twice

	line := max(sort.SearchInts(b.lines, read), 1)

	for range most {
		for line > 1 && b.blank(line) {
			line--
		}

		if line == 1 || !b.fails(b.lines[line-1], message, "") || !b.fails(b.lines[line-1], message, "x: 1\n") {
			break
		}

		line--
	}

	return line
}

// blank says whether a line holds nothing, or a comment only.
func (b *yamlBuilder) blank(line int) bool {
	end := len(b.text)
	if line < len(b.lines) {
		end = b.lines[line]
	}

	text := strings.TrimSpace(b.text[b.lines[line-1]:end])

	return text == "" || text[0] == '#'
}

// fails says whether the text up to an offset, and then rest, has the error.
func (b *yamlBuilder) fails(end int, message, rest string) bool {
	var n yaml.Node

	err := yaml.NewDecoder(strings.NewReader(b.text[:end] + rest)).Decode(&n)

	return err != nil && strings.HasSuffix(err.Error(), message)
}

func (b *yamlBuilder) refuse(cause error, n *yaml.Node, format string, args ...any) Node {
	if b.err == nil {
		b.err = fail(cause, b.text, b.offset(n), format, args...)
	}

	return Node{}
}

// node builds one value and its children.
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
			hint := ""
			if key.Kind == yaml.MappingNode {
				hint = "; " + quotePlaceholders
			}

			b.refuse(ErrSyntax, key, "a key must be a text%s", hint)

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
