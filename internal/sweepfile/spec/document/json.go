package document

import (
	"encoding/json"
	"errors"
	"strconv"
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

	b := &jsonBuilder{text: text, decoder: json.NewDecoder(strings.NewReader(text))}
	b.decoder.UseNumber()

	root := b.value(0)

	return &root, b.err
}

// jsonBuilder builds the tree of a text that is known to be valid JSON.
type jsonBuilder struct {
	text    string
	decoder *json.Decoder
	nodes   int
	err     error // the first; the rest of the tree is then unfinished
}

// next is where the next value begins, behind white space, a comma or a colon.
func (b *jsonBuilder) next() int {
	at := int(b.decoder.InputOffset())

	return len(b.text) - len(strings.TrimLeft(b.text[at:], " \t\r\n,:"))
}

func (b *jsonBuilder) value(depth int) Node {
	n := Node{Offset: b.next()}
	b.nodes++

	switch {
	case depth > MaxDepth:
		b.err = fail(ErrDepth, b.text, n.Offset, "nested deeper than %d", MaxDepth)
	case b.nodes > MaxNodes:
		b.err = fail(ErrSize, b.text, n.Offset, "more than %d values", MaxNodes)
	}

	if b.err != nil {
		return n
	}

	switch v := b.token().(type) {
	case json.Delim:
		b.inside(&n, v, depth+1)
	case string:
		n.Kind, n.Text = String, v
	case json.Number:
		n.Kind, n.Text = Number, v.String()
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(v)
	}

	return n
}

// inside reads what a list or an object holds, and its end.
func (b *jsonBuilder) inside(n *Node, begin json.Delim, depth int) {
	for n.Kind = List; begin == '[' && b.err == nil && b.decoder.More(); {
		n.Items = append(n.Items, b.value(depth))
	}

	if begin == '{' {
		n.Kind = Object
	}

	for begin == '{' && b.err == nil && b.decoder.More() {
		field := Field{Offset: b.next()}
		field.Name, _ = b.token().(string) // as JSON has it
		field.Value = b.value(depth)
		n.Fields = append(n.Fields, field)
	}

	if b.err == nil {
		b.token()
	}
}

func (b *jsonBuilder) token() json.Token {
	token, err := b.decoder.Token()
	if err != nil && b.err == nil {
		b.err = fail(ErrSyntax, b.text, int(b.decoder.InputOffset()), "%v", err)
	}

	return token
}
