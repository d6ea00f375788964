package document

import "strings"

// blockScalar reads | or > and the lines below it. The content is indented
// deeper than parent; top is true when the scalar is the whole document, whose
// content may begin in the first column.
func (p *yamlParser) blockScalar(parent int, top bool) (string, error) {
	folded := p.peek(0) == '>'
	p.at++

	indent, chomp := 0, byte(0)

	for ; p.peek(0) != '\n' && !p.blankAt(0); p.at++ {
		switch c := p.peek(0); {
		case c >= '1' && c <= '9' && indent == 0:
			indent = int(c-'0') + parent
		case (c == '+' || c == '-') && chomp == 0:
			chomp = c
		default:
			return "", p.fail("%q means nothing after | or >", c)
		}
	}

	if err := p.lineEnds(); err != nil {
		return "", err
	}

	p.toLineEnd()

	if !p.end() {
		p.at++
		p.start = p.at
	}

	if indent == 0 {
		indent = p.contentIndent()
		if indent <= parent && !top {
			return chomped(nil, 0, chomp, false), nil
		}
	}

	lines, trailing, err := p.blockLines(indent)

	return chomped(lines, trailing, chomp, folded), err
}

// contentIndent is the indentation of the first line that is not empty.
func (p *yamlParser) contentIndent() int {
	rest := p.text[p.at:]
	for len(rest) > 0 {
		spaces := len(rest) - len(strings.TrimLeft(rest, " "))
		if spaces == len(rest) {
			return 0
		}

		if rest[spaces] != '\n' {
			return spaces
		}

		rest = rest[spaces+1:]
	}

	return 0
}

// blockLines reads the lines of the scalar without their indentation, and the
// number of empty ones at the end.
func (p *yamlParser) blockLines(indent int) (lines []string, trailing int, err error) {
	for !p.end() {
		end := strings.IndexByte(p.text[p.at:], '\n')
		last := end < 0

		if last {
			end = len(p.text) - p.at
		}

		line := p.text[p.at : p.at+end]
		spaces := len(line) - len(strings.TrimLeft(line, " "))

		switch {
		case spaces == len(line) && spaces <= indent:
			lines = append(lines, "")
			trailing++
		case spaces < indent || p.marker():
			if line[spaces] == '\t' {
				p.at += spaces

				return nil, 0, p.fail("a tab cannot indent; use spaces")
			}

			return lines[:len(lines)-trailing], trailing, nil
		default:
			lines = append(lines, line[indent:])
			trailing = 0
		}

		if p.at += end; !last {
			p.at++
		}

		p.start = p.at
	}

	return lines[:len(lines)-trailing], trailing, nil
}

// chomped joins the lines and ends the text as the chomping mark says.
func chomped(lines []string, trailing int, chomp byte, folded bool) string {
	var text strings.Builder

	if folded {
		foldLines(&text, lines)
	} else {
		text.WriteString(strings.Join(lines, "\n"))
	}

	if len(lines) > 0 && chomp != '-' {
		text.WriteByte('\n')
	}

	if chomp == '+' {
		text.WriteString(strings.Repeat("\n", trailing))
	}

	return text.String()
}

// foldLines joins lines with spaces; empty lines become line ends, and lines
// that are indented further keep theirs.
func foldLines(text *strings.Builder, lines []string) {
	empty, previous := 0, true

	for i, line := range lines {
		if line == "" {
			empty++

			continue
		}

		deeper := line[0] == ' ' || line[0] == '\t'

		switch {
		case i == empty: // the first line with content
			text.WriteString(strings.Repeat("\n", empty))
		case deeper || previous:
			text.WriteString(strings.Repeat("\n", empty+1))
		default:
			fold(text, empty+1)
		}

		text.WriteString(line)

		empty, previous = 0, deeper
	}
}
