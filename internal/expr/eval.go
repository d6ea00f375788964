package expr

import (
	"math"

	"github.com/berthml/berth"
)

// maxWhole is the largest whole number a float64 holds exactly with all below.
const maxWhole = 1 << 53

// result is a value on the way. whole marks a number that came from whole
// numbers by whole operations.
type result struct {
	kind   Type
	number float64
	whole  bool
	truth  bool
	text   string
}

func eval(n *node, a berth.Assignment) (result, error) {
	switch n.op {
	case "literal":
		return n.literal, nil
	case "name":
		return lookup(n.text, a)
	case "group":
		return eval(n.kids[0], a)
	case "&&", "||":
		return evalLogic(n, a)
	case "!":
		v, err := evalAs(n.kids[0], a, Bool)

		return result{kind: Bool, truth: !v.truth}, err
	case "==", "!=":
		return evalEqual(n, a)
	default:
		return evalNumbers(n, a)
	}
}

func lookup(name string, a berth.Assignment) (result, error) {
	v, ok := a[name]
	if !ok {
		return result{}, invalid("uses %q, which has no value in this trial", name)
	}

	switch x := v.Any().(type) {
	case bool:
		return result{kind: Bool, truth: x}, nil
	case string:
		return result{kind: String, text: x}, nil
	default:
		number, _ := v.Number()
		_, whole := x.(int64)

		return result{kind: Number, number: number, whole: whole}, nil
	}
}

func evalAs(n *node, a berth.Assignment, want Type) (result, error) {
	v, err := eval(n, a)
	if err == nil && v.kind != want {
		err = invalid("has %s at character %d where %s is needed", v.kind, n.offset+1, want)
	}

	return v, err
}

// evalLogic stops at the first operand that decides.
func evalLogic(n *node, a berth.Assignment) (result, error) {
	left, err := evalAs(n.kids[0], a, Bool)
	if err != nil || left.truth == (n.op == "||") {
		return left, err
	}

	return evalAs(n.kids[1], a, Bool)
}

// evalEqual compares values of any type; values of different types differ.
func evalEqual(n *node, a berth.Assignment) (result, error) {
	left, err := eval(n.kids[0], a)
	if err != nil {
		return result{}, err
	}

	right, err := eval(n.kids[1], a)
	if err != nil {
		return result{}, err
	}

	left.whole, right.whole = false, false

	return result{kind: Bool, truth: (left == right) == (n.op == "==")}, nil
}

// evalNumbers computes an arithmetic operation, a comparison or a call.
func evalNumbers(n *node, a berth.Assignment) (result, error) {
	numbers := make([]float64, 0, 4)
	whole := true

	for _, kid := range n.kids {
		v, err := evalAs(kid, a, Number)
		if err != nil {
			return result{}, err
		}

		numbers = append(numbers, v.number)
		whole = whole && v.whole
	}

	if n.op == "call" {
		f := functions[n.text]

		return finite(n, f.compute(numbers), f.whole(whole))
	}

	if len(numbers) == 1 {
		if n.op == "-" {
			numbers[0] = -numbers[0]
		}

		return finite(n, numbers[0], whole)
	}

	x, y := numbers[0], numbers[1]

	switch n.op {
	case "<":
		return result{kind: Bool, truth: x < y}, nil
	case "<=":
		return result{kind: Bool, truth: x <= y}, nil
	case ">":
		return result{kind: Bool, truth: x > y}, nil
	case ">=":
		return result{kind: Bool, truth: x >= y}, nil
	}

	return finite(n, arithmetic(n.op, x, y), whole && n.op != "/" && (n.op != "**" || y >= 0))
}

func arithmetic(op string, x, y float64) float64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	case "%":
		return x - y*math.Floor(x/y)
	default:
		return math.Pow(x, y)
	}
}

func finite(n *node, v float64, whole bool) (result, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		name := n.op
		if n.op == "call" {
			name = n.text
		}

		return result{}, invalid("has no finite result for %q at character %d", name, n.offset+1)
	}

	return result{kind: Number, number: v + 0, whole: whole}, nil // + 0 turns -0 into 0
}
