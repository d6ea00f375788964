package document

// block reads the value whose content is indented deeper than parent. Nothing
// there is a null.
func (p *yamlParser) block(parent int) (Node, error) {
	if err := p.skip(); err != nil {
		return Node{}, err
	}

	if p.end() || p.column() <= parent || p.marker() {
		return Node{Offset: p.at}, nil
	}

	if err := p.enter(); err != nil {
		return Node{}, err
	}
	defer p.leave()

	if p.dash() {
		return p.sequence(p.column())
	}

	key, err := p.key()
	if err != nil {
		return Node{}, err
	}

	if key {
		return p.mapping(p.column())
	}

	return p.inline(parent)
}

// dash says whether a sequence entry begins here.
func (p *yamlParser) dash() bool { return p.peek(0) == '-' && p.blankAt(1) }

// key says whether "name:" begins here, without moving.
func (p *yamlParser) key() (bool, error) {
	if err := p.unsupported(); err != nil {
		return false, err
	}

	at, start := p.at, p.start
	defer func() { p.at, p.start = at, start }()

	switch p.peek(0) {
	case '[', '{', '|', '>':
		return false, nil
	case '"', '\'':
		if _, err := p.quoted(); err != nil || p.start != start {
			return false, nil //nolint:nilerr // the value's own reading reports it
		}

		for p.peek(0) == ' ' {
			p.at++
		}

		return p.peek(0) == ':' && p.blankAt(1), nil
	default:
		p.plainLine(false)

		return p.peek(0) == ':' && p.blankAt(1), nil
	}
}

// sequence reads the entries whose dashes stand in one column.
func (p *yamlParser) sequence(column int) (Node, error) {
	n := Node{Kind: List, Offset: p.at}

	for {
		p.at++ // the dash

		item, err := p.block(column)
		if err != nil {
			return n, err
		}

		n.Items = append(n.Items, item)

		more, err := p.another(column)
		if err != nil {
			return n, err
		}

		if !more || !p.dash() {
			return n, nil
		}
	}
}

// another says whether content continues in this column.
func (p *yamlParser) another(column int) (bool, error) {
	if err := p.skip(); err != nil {
		return false, err
	}

	if p.end() || p.marker() || p.column() < column {
		return false, nil
	}

	if p.column() > column {
		return false, p.fail("this is indented deeper than its neighbours; they begin in column %d", column+1)
	}

	return true, nil
}

// mapping reads the keys that stand in one column.
func (p *yamlParser) mapping(column int) (Node, error) {
	n := Node{Kind: Object, Offset: p.at}

	for {
		key, err := p.key()
		if err != nil {
			return n, err
		}

		if !key {
			return n, p.fail("expected a key followed by a colon and a space")
		}

		field := Field{Offset: p.at}
		if field.Name, err = p.keyText(); err != nil {
			return n, err
		}

		if field.Value, err = p.mappingValue(column); err != nil {
			return n, err
		}

		n.Fields = append(n.Fields, field)

		more, err := p.another(column)
		if err != nil {
			return n, err
		}

		if !more {
			return n, nil
		}
	}
}

// keyText reads a key and its colon.
func (p *yamlParser) keyText() (string, error) {
	var name string

	if c := p.peek(0); c == '"' || c == '\'' {
		text, err := p.quoted()
		if err != nil {
			return "", err
		}

		name = text
	} else {
		name = p.plainLine(false)
	}

	for p.peek(0) == ' ' {
		p.at++
	}

	p.at++ // the colon

	return name, nil
}

// mappingValue reads what follows "key:". A sequence may stand in the key's
// own column; a mapping may not begin on the key's line.
func (p *yamlParser) mappingValue(column int) (Node, error) {
	line := p.start

	if err := p.skip(); err != nil {
		return Node{}, err
	}

	if p.start != line || p.end() {
		if !p.end() && p.column() == column && p.dash() && !p.marker() {
			if err := p.enter(); err != nil {
				return Node{}, err
			}
			defer p.leave()

			return p.sequence(column)
		}

		return p.block(column)
	}

	if p.dash() {
		return Node{}, p.fail("a list cannot begin on the line of its key; put the - on the next line")
	}

	if err := p.enter(); err != nil {
		return Node{}, err
	}
	defer p.leave()

	if err := p.unsupported(); err != nil {
		return Node{}, err
	}

	return p.inline(column)
}

// inline reads a scalar or flow collection of a block whose parent stands in
// the given column.
func (p *yamlParser) inline(parent int) (Node, error) {
	n := Node{Offset: p.at}

	var err error

	switch p.peek(0) {
	case '[', '{':
		if n, err = p.flow(); err != nil {
			return n, err
		}
	case '"', '\'':
		n.Kind = String
		if n.Text, err = p.quoted(); err != nil {
			return n, err
		}
	case '|', '>':
		n.Kind = String
		n.Text, err = p.blockScalar(max(parent, 0), parent < 0)

		return n, err
	default:
		text, err := p.plainBlock(parent)
		if err != nil {
			return n, err
		}

		resolve(&n, text)

		return n, nil
	}

	return n, p.lineEnds()
}

// lineEnds checks that only a comment follows on the line.
func (p *yamlParser) lineEnds() error {
	at := p.at
	for p.peek(0) == ' ' || p.peek(0) == '\t' {
		p.at++
	}

	if p.end() || p.peek(0) == '\n' || p.peek(0) == '#' && p.at > at {
		return nil
	}

	return p.fail("unexpected text after the value")
}
