package document

import "strings"

// ParseYAML reads one YAML document of the kind doc.go describes.
func ParseYAML(data []byte) (*Node, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}

	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}

	p := &yamlParser{text: text}

	root, err := p.document()
	if err != nil {
		return nil, err
	}

	return &root, nil
}

// yamlParser walks the text once. start is the first byte of the current
// line, so at-start is the indentation that YAML cares about.
type yamlParser struct {
	text  string
	at    int
	start int
	depth int
	nodes int
}

func (p *yamlParser) fail(format string, args ...any) error {
	return fail(ErrSyntax, p.text, p.at, format, args...)
}

func (p *yamlParser) end() bool { return p.at >= len(p.text) }

// peek is the byte i places ahead, or a line end behind the text.
func (p *yamlParser) peek(i int) byte {
	if p.at+i < len(p.text) {
		return p.text[p.at+i]
	}

	return '\n'
}

func (p *yamlParser) column() int { return p.at - p.start }

// blankAt says whether the byte i places ahead separates words.
func (p *yamlParser) blankAt(i int) bool {
	c := p.peek(i)

	return c == ' ' || c == '\t' || c == '\n'
}

// marker says whether the line is --- or ..., which ends every block.
func (p *yamlParser) marker() bool {
	return p.column() == 0 && (strings.HasPrefix(p.text[p.at:], "---") || strings.HasPrefix(p.text[p.at:], "...")) && p.blankAt(3)
}

// skip passes blanks, comments and line ends up to the next content.
func (p *yamlParser) skip() error {
	for !p.end() {
		switch c := p.peek(0); {
		case c == '\n':
			p.at++
			p.start = p.at
		case c == ' ':
			p.at++
		case c == '\t':
			if err := p.tab(); err != nil {
				return err
			}
		case c == '#' && (p.at == p.start || p.text[p.at-1] == ' ' || p.text[p.at-1] == '\t'):
			p.toLineEnd()
		default:
			return nil
		}
	}

	return nil
}

// tab refuses a tab that would be indentation.
func (p *yamlParser) tab() error {
	indent := strings.Trim(p.text[p.start:p.at], " \t") == ""

	at := p.at
	for p.peek(0) == '\t' || p.peek(0) == ' ' {
		p.at++
		if p.end() {
			return nil
		}
	}

	if indent && p.peek(0) != '\n' && p.peek(0) != '#' {
		p.at = at

		return p.fail("a tab cannot indent; use spaces")
	}

	return nil
}

func (p *yamlParser) toLineEnd() {
	if i := strings.IndexByte(p.text[p.at:], '\n'); i >= 0 {
		p.at += i
	} else {
		p.at = len(p.text)
	}
}

func (p *yamlParser) document() (Node, error) {
	if err := p.skip(); err != nil {
		return Node{}, err
	}

	if p.peek(0) == '%' {
		return Node{}, p.fail("directives are not accepted; leave the line out")
	}

	if !p.end() && p.marker() && p.peek(0) == '-' {
		p.at += 3
	}

	root, err := p.block(-1)
	if err != nil {
		return Node{}, err
	}

	if err := p.skip(); err != nil {
		return Node{}, err
	}

	if !p.end() && p.marker() && p.peek(0) == '.' {
		p.at += 3

		if err := p.skip(); err != nil {
			return Node{}, err
		}
	}

	switch {
	case p.end():
		return root, nil
	case p.marker():
		return Node{}, p.fail("a second document begins; one file holds one sweep")
	default:
		return Node{}, p.fail("this line fits no block above it; check its indentation")
	}
}

// enter counts one more level and one more value.
func (p *yamlParser) enter() error {
	p.nodes++
	p.depth++

	switch {
	case p.depth > MaxDepth+1:
		return fail(ErrDepth, p.text, p.at, "nested deeper than %d", MaxDepth)
	case p.nodes > MaxNodes:
		return fail(ErrSize, p.text, p.at, "more than %d values", MaxNodes)
	}

	return nil
}

func (p *yamlParser) leave() { p.depth-- }

// unsupported refuses what doc.go lists, at the first byte of a value.
func (p *yamlParser) unsupported() error {
	switch c := p.peek(0); {
	case c == '&' || c == '*':
		return fail(ErrDepth, p.text, p.at, "anchors and aliases are not accepted; write the value out")
	case c == '!':
		return p.fail("tags are not accepted; quote the value to make it a text")
	case c == '?' && p.blankAt(1):
		return p.fail("keys that begin with ? are not accepted; write key: value")
	case c == '@' || c == '`' || c == '%':
		return p.fail("a value cannot begin with %q; quote it", c)
	case strings.IndexByte(",]}", c) >= 0:
		return p.fail("unexpected %q", c)
	}

	return nil
}
