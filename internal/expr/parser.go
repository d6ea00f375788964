package expr

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// node is one operation. op is "literal", "name", "call" or an operator; a
// sign and a not have one operand.
type node struct {
	op       string
	text     string // of a name or call
	literal  result
	declared Type // of a name
	kids     []*node
	offset   int
}

type parser struct {
	lexer
	scope Scope
	names []string
	token token
	depth int
}

// binary operators by how tightly they bind; all but ** group to the left.
var precedence = map[string]int{
	"||": 1, "&&": 2,
	"==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
	"+": 5, "-": 5,
	"*": 6, "/": 6, "//": 6, "%": 6,
	"**": 8,
}

const (
	precedenceNot     = 3
	precedenceCompare = 4
	precedenceSign    = 7
	precedencePower   = 8
)

func (p *parser) parse() (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}

	if p.token.kind == tokenEnd {
		return nil, invalid("is empty")
	}

	root, err := p.binary(0)
	if err != nil {
		return nil, err
	}

	if p.token.kind != tokenEnd {
		return nil, p.unexpected()
	}

	return root, nil
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()

	return err
}

func (p *parser) unexpected() error {
	if p.token.kind == tokenEnd {
		return invalid("ends too early")
	}

	return invalid("has an unexpected %q at character %d", p.token.text, p.token.offset+1)
}

// binary reads operators that bind tighter than above.
func (p *parser) binary(above int) (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, invalid("is nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()

	left, err := p.unary()
	if err != nil {
		return nil, err
	}

	for size := 0; p.token.kind == tokenOperator; size++ {
		op := p.token
		bind := precedence[op.text]

		if bind <= above {
			return left, nil
		}

		if bind == precedenceCompare && precedence[left.op] == precedenceCompare {
			return nil, invalid("chains comparisons at character %d; write a < b and b < c", op.offset+1)
		}

		if err := p.advance(); err != nil {
			return nil, err
		}

		if bind == precedencePower {
			bind-- // groups to the right
		}

		right, err := p.binary(bind)
		if err != nil {
			return nil, err
		}

		left = &node{op: op.text, kids: []*node{left, right}, offset: op.offset}
	}

	return left, nil
}

func (p *parser) unary() (*node, error) {
	t := p.token
	if t.kind != tokenOperator {
		return p.primary()
	}

	bind := 0

	switch t.text {
	case "-", "+":
		bind = precedenceSign
	case "!":
		bind = precedenceNot
	default:
		return p.primary()
	}

	if err := p.advance(); err != nil {
		return nil, err
	}

	operand, err := p.binary(bind)
	if err != nil {
		return nil, err
	}

	return &node{op: t.text, kids: []*node{operand}, offset: t.offset}, nil
}

func (p *parser) primary() (*node, error) {
	t := p.token
	if err := p.advance(); err != nil {
		return nil, err
	}

	switch {
	case t.kind == tokenNumber:
		return numberNode(t)
	case t.kind == tokenText:
		return &node{op: "literal", literal: result{kind: String, text: t.text}, offset: t.offset}, nil
	case t.kind == tokenName:
		return p.name(t)
	case t.text == "(" && t.kind == tokenOperator:
		inner, err := p.binary(0)
		if err != nil {
			return nil, err
		}

		return &node{op: "group", kids: []*node{inner}, offset: t.offset}, p.expect(")")
	default:
		p.token = t

		return nil, p.unexpected()
	}
}

func (p *parser) expect(op string) error {
	if p.token.kind != tokenOperator || p.token.text != op {
		if p.token.kind == tokenEnd {
			return invalid("ends before a closing %q", op)
		}

		return p.unexpected()
	}

	return p.advance()
}

// name reads a parameter, a function call or a truth value. A parameter wins
// over true and false, and a bracket makes a call.
func (p *parser) name(t token) (*node, error) {
	if p.token.kind == tokenOperator && p.token.text == "(" {
		return p.call(t)
	}

	if declared, ok := p.scope[t.text]; ok {
		if !slices.Contains(p.names, t.text) {
			p.names = append(p.names, t.text)
		}

		return &node{op: "name", text: t.text, declared: declared, offset: t.offset}, nil
	}

	switch t.text {
	case "true", "True":
		return &node{op: "literal", literal: result{kind: Bool, truth: true}, offset: t.offset}, nil
	case "false", "False":
		return &node{op: "literal", literal: result{kind: Bool}, offset: t.offset}, nil
	}

	known := slices.Sorted(maps.Keys(p.scope))
	if len(known) > 10 {
		known = append(known[:10], "…")
	}

	return nil, invalid("uses %q, which is no parameter; there are: %s", t.text, strings.Join(known, ", "))
}

func (p *parser) call(t token) (*node, error) {
	if err := p.advance(); err != nil { // the bracket
		return nil, err
	}

	n := &node{op: "call", text: t.text, offset: t.offset}

	for p.token.kind != tokenOperator || p.token.text != ")" {
		if len(n.kids) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}

		arg, err := p.binary(0)
		if err != nil {
			return nil, err
		}

		n.kids = append(n.kids, arg)
	}

	return n, p.advance()
}

func numberNode(t token) (*node, error) {
	v, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return nil, invalid("has %q at character %d, which is no finite number", t.text, t.offset+1)
	}

	whole := !strings.ContainsAny(t.text, ".eE")

	return &node{op: "literal", literal: result{kind: Number, number: v, whole: whole}, offset: t.offset}, nil
}
