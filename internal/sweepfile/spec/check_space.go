package spec

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

const (
	maxChoices = 10_000
	// maxValueBytes bounds a text that the job also gets as an environment
	// variable, as environment_variables does.
	maxValueBytes = 32 << 10
	tooLong       = "the value has %s; at most %s are passed; put data into a file"
)

// checkParameters checks each parameter alone, then the rules between them.
func (c *checker) checkParameters() {
	if len(c.spec.Parameters) > maxEntries {
		c.add("/parameters", codeTooMany, "there are %d parameters; at most %d are searched", len(c.spec.Parameters), maxEntries)

		return
	}

	first := map[string]string{} // by the name of its environment variable

	for i, p := range c.spec.Parameters {
		at := "/parameters/" + strconv.Itoa(i)
		if !c.reader.clean(at) {
			continue
		}

		if !argv.IsName(p.Name) {
			c.add(at+"/name", codeParamName, "%q is no name of a parameter; write 1 to 64 letters, digits and _, no digit first",
				shorten(p.Name))
		}

		variable := strings.ToUpper(p.Name)
		if other, ok := first[variable]; ok && other == p.Name {
			c.add(at+"/name", codeParamDup, "%q is declared twice; keep one of them", shorten(p.Name))
		} else if ok {
			c.add(at+"/name", codeParamDup, "the name %q clashes with %q: both would be TRIAL_PARAM_%s",
				shorten(p.Name), shorten(other), shorten(variable))
		}

		first[variable] = p.Name

		c.checkFit(at, p)
		c.checkParameter(at, p)
	}

	c.checkTies()
}

// checkFit refuses fields that mean nothing for the parameter's type.
func (c *checker) checkFit(at string, p berth.Parameter) {
	numeric := p.Type == berth.ParameterFloat || p.Type == berth.ParameterInt
	choice := p.Type == berth.ParameterCategorical

	for _, field := range []struct {
		name     string
		set, fit bool
	}{
		{"min", p.Min != nil, numeric},
		{"max", p.Max != nil, numeric},
		{"step", p.Step != nil, numeric},
		{"log", p.Log, numeric},
		{"count", p.Count > 0, numeric},
		{"values", p.Values != nil, choice},
		{"probabilities", p.Probabilities != nil, choice},
		{"value", p.Value != nil, p.Type == berth.ParameterFixed},
		{"expr", p.Expr != "", p.Type == berth.ParameterDerived},
		{"default", p.Default != nil, numeric || choice},
	} {
		if p.Type != "" && field.set && !field.fit {
			c.add(at+"/"+field.name, codeParam, "a parameter of type %s has no %s; leave it out", p.Type, field.name)
		}
	}
}

func (c *checker) checkParameter(at string, p berth.Parameter) {
	switch p.Type {
	case "":
		c.add(at+"/type", codeParam, "say what it can be: min and max, values, value or expr")
	case berth.ParameterFixed:
		switch {
		case p.Value == nil:
			c.add(at+"/value", codeParam, "a fixed parameter needs a value")
		case len(p.Value.String()) > maxValueBytes:
			c.add(at+"/value", codeParam, tooLong, berth.BytesText(int64(len(p.Value.String()))), berth.BytesText(maxValueBytes))
		}
	case berth.ParameterDerived:
		if p.Expr == "" {
			c.add(at+"/expr", codeParam, "a derived parameter needs an expr, such as ceil(0.1 * epochs)")
		}
	case berth.ParameterCategorical:
		c.checkChoices(at, p)
	default:
		c.checkRange(at, p)
	}

	if p.Default != nil && c.reader.clean(at) && !contains(p, *p.Default) {
		c.add(at+"/default", codeDefault, "the default %s is none of the values it can take", shorten(p.Default.String()))
	}
}

func (c *checker) checkChoices(at string, p berth.Parameter) {
	switch {
	case len(p.Values) == 0:
		c.add(at+"/values", codeChoice, "there is nothing to choose from; list at least one value")

		return
	case len(p.Values) > maxChoices:
		c.add(at+"/values", codeTooMany, "there are %d values; at most %d are searched", len(p.Values), maxChoices)

		return
	}

	seen := make(map[berth.Value]bool, len(p.Values))

	for i, v := range p.Values {
		if n := len(v.String()); n > maxValueBytes {
			c.add(at+"/values/"+strconv.Itoa(i), codeChoice, tooLong, berth.BytesText(int64(n)), berth.BytesText(maxValueBytes))
		}

		if seen[identity(v)] {
			c.add(at+"/values/"+strconv.Itoa(i), codeChoiceDup, "the value %s is listed twice; use probabilities to prefer one",
				shorten(v.String()))
		}

		seen[identity(v)] = true
	}

	if p.Probabilities == nil {
		return
	}

	sum, positive := 0.0, true
	for _, v := range p.Probabilities {
		sum += v
		positive = positive && v > 0
	}

	if len(p.Probabilities) != len(p.Values) || !positive || math.Abs(sum-1) > 1e-6 {
		c.add(at+"/probabilities", codeProbabilities, "give each of the %d values one probability above 0; together they make 1",
			len(p.Values))
	}
}

func (c *checker) checkRange(at string, p berth.Parameter) {
	isInt := p.Type == berth.ParameterInt

	switch {
	case p.Min == nil:
		c.add(at+"/min", codeParam, "a parameter of type %s needs min and max", p.Type)

		return
	case p.Max == nil:
		c.add(at+"/max", codeParam, "a parameter of type %s needs min and max", p.Type)

		return
	case isInt && !wholeBound(*p.Min):
		c.add(at+"/min", codeRange, "min %v of an int must be a whole number within 2^53", *p.Min)

		return
	case isInt && !wholeBound(*p.Max):
		c.add(at+"/max", codeRange, "max %v of an int must be a whole number within 2^53", *p.Max)

		return
	case *p.Min > *p.Max:
		c.add(at+"/min", codeRange, "min %v is above max %v; swap them", *p.Min, *p.Max)

		return
	case *p.Min == *p.Max && !isInt:
		c.add(at+"/min", codeRange, "min and max are both %v; write value: %v", *p.Min, *p.Min)

		return
	case math.IsInf(*p.Max-*p.Min, 0):
		c.add(at+"/min", codeRange, "the range is wider than a float64 can hold")

		return
	case p.Log && *p.Min <= 0:
		c.add(at+"/min", codeLogRange, "log needs a min above 0, not %v", *p.Min)
	}

	c.checkStep(at, p, isInt)
}

func (c *checker) checkStep(at string, p berth.Parameter, isInt bool) {
	if p.Step == nil {
		return
	}

	step, span := *p.Step, *p.Max-*p.Min

	switch {
	case step <= 0:
		c.add(at+"/step", codeStep, "step must be above 0, not %v", step)
	case isInt && step != math.Trunc(step):
		c.add(at+"/step", codeStep, "step %v of an int must be a whole number", step)
	case step > span:
		c.add(at+"/step", codeStep, "step %v is wider than the range %v to %v", step, *p.Min, *p.Max)
	case span/step > maxWhole:
		c.add(at+"/step", codeStep, "step %v makes more than 2^53 values; leave it out", step)
	case p.Log:
		c.add(at+"/step", codeStep, "log and step do not go together; leave one out, or write count for a grid")
	}
}

func wholeBound(v float64) bool { return v == math.Trunc(v) && math.Abs(v) <= maxWhole }

// contains says whether p can take v. A number need not lie on a step: a
// known good value may be tried although the search would not find it.
func contains(p berth.Parameter, v berth.Value) bool {
	if p.Type == berth.ParameterCategorical {
		return slices.Contains(p.Values, v)
	}

	number, ok := v.Number()
	_, isInt := v.Any().(int64)

	return ok && isInt == (p.Type == berth.ParameterInt) &&
		p.Min != nil && p.Max != nil && number >= *p.Min && number <= *p.Max
}
