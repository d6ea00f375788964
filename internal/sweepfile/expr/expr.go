package expr

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/berthml/berth"
)

// MaxLength bounds the text of an expression, in bytes.
const MaxLength = 1024

// Type is the type of a name or an expression.
type Type int

// The types. Any is a name whose choices are of several types; it is checked at
// evaluation. Only a literal such as [1, 2] is a List, never a name.
const (
	Number Type = iota
	Bool
	String
	Any
	List
)

func (t Type) String() string {
	return [...]string{"a number", "true or false", "a text", "a value", "a list"}[t]
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

// typeOf is the Type of the library's result.
func typeOf(t reflect.Type) Type {
	switch t.Kind() {
	case reflect.Bool:
		return Bool
	case reflect.String:
		return String
	case reflect.Interface:
		return Any
	case reflect.Slice:
		return List
	default:
		return Number
	}
}

// goTypes are the library's words for ours. A Number may be an int64, too.
var goTypes = map[Type]types.Type{Number: types.Float64, Bool: types.Bool, String: types.String, Any: types.Any}

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	program *vm.Program
	names   []string
}

// Compile reads an expression whose result must be a Number or a Bool. The
// error names the problem and its place, and is fit for the user.
func Compile(source string, want Type, scope Scope) (*Program, error) {
	if len(source) > MaxLength {
		return nil, invalid("is %d bytes long; at most %d are read", len(source), MaxLength)
	}

	source, floors := roundDown(source)

	names, err := check(source, scope)
	if err != nil {
		return nil, err
	}

	program, err := compile(source, names, scope, floors)
	if err != nil {
		return nil, refused(err)
	}

	if got := typeOf(program.Node().Type()); got != want && got != Any {
		return nil, invalid("gives %s where %s is needed", got, want)
	}

	return &Program{program: program, names: names}, nil
}

// compile takes the library's steps one by one. Its own Compile, given a
// patcher, loses the error inside a call (1.17.8).
func compile(source string, names []string, scope Scope, floors map[int]bool) (*vm.Program, error) {
	environment := types.Map{}
	for _, name := range names {
		environment[name] = goTypes[scope[name]]
	}

	config := conf.New(environment)
	expr.DisableAllBuiltins()(config)

	for name, f := range functions {
		config.Functions[inside(name)] = f.library(name)
	}

	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return nil, err
	}

	ast.Walk(&tree.Node, patcher{floors: floors})

	if _, err := checker.Check(tree, config); err != nil {
		return nil, err
	}

	return compiler.Compile(tree, config)
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
	result, err := p.run(a)
	if err != nil {
		return berth.Value{}, err
	}

	switch v := result.(type) {
	case int: // a literal
		return berth.IntValue(int64(v)), nil
	case int64:
		return berth.IntValue(v), nil
	case float64:
		return berth.FloatValue(v + 0), nil // + 0 turns -0 into 0
	default:
		return berth.Value{}, invalid("gives %v where a number is needed", result)
	}
}

// Bool evaluates a condition. It fails as Number does.
func (p *Program) Bool(a berth.Assignment) (bool, error) {
	result, err := p.run(a)
	if err != nil {
		return false, err
	}

	truth, ok := result.(bool)
	if !ok {
		return false, invalid("gives %v where true or false is needed", result)
	}

	return truth, nil
}

func (p *Program) run(a berth.Assignment) (any, error) {
	environment := make(map[string]any, len(p.names))

	for _, name := range p.names {
		v, ok := a[name]
		if !ok {
			return nil, invalid("uses %q, which has no value in this trial", name)
		}

		environment[name] = v.Any()
	}

	result, err := expr.Run(p.program, environment)
	if err != nil {
		return nil, refused(err)
	}

	return result, nil
}

// refused is an error of the library without its drawing of the source.
func refused(err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return invalid("cannot be read: %w", err)
	}

	return invalid("fails at character %d: %s", at.From+1, at.Message)
}

func invalid(format string, args ...any) error {
	return berth.Errorf(berth.KindInvalid, "the expression %w", fmt.Errorf(format, args...))
}
