package expr

import (
	"maps"
	"slices"
	"strings"
)

// check finds the type of an expression and refuses operands that can never
// fit, so that most mistakes show before the first trial.
func check(n *node) (Type, error) {
	kinds := make([]Type, len(n.kids))

	for i, kid := range n.kids {
		kind, err := check(kid)
		if err != nil {
			return Any, err
		}

		kinds[i] = kind
	}

	switch n.op {
	case "literal":
		return n.literal.kind, nil
	case "name":
		return n.declared, nil
	case "group":
		return kinds[0], nil
	case "call":
		return Number, checkCall(n, kinds)
	case "&&", "||", "!":
		return Bool, operands(n, kinds, Bool)
	case "==", "!=":
		return Bool, checkEqual(n, kinds)
	case "<", "<=", ">", ">=":
		return Bool, operands(n, kinds, Number)
	default:
		return Number, operands(n, kinds, Number)
	}
}

func operands(n *node, kinds []Type, want Type) error {
	for _, kind := range kinds {
		if kind != want && kind != Any {
			return invalid("has %s where %q at character %d needs %s", kind, n.op, n.offset+1, want)
		}
	}

	return nil
}

func checkEqual(n *node, kinds []Type) error {
	a, b := kinds[0], kinds[1]
	if a != b && a != Any && b != Any {
		return invalid("compares %s with %s at character %d; they are never equal", a, b, n.offset+1)
	}

	return nil
}

func checkCall(n *node, kinds []Type) error {
	f, ok := functions[n.text]
	if !ok {
		return invalid("calls %q at character %d, which is no function; there are: %s",
			n.text, n.offset+1, strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
	}

	if len(kinds) < f.min || len(kinds) > f.max {
		return invalid("calls %s at character %d with %d values; it takes %s", n.text, n.offset+1, len(kinds), f.takes())
	}

	for _, kind := range kinds {
		if kind != Number && kind != Any {
			return invalid("gives %s to %s at character %d, which needs numbers", kind, n.text, n.offset+1)
		}
	}

	return nil
}
