package berth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is one parameter value: an int64, a float64, a bool or a string.
// The zero Value is the empty string. Values are comparable with ==.
type Value struct {
	v any
}

// IntValue makes a Value of a whole number.
func IntValue(v int64) Value { return Value{v} }

// FloatValue makes a Value of a finite number; NaN never equals itself.
func FloatValue(v float64) Value { return Value{v} }

// BoolValue makes a Value of a truth value.
func BoolValue(v bool) Value { return Value{v} }

// StringValue makes a Value of a text.
func StringValue(v string) Value { return Value{v} }

// Any returns the int64, float64, bool or string inside.
func (v Value) Any() any {
	if v.v == nil {
		return ""
	}

	return v.v
}

// Number returns the value as a float64 and whether it is a number.
func (v Value) Number() (float64, bool) {
	switch n := v.v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// String is the text that replaces {{name}} in a command: floats in the
// shortest form that parses back to the same number, which Python and Go both
// read.
func (v Value) String() string {
	switch x := v.v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	default:
		return fmt.Sprint(x)
	}
}

// MarshalJSON keeps the difference between 1 and 1.0, so that a value read
// back has the type it was written with. It refuses NaN and infinities.
func (v Value) MarshalJSON() ([]byte, error) {
	f, ok := v.v.(float64)
	if !ok {
		return json.Marshal(v.Any())
	}

	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, Errorf(KindInvalid, "a parameter value must be finite, got %v", f)
	}

	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}

	return []byte(text), nil
}

// UnmarshalJSON reads a number without point and exponent as an int64 when it
// fits, any other number as a float64.
func (v *Value) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()

	var raw any
	if err := dec.Decode(&raw); err != nil {
		return fmt.Errorf("reading parameter value: %w", err)
	}

	switch x := raw.(type) {
	case json.Number:
		return v.setNumber(string(x))
	case string, bool:
		v.v = x

		return nil
	default:
		return Errorf(KindInvalid, "a parameter value must be a number, a string or true/false, got %s", data)
	}
}

func (v *Value) setNumber(text string) error {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v.v = n

			return nil
		}
	}

	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Errorf(KindInvalid, "reading number %q: %w", text, err)
	}

	v.v = f

	return nil
}

// Values is a list of choices, in the order of the document.
type Values []Value

// Assignment maps each active parameter to its value. Inactive conditional
// parameters are absent.
type Assignment map[string]Value

// Names returns the parameter names in ascending order.
func (a Assignment) Names() []string {
	return slices.Sorted(maps.Keys(a))
}

// Key is a canonical text of the assignment: equal assignments have equal keys.
func (a Assignment) Key() string {
	data, err := json.Marshal(a) // encoding/json sorts map keys
	if err != nil {
		return fmt.Sprintf("unrepresentable:%v", map[string]Value(a))
	}

	return string(data)
}
