package expr

import (
	"fmt"
	"math"

	"github.com/berthml/berth"
)

// MaxLength bounds the text of an expression, in bytes.
const MaxLength = 1024

// maxDepth bounds nesting, so that a page of brackets cannot exhaust the stack.
const maxDepth = 64

// Type is what a name or an expression can be.
type Type int

// The types. Any is a name whose choices are of several types; it is checked
// at evaluation.
const (
	Number Type = iota
	Bool
	String
	Any
)

func (t Type) String() string {
	return [...]string{"a number", "true or false", "a text", "a value"}[t]
}

// Scope gives each name an expression may use its type.
type Scope map[string]Type

// TypeOf is the type a parameter has in an expression. Derived parameters are
// numbers.
func TypeOf(p berth.Parameter) Type {
	switch p.Type {
	case berth.ParameterCategorical:
		return typeOfValues(p.Values)
	case berth.ParameterFixed:
		if p.Value != nil {
			return typeOfValues(berth.Values{*p.Value})
		}

		return Any
	default:
		return Number
	}
}

func typeOfValues(values berth.Values) Type {
	t := Any

	for i, v := range values {
		next := typeOfValue(v)
		if i > 0 && next != t {
			return Any
		}

		t = next
	}

	return t
}

func typeOfValue(v berth.Value) Type {
	switch v.Any().(type) {
	case bool:
		return Bool
	case string:
		return String
	default:
		return Number
	}
}

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	root  *node
	names []string
}

// Compile reads an expression whose result must be a Number or a Bool. The
// error says what is wrong and where, and is fit for the user.
func Compile(source string, want Type, scope Scope) (*Program, error) {
	if len(source) > MaxLength {
		return nil, invalid("is %d bytes long; at most %d are read", len(source), MaxLength)
	}

	p := &parser{lexer: lexer{source: source}, scope: scope}

	root, err := p.parse()
	if err != nil {
		return nil, err
	}

	got, err := check(root)
	if err != nil {
		return nil, err
	}

	if got != want && got != Any {
		return nil, invalid("gives %s where %s is needed", got, want)
	}

	return &Program{root: root, names: p.names}, nil
}

// Names returns the parameters the expression uses, in order of appearance,
// each once.
func (p *Program) Names() []string { return p.names }

// Ready reports whether a holds every name the expression uses. A name is
// missing when its parameter is inactive.
func (p *Program) Ready(a berth.Assignment) bool {
	for _, name := range p.names {
		if _, ok := a[name]; !ok {
			return false
		}
	}

	return true
}

// Number evaluates to an int64 Value when the result is whole by its
// operations, else to a float64 Value. It fails on a missing name, a wrong
// type and a result that is not finite.
func (p *Program) Number(a berth.Assignment) (berth.Value, error) {
	r, err := eval(p.root, a)
	if err != nil {
		return berth.Value{}, err
	}

	if r.kind != Number {
		return berth.Value{}, invalid("gives %s where a number is needed", r.kind)
	}

	if r.whole && math.Abs(r.number) <= maxWhole {
		return berth.IntValue(int64(r.number)), nil
	}

	return berth.FloatValue(r.number), nil
}

// Bool evaluates a condition. It fails as Number does.
func (p *Program) Bool(a berth.Assignment) (bool, error) {
	r, err := eval(p.root, a)
	if err != nil {
		return false, err
	}

	if r.kind != Bool {
		return false, invalid("gives %s where true or false is needed", r.kind)
	}

	return r.truth, nil
}

func invalid(format string, args ...any) error {
	return berth.Errorf(berth.KindInvalid, "the expression %w", fmt.Errorf(format, args...))
}
