package export

import (
	"github.com/berthml/berth"
)

// Kind is the type of a column.
type Kind int

// The kinds, with the Go type of their cells.
const (
	Text    Kind = iota // string
	Integer             // int64
	Float               // float64, which may not be finite
	Bool                // bool
	Time                // time.Time
)

// Column is a column of a table.
type Column struct {
	Name     string
	Kind     Kind
	Required bool // no cell of it is nil
}

// Row has a cell for each column, of its kind; nil = there is no value.
type Row []any

// unlessZero is nil for a zero value: an empty text, or bytes that were not measured or
// not reserved.
func unlessZero[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}

	return v
}

func orNil[T any](v *T) any {
	if v == nil {
		return nil
	}

	return *v
}

// kindOf is the type of a parameter's column: that of its values. Choices of
// several types are texts; whole numbers among others are floats.
func kindOf(p berth.Parameter) Kind {
	switch p.Type {
	case berth.ParameterInt:
		return Integer
	case berth.ParameterFloat, berth.ParameterDerived: // an expression is a number
		return Float
	case berth.ParameterFixed:
		if p.Value != nil {
			return kindOfValues(berth.Values{*p.Value})
		}

		return Text
	default:
		return kindOfValues(p.Values)
	}
}

func kindOfValues(values berth.Values) Kind {
	kinds := make(map[Kind]bool)

	for _, v := range values {
		switch v.Any().(type) {
		case int64:
			kinds[Integer] = true
		case float64:
			kinds[Float] = true
		case bool:
			kinds[Bool] = true
		default:
			return Text
		}
	}

	switch {
	case len(kinds) == 1 && kinds[Bool]:
		return Bool
	case len(kinds) == 1 && kinds[Integer]:
		return Integer
	case len(kinds) > 0 && !kinds[Bool]:
		return Float
	default:
		return Text
	}
}

// cellOf is a value in a column of a kind; ok is false for a value that does not
// fit, which the search never draws.
func cellOf(v berth.Value, kind Kind) (cell any, ok bool) {
	switch kind {
	case Integer:
		switch n := v.Any().(type) {
		case int64:
			return n, true
		case float64:
			return int64(n), n == float64(int64(n))
		}
	case Float:
		n, is := v.Number()

		return n, is
	case Bool:
		b, is := v.Any().(bool)

		return b, is
	case Text, Time:
		return v.String(), true
	}

	return nil, false
}
