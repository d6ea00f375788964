package document

import (
	"encoding/json"
	"errors"
	"strings"
)

// ParseJSON reads one JSON value.
func ParseJSON(data []byte) (*Node, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}

	var raw json.RawMessage

	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(text), &raw); errors.As(err, &syntax) {
		cause := ErrSyntax
		if strings.Contains(syntax.Error(), "max depth") {
			cause = ErrDepth
		}

		return nil, fail(cause, text, int(syntax.Offset)-1, "%v", syntax)
	} else if err != nil {
		return nil, fail(ErrSyntax, text, 0, "%v", err)
	}

	b := &jsonBuilder{text: text}
	root := b.value(0)
	root.move(len(data) - len(text))

	return &root, b.err
}

// jsonBuilder builds the tree of a text that is known to be valid JSON.
type jsonBuilder struct {
	text  string
	at    int
	nodes int
	err   error // the first; the rest of the tree is then unfinished
}

// skip passes white space, and the comma or colon before the next value.
func (b *jsonBuilder) skip() {
	for b.at < len(b.text) {
		switch b.text[b.at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			b.at++
		default:
			return
		}
	}
}

func (b *jsonBuilder) value(depth int) Node {
	b.skip()

	n := Node{Offset: b.at}
	b.nodes++

	switch {
	case b.err != nil:
		return n
	case depth > MaxDepth:
		b.err = fail(ErrDepth, b.text, b.at, "nested deeper than %d", MaxDepth)

		return n
	case b.nodes > MaxNodes:
		b.err = fail(ErrSize, b.text, b.at, "more than %d values", MaxNodes)

		return n
	}

	switch b.text[b.at] {
	case '{':
		b.object(&n, depth)
	case '[':
		b.list(&n, depth)
	case '"':
		n.Kind, n.Text = String, b.quoted()
	default:
		b.word(&n)
	}

	return n
}

func (b *jsonBuilder) object(n *Node, depth int) {
	n.Kind = Object
	b.at++

	for b.skip(); b.err == nil && b.text[b.at] != '}'; b.skip() {
		field := Field{Offset: b.at}
		field.Name = b.quoted()
		field.Value = b.value(depth + 1)
		n.Fields = append(n.Fields, field)
	}

	b.at++
}

func (b *jsonBuilder) list(n *Node, depth int) {
	n.Kind = List
	b.at++

	for b.skip(); b.err == nil && b.text[b.at] != ']'; b.skip() {
		n.Items = append(n.Items, b.value(depth+1))
	}

	b.at++
}

func (b *jsonBuilder) quoted() string {
	start := b.at
	escaped := false

	for b.at++; b.text[b.at] != '"'; b.at++ {
		if b.text[b.at] == '\\' {
			escaped = true
			b.at++
		}
	}

	b.at++

	if !escaped {
		return b.text[start+1 : b.at-1]
	}

	var s string
	if err := json.Unmarshal([]byte(b.text[start:b.at]), &s); err != nil && b.err == nil {
		b.err = fail(ErrSyntax, b.text, start, "%v", err)
	}

	return s
}

func (b *jsonBuilder) word(n *Node) {
	end := strings.IndexAny(b.text[b.at:], ",]} \t\r\n")
	if end < 0 {
		end = len(b.text) - b.at
	}

	n.Text = b.text[b.at : b.at+end]
	b.at += end

	switch n.Text {
	case "null":
		n.Kind, n.Text = Null, ""
	case "true", "false":
		n.Kind = Bool
	default:
		n.Kind = Number
	}
}
