package spec

import (
	"maps"
	"slices"
	"strconv"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/expr"
)

const (
	maxForbid      = 50
	maxForbidBytes = 4096
)

// checkTies checks conditions and expressions, which name other parameters.
// Parameters that could not be read leave too little to say.
func (c *checker) checkTies() {
	if !c.reader.clean("/parameters") {
		return
	}

	parameters := c.byName()

	for i, p := range c.spec.Parameters {
		at := "/parameters/" + strconv.Itoa(i) + "/when"
		for _, parent := range slices.Sorted(maps.Keys(p.When)) {
			c.checkCondition(at+pointer(parent), p.Name, parent, p.When[parent], parameters)
		}
	}

	if c.reader.clean("/parameters") {
		c.checkCycles()
		c.checkExpressions()
	}

	if c.reader.clean("/parameters") && c.reader.clean("/forbid") {
		c.checkEnqueue(parameters)
	}
}

func (c *checker) checkCondition(at, name, parent string, values berth.Values, parameters map[string]berth.Parameter) {
	p, ok := parameters[parent]

	switch {
	case parent == name:
		c.add(at, codeCondCycle, "%q waits for itself", name)
	case !ok:
		c.add(at, codeCond, "there is no parameter %q to wait for%s", shorten(parent), c.suggestName(parent))
	case p.Type == berth.ParameterFloat || p.Type == berth.ParameterDerived:
		c.add(at, codeCond, "%q is of type %s, which rarely takes one value twice; wait for a categorical, int or fixed parameter",
			parent, p.Type)
	case len(values) == 0:
		c.add(at, codeCond, "list the values of %q with which %q is active", parent, name)
	default:
		for _, v := range values {
			if !canBe(p, v) {
				c.add(at, codeCond, "%q is never %s", parent, shorten(v.String()))
			}
		}
	}
}

func canBe(p berth.Parameter, v berth.Value) bool {
	if p.Type == berth.ParameterFixed {
		return *p.Value == v
	}

	return contains(p, v)
}

// checkCycles follows conditions and derived values; both must end somewhere.
func (c *checker) checkCycles() {
	conditions := map[string][]string{}
	for _, p := range c.spec.Parameters {
		conditions[p.Name] = slices.Sorted(maps.Keys(p.When))
	}

	for i, p := range c.spec.Parameters {
		if isReachable(conditions, p.Name, p.Name, map[string]bool{}) {
			c.add("/parameters/"+strconv.Itoa(i)+"/when", codeCondCycle, "%q waits for itself through others; break the circle", p.Name)

			return // the others of the circle would say the same
		}
	}
}

// isReachable says whether edges lead from one name to another.
func isReachable(edges map[string][]string, from, to string, seen map[string]bool) bool {
	for _, next := range edges[from] {
		if next == to {
			return true
		}

		if !seen[next] {
			seen[next] = true
			if isReachable(edges, next, to, seen) {
				return true
			}
		}
	}

	return false
}

func (c *checker) checkExpressions() {
	scope := scopeOf(c.spec.Parameters)
	uses := usesOf(c.spec.Parameters, func(i int, err error) { c.add("/parameters/"+strconv.Itoa(i)+"/expr", codeExpr, "%v", err) })

	for i, p := range c.spec.Parameters {
		if isReachable(uses, p.Name, p.Name, map[string]bool{}) {
			c.add("/parameters/"+strconv.Itoa(i)+"/expr", codeExpr, "%q is computed from itself; break the circle", p.Name)
		}
	}

	c.checkForbid(scope)
}

// scopeOf are the names and types that expressions may use.
func scopeOf(parameters []berth.Parameter) expr.Scope {
	scope := expr.Scope{}
	for _, p := range parameters {
		scope[p.Name] = expr.TypeOf(p)
	}

	return scope
}

// usesOf are the names that each derived parameter uses; broken is told of an
// expression that cannot be read.
func usesOf(parameters []berth.Parameter, broken func(i int, err error)) map[string][]string {
	uses, scope := map[string][]string{}, scopeOf(parameters)

	for i, p := range parameters {
		if p.Type != berth.ParameterDerived {
			continue
		}

		program, err := expr.Compile(p.Expr, expr.Number, scope)
		if err != nil {
			broken(i, err)

			continue
		}

		uses[p.Name] = program.Names()
	}

	return uses
}

func (c *checker) checkForbid(scope expr.Scope) {
	size := 0
	for _, source := range c.spec.Forbid {
		size += len(source)
	}

	if len(c.spec.Forbid) > maxForbid || size > maxForbidBytes {
		c.add("/forbid", codeTooMany, "at most %d conditions with %d bytes together are checked for every trial",
			maxForbid, maxForbidBytes)

		return
	}

	for i, source := range c.spec.Forbid {
		at := "/forbid/" + strconv.Itoa(i)

		program, err := expr.Compile(source, expr.Bool, scope)

		switch {
		case err != nil:
			c.add(at, codeExpr, "%v", err)
		case len(program.Names()) == 0:
			c.add(at, codeExpr, "the expression names no parameter, so it forbids everything or nothing")
		}
	}
}

// maybeAbsent are the parameters that some trials do not have.
func (c *checker) maybeAbsent() map[string]bool {
	absent := map[string]bool{}
	for _, p := range c.spec.Parameters {
		absent[p.Name] = len(p.When) > 0
	}

	uses := usesOf(c.spec.Parameters, func(int, error) {})

	for range uses { // a chain of n derived values needs n rounds at most
		for name, used := range uses {
			absent[name] = absent[name] || slices.ContainsFunc(used, func(u string) bool { return absent[u] })
		}
	}

	return absent
}
