package imports

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// declaration is a parameter as the source names it.
type declaration struct {
	key, name string // where the source declares it; ours may have another name
	when      map[string]berth.Values
}

// span is a range of numbers.
type span struct {
	min, max, step float64 // step 0 = none
	log, whole     bool
}

// tidy rounds a computed number to significant digits.
func tidy(v float64, digits int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // it always parses
	return rounded
}

// exponents is the logarithmic range from e^min to e^max.
func exponents(low, high float64) span {
	return span{min: tidy(math.Exp(low), 6), max: tidy(math.Exp(high), 6), log: true}
}

// addNormal adds a normal distribution as mean ± 3 deviations, which holds 99.7 % of its values.
func (d *draft) addNormal(in declaration, mean, deviation, step float64, log bool) {
	s := span{min: tidy(mean-3*deviation, 6), max: tidy(mean+3*deviation, 6)}
	if log {
		s = exponents(s.min, s.max)
	}
	d.lose(in.key, "a normal distribution becomes the range of its mean ± 3 deviations, %v to %v; narrow it as you know better", s.min, s.max)
	d.addMultiples(in, s, step)
}

// addMultiples adds the multiples of step within a range, as quantized distributions have
// them; step 0 = all numbers.
func (d *draft) addMultiples(in declaration, s span, step float64) {
	if given := s; step > 0 && !s.log {
		s.step, s.whole = step, step == math.Trunc(step)
		s.min = tidy(math.Ceil(tidy(s.min/step, 15))*step, 15)
		if s.max = tidy(math.Floor(tidy(s.max/step, 15))*step, 15); s.min != given.min || s.max != given.max {
			d.lose(in.key, "only multiples of %v: %v to %v instead of %v to %v", step, s.min, s.max, given.min, given.max)
		}
	} else if s.step = step; step > 0 && step == math.Trunc(step) {
		s.min, s.max, s.whole = math.Ceil(s.min), math.Floor(s.max), true
	}
	d.addRange(in, s)
}

// addRange adds a range in a form that Berth accepts, if there is one.
func (d *draft) addRange(in declaration, s span) {
	if s.log && s.min <= 0 {
		s.log = false
		d.lose(in.key, "a logarithmic range begins above 0, not at %v: it is an even one now", s.min)
	}
	if s.whole && s.step == 1 { // as every int has
		s.step = 0
	}
	if s.step > 0 && s.min < s.max && (s.log || s.step > s.max-s.min) {
		d.lose(in.key, "the step %v is left out: a logarithmic range has no steps, and another is at least as wide as its step", s.step)
		s.step = 0
	}
	p := berth.Parameter{Type: berth.ParameterFloat, Min: &s.min, Max: &s.max, Log: s.log}
	if s.whole {
		p.Type = berth.ParameterInt
	}
	if s.step > 0 {
		p.Step = &s.step
	}
	switch {
	case s.min > s.max || math.IsInf(s.max-s.min, 0):
		d.lose(in.key, "no value is between min %v and max %v; write the parameter by hand", s.min, s.max)
	case s.min == s.max && s.whole:
		d.add(in, berth.Parameter{Type: berth.ParameterFixed, Value: new(berth.IntValue(int64(s.min)))})
	case s.min == s.max:
		d.add(in, berth.Parameter{Type: berth.ParameterFixed, Value: new(berth.FloatValue(s.min))})
	default:
		d.add(in, p)
	}
}

// addChoice adds a choice without repeated values, if there is one.
func (d *draft) addChoice(in declaration, values berth.Values, probabilities []float64) {
	p := berth.Parameter{Type: berth.ParameterCategorical, Probabilities: probabilities}
	seen, sum := map[string]bool{}, 0.0
	for i, v := range values {
		if i < len(probabilities) && probabilities[i] > 0 {
			sum += probabilities[i]
		}
		if seen[v.String()] {
			d.lose(in.key, "the value %s is listed twice: it counts once", v)
		} else {
			seen[v.String()], p.Values = true, append(p.Values, v)
		}
	}
	if probabilities != nil && (len(probabilities) != len(p.Values) || slices.Min(probabilities) <= 0 || math.Abs(sum-1) > 1e-9) {
		p.Probabilities = nil
		d.lose(in.key+".probabilities", "each value needs one above 0, and their sum must be 1: all values are alike now")
	}
	if len(p.Values) == 0 {
		d.lose(in.key, "there is no value to choose; write the parameter by hand")
	} else {
		d.add(in, p)
	}
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// add adds a parameter under a name that Berth accepts. Two names must differ in more than case.
func (d *draft) add(in declaration, p berth.Parameter) {
	const longest = 60 // of 64, as a number may follow

	name := strings.Trim(notInName.ReplaceAllString(in.name, "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "p_" + name
	}
	name = name[:min(len(name), longest)]
	p.Name, p.When = name, in.when
	for n := 2; d.parameter(p.Name) != nil; n++ {
		p.Name = name + "_" + strconv.Itoa(n)
	}
	d.Parameters = append(d.Parameters, p)
	d.flags = append(d.flags, "--"+d.literal(in.name)+"={{"+p.Name+"}}")
	d.ours[in.name] = p.Name
}

// parameter is the parameter of a name, in either case; nil = there is none.
func (d *draft) parameter(name string) *berth.Parameter {
	for i := range d.Parameters {
		if strings.EqualFold(d.Parameters[i].Name, name) {
			return &d.Parameters[i]
		}
	}
	return nil
}
