package document

import "strings"

// flow reads [a, b] or {a: b}, over as many lines as it takes.
func (p *yamlParser) flow() (Node, error) {
	n := Node{Kind: List, Offset: p.at}
	closing := byte(']')

	if p.peek(0) == '{' {
		n.Kind, closing = Object, '}'
	}

	opening := p.at
	p.at++

	for {
		if err := p.skip(); err != nil {
			return n, err
		}

		if p.end() {
			p.at = opening

			return n, p.fail("never closed with %q", closing)
		}

		if p.peek(0) == closing {
			p.at++

			return n, nil
		}

		if err := p.flowEntry(&n); err != nil {
			return n, err
		}

		if err := p.skip(); err != nil {
			return n, err
		}

		switch {
		case p.end() || p.peek(0) == closing:
		case p.peek(0) == ',':
			p.at++
		case p.peek(0) == ':' && n.Kind == List:
			return n, p.fail("a key inside a list; write {key: value}")
		default:
			return n, p.fail("expected a comma or %q", closing)
		}
	}
}

func (p *yamlParser) flowEntry(n *Node) error {
	if n.Kind == List {
		item, err := p.flowValue()
		n.Items = append(n.Items, item)

		return err
	}

	field := Field{Offset: p.at}

	key, err := p.flowValue()
	if err != nil {
		return err
	}

	if key.Kind == List || key.Kind == Object {
		p.at = field.Offset

		return p.fail("a key must be a text")
	}

	field.Name = strings.TrimSpace(p.text[field.Offset:p.at])
	if c := p.text[field.Offset]; c == '"' || c == '\'' {
		field.Name = key.Text
	}

	if err := p.skip(); err != nil {
		return err
	}

	if p.peek(0) != ':' {
		return p.fail("expected a colon and a space after the key %q", field.Name)
	}

	p.at++

	if err := p.skip(); err != nil {
		return err
	}

	field.Value = Node{Offset: p.at}
	if p.peek(0) != ',' && p.peek(0) != '}' && !p.end() {
		field.Value, err = p.flowValue()
	}

	n.Fields = append(n.Fields, field)

	return err
}

func (p *yamlParser) flowValue() (Node, error) {
	n := Node{Offset: p.at}

	if err := p.enter(); err != nil {
		return n, err
	}
	defer p.leave()

	if err := p.unsupported(); err != nil {
		return n, err
	}

	switch c := p.peek(0); {
	case c == '[' || c == '{':
		return p.flow()
	case c == '"' || c == '\'':
		text, err := p.quoted()
		n.Kind, n.Text = String, text

		return n, err
	case c == '|' || c == '>' || c == '-' && p.blankAt(1):
		return n, p.fail("%q cannot begin a value between brackets; quote it", c)
	}

	text := p.plainFlow()
	if text == "" {
		return n, p.fail("a value is missing here")
	}

	resolve(&n, text)

	return n, nil
}

// plainFlow reads an unquoted scalar between brackets, over several lines if
// nothing ends it.
func (p *yamlParser) plainFlow() string {
	var text strings.Builder

	text.WriteString(p.plainLine(true))

	for !p.end() && p.peek(0) == '\n' {
		at, start := p.at, p.start
		breaks := p.breaks()

		if p.end() || strings.IndexByte(",[]{}#:\t", p.peek(0)) >= 0 {
			p.at, p.start = at, start

			break
		}

		fold(&text, breaks)
		text.WriteString(p.plainLine(true))
	}

	return text.String()
}
