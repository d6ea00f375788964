package spec

import (
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// planned are algorithms the format has and this version does not.
var planned = []string{"asha", "hyperband", "median", "bayes"}

// maxStartup is more than any model needs: the smallest sweeps that learn have 20 trials.
const maxStartup = 1000

const algorithmHint = "today there are auto, gp, grid, list, random, sobol and tpe"

func (o *object) search() berth.SearchSpec {
	s := o.object("search")
	defer s.finish()

	spec := berth.SearchSpec{
		Algorithm: s.text("algorithm"),
		Seed:      s.integer("seed", bounds{-maxWhole, maxWhole, codeRange}, 0),
		Startup:   int(s.integer("startup", bounds{1, maxStartup, codeRange}, 0)),
	}

	n := s.field("algorithm")

	switch {
	case n == nil, spec.Learns(), slices.Contains([]string{berth.SearchGrid, berth.SearchList, berth.SearchRandom, berth.SearchSobol}, spec.Algorithm):
	case slices.Contains(planned, spec.Algorithm):
		s.add(n.Offset, s.at("algorithm"), codeUnsupported, "%q is not there yet; %s", spec.Algorithm, algorithmHint)
	default:
		s.add(n.Offset, s.at("algorithm"), codeAlgo, "%q is no search algorithm; %s", shorten(spec.Algorithm), algorithmHint)
	}

	if s.field("early_stop") != nil {
		s.unsupported("early_stop", "early stopping is not there yet; leave early_stop out")
	}

	return spec
}

func (o *object) objective() *berth.Objective {
	n := o.field("objective")
	if n == nil {
		return nil
	}

	j := o.object("objective")
	defer j.finish()

	objective := &berth.Objective{
		Metric:   j.text("metric"),
		Goal:     berth.Goal(j.enum("goal", codeDirection, "maximize", "minimize")),
		Target:   j.number("target"),
		Strategy: berth.Strategy(j.enum("strategy", codeValue, "last", "best", "mean")),
	}

	if n.Kind == document.Object && (len(objective.Metric) == 0 || len(objective.Metric) > 200) {
		j.add(n.Offset, j.at("metric"), codeObjective,
			"name the metric to %s, in at most 200 bytes, such as val_accuracy", objective.Goal)
	}

	return objective
}

func (o *object) enqueue() []berth.Assignment {
	var out []berth.Assignment

	o.each("enqueue", func(n *document.Node, at string) {
		a := berth.Assignment{}

		if o.is(n, at, document.Object) {
			for i := range n.Fields {
				f := &n.Fields[i]
				a[f.Name] = o.scalar(&f.Value, at+pointer(f.Name))
			}
		}

		out = append(out, a)
	})

	return out
}

func (o *object) parameters() []berth.Parameter {
	var out []berth.Parameter

	o.each("parameters", func(n *document.Node, pointer string) { out = append(out, o.parameter(n, pointer)) })

	return out
}

func (o *object) parameter(n *document.Node, at string) berth.Parameter {
	p := o.open(n, at)
	defer p.finish()

	parameter := berth.Parameter{
		Name:   p.text("name"),
		Type:   berth.ParameterType(p.enum("type", codeValue, "", "float", "int", "categorical", "fixed", "derived")),
		Min:    p.number("min"),
		Max:    p.number("max"),
		Step:   p.number("step"),
		Log:    p.truth("log"),
		Count:  int(p.integer("count", bounds{2, maxTrials, codeGrid}, 0)),
		Values: p.values("values"),
		Value:  p.value("value"),
		Expr:   p.text("expr"),
		When:   p.when(),
		Memory: p.maybe("memory"),
	}
	parameter.Default = p.value("default")

	p.each("probabilities", func(n *document.Node, pointer string) {
		v := 0.0
		if o.is(n, pointer, document.Number) {
			v, _ = o.scalar(n, pointer).Number()
		}

		parameter.Probabilities = append(parameter.Probabilities, v)
	})

	if parameter.Type == "" {
		parameter.Type = p.inferType()
	}

	return parameter
}

// inferType is the type of a parameter without one, by its members; "" when they
// do not tell.
func (o *object) inferType() berth.ParameterType {
	low, high, step := o.field("min"), o.field("max"), o.field("step")

	switch {
	case o.field("expr") != nil:
		return berth.ParameterDerived
	case o.field("value") != nil:
		return berth.ParameterFixed
	case o.field("values") != nil:
		return berth.ParameterCategorical
	case low == nil || high == nil:
		return ""
	case whole(low) && whole(high) && (step == nil || whole(step)):
		return berth.ParameterInt
	default:
		return berth.ParameterFloat
	}
}

// when reads parent → allowed values; a single value is a list of one.
func (o *object) when() map[string]berth.Values {
	n := o.fieldOf("when", document.Object)
	if n == nil || len(n.Fields) == 0 {
		return nil
	}

	out := make(map[string]berth.Values, len(n.Fields))

	for i := range n.Fields {
		f := &n.Fields[i]
		at := o.at("when") + pointer(f.Name)

		if f.Value.Kind != document.List {
			out[f.Name] = berth.Values{o.scalar(&f.Value, at)}

			continue
		}

		inner := &object{reader: o.reader, node: n, pointer: o.at("when")}
		out[f.Name] = inner.values(f.Name)
	}

	return out
}
