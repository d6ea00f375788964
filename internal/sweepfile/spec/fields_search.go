package spec

import (
	"slices"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// stopRules are what users of other tools look for among the algorithms.
var stopRules = []string{"asha", "hyperband", "median"}

// maxFrom is how many earlier sweeps a search learns from.
const maxFrom = 8

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
		From:      s.texts("from"),
	}

	if len(spec.From) > maxFrom {
		s.add(s.field("from").Offset, s.at("from"), codeTooMany, "a search learns from %d earlier sweeps at most", maxFrom)
	}

	n := s.field("algorithm")

	switch {
	case n == nil, spec.Learns(), slices.Contains([]string{berth.SearchGrid, berth.SearchList, berth.SearchRandom, berth.SearchSobol}, spec.Algorithm):
	case slices.Contains(stopRules, spec.Algorithm):
		s.add(n.Offset, s.at("algorithm"), codeAlgo, "%q stops trials, it does not choose them: leave it out here, and write "+
			"early_stop: {rule: asha, max: 27}, with the number of epochs", spec.Algorithm)
	default:
		s.add(n.Offset, s.at("algorithm"), codeAlgo, "%q is no search algorithm; %s", shorten(spec.Algorithm), algorithmHint)
	}

	return spec
}

// Defaults of early stopping: eta is Syne Tune's. With 4 trials there first, asha loses the
// best half as often as without, for a tenth more seconds (bench/stopping). median's startup
// is Optuna's.
const (
	defaultEta           = 3
	defaultASHAStartup   = 4
	defaultMedianStartup = 5
)

// maxStep is a step that no training reaches.
const maxStep = 1_000_000_000

// mostEta is more than anybody reduces by at once.
const mostEta = 1000

func (o *object) earlyStop() *berth.EarlyStop {
	n := o.field("early_stop")
	if n == nil {
		return nil
	}

	e := o.object("early_stop")
	defer e.finish()

	if n.Kind != document.Object {
		return nil
	}

	stop := &berth.EarlyStop{
		Rule: e.enum("rule", codeValue, "", berth.StopASHA, berth.StopMedian, berth.StopPatience, berth.StopThreshold),
		Min:  e.integer("min", bounds{0, maxStep, codeRange}, 1),
		Max:  e.integer("max", bounds{1, maxStep, codeRange}, 0),
	}

	members := map[string]func(){
		"eta": func() { stop.Eta = e.integer("eta", bounds{2, mostEta, codeRange}, defaultEta) },
		"startup": func() {
			fallback := map[string]int64{berth.StopASHA: defaultASHAStartup, berth.StopMedian: defaultMedianStartup}[stop.Rule]
			stop.Startup = int(e.integer("startup", bounds{1, maxTrials, codeRange}, fallback))
		},
		"interval":  func() { stop.Interval = e.integer("interval", bounds{1, maxStep, codeRange}, 1) },
		"patience":  func() { stop.Patience = int(e.integer("patience", bounds{1, maxStartup, codeRange}, 0)) },
		"min_delta": func() { stop.MinDelta = zero(e.number("min_delta")) },
		"above":     func() { stop.Above = e.number("above") },
		"below":     func() { stop.Below = e.number("below") },
	}

	for _, m := range stopMembers {
		switch {
		case slices.Contains(m.rules, stop.Rule):
			members[m.name]()
		case e.field(m.name) != nil && stop.Rule != "":
			e.add(e.field(m.name).Offset, e.at(m.name), codeEarlyStop, "%s is for the rule %s; leave it out", m.name, strings.Join(m.rules, " or "))
		}
	}

	if why := missing(*stop); why != "" {
		e.add(n.Offset, o.at("early_stop"), codeEarlyStop, "%s", why)
	}

	return stop
}

// stopMembers are the members of early_stop that not every rule reads.
var stopMembers = []struct {
	name  string
	rules []string
}{
	{"eta", []string{berth.StopASHA}},
	{"startup", []string{berth.StopASHA, berth.StopMedian}},
	{"interval", []string{berth.StopMedian}},
	{"patience", []string{berth.StopPatience}},
	{"min_delta", []string{berth.StopPatience}},
	{"above", []string{berth.StopThreshold}},
	{"below", []string{berth.StopThreshold}},
}

// missing says what a rule needs; empty = it has all.
func missing(s berth.EarlyStop) string {
	switch {
	case s.Rule == "":
		return "name the rule, asha, median, patience or threshold, such as early_stop: {rule: asha, max: 27}"
	case s.Rule == berth.StopASHA && s.Max == 0:
		return "asha needs max, the step at which trials end, such as max: 27 for 27 epochs: a trial that has come so far is not stopped"
	case s.Max > 0 && s.Max <= s.Min:
		return "max, the first step that is not judged, must be greater than min, the first that is"
	case s.Rule == berth.StopASHA && s.Min == 0:
		return "asha judges at min, min times eta, and so on: min must be 1 or more"
	case s.Rule == berth.StopPatience && s.Patience == 0:
		return "say after how many reports without an improvement a trial ends, such as patience: 5"
	case s.Rule == berth.StopPatience && s.MinDelta < 0:
		return "min_delta, by how much a value must be better, cannot be negative"
	case s.Rule == berth.StopThreshold && s.Above == nil && s.Below == nil:
		return "say beyond which value a trial is stopped, such as above: 10"
	case s.Above != nil && s.Below != nil && *s.Below >= *s.Above:
		return "above must be greater than below: every value is beyond one of them"
	default:
		return ""
	}
}

func zero(x *float64) float64 {
	if x == nil {
		return 0
	}

	return *x
}

// maxObjectives is more than a person can weigh against each other.
const maxObjectives = 4

// objective reads an object, or a list of up to maxObjectives.
func (o *object) objective() *berth.Objective {
	n := o.field("objective")

	switch {
	case n == nil:
		return nil
	case n.Kind != document.List:
		return o.oneObjective(n, o.at("objective"))
	}

	var all []berth.Objective

	o.each("objective", func(item *document.Node, at string) {
		one := *o.oneObjective(item, at)

		switch {
		case slices.ContainsFunc(all, func(other berth.Objective) bool { return other.Metric == one.Metric }):
			o.add(item.Offset, at+"/metric", codeObjective, "%q is an objective already", shorten(one.Metric))
		case one.Target != nil && len(n.Items) > 1:
			o.add(item.Offset, at+"/target", codeObjective, "with several objectives none has a target; set limits.max_trials")
		}

		all = append(all, one)
	})

	if len(all) == 0 || len(all) > maxObjectives {
		o.add(n.Offset, o.at("objective"), codeObjective, "name 1 to %d objectives", maxObjectives)

		return nil
	}

	first := all[0]
	if len(all) > 1 {
		first.Further = all[1:]
	}

	return &first
}

func (o *object) constraints() (out []berth.Constraint) {
	o.each("constraints", func(n *document.Node, at string) {
		c := o.open(n, at)
		defer c.finish()

		one := berth.Constraint{Metric: c.text("metric"), Max: c.number("max"), Min: c.number("min")}

		switch {
		case n.Kind != document.Object:
		case one.Metric == "" || len(one.Metric) > maxMetric:
			c.add(n.Offset, c.at("metric"), codeConstraint, "name the metric that is bounded, in at most %d bytes, such as latency_ms", maxMetric)
		case slices.ContainsFunc(out, func(other berth.Constraint) bool { return other.Metric == one.Metric }):
			c.add(n.Offset, c.at("metric"), codeConstraint, "%q has a constraint already; write max and min into one", shorten(one.Metric))
		case one.Max == nil && one.Min == nil:
			c.add(n.Offset, at, codeConstraint, "say what %q may be at most or at least, such as max: 20", shorten(one.Metric))
		case one.Max != nil && one.Min != nil && *one.Min > *one.Max:
			c.add(n.Offset, c.at("min"), codeConstraint, "no value is both: min is greater than max")
		}

		out = append(out, one)
	})

	if len(out) > maxConstraints {
		o.add(o.field("constraints").Offset, o.at("constraints"), codeTooMany, "a sweep has at most %d constraints", maxConstraints)
	}

	return out
}

const (
	maxMetric      = 200 // bytes of a metric's name
	maxConstraints = 16
)

func (o *object) oneObjective(n *document.Node, at string) *berth.Objective {
	j := o.open(n, at)
	defer j.finish()

	objective := &berth.Objective{
		Metric:   j.text("metric"),
		Goal:     berth.Goal(j.enum("goal", codeDirection, "maximize", "minimize")),
		Target:   j.number("target"),
		Strategy: berth.Strategy(j.enum("strategy", codeValue, "last", "best", "mean")),
	}

	if n.Kind == document.Object && (len(objective.Metric) == 0 || len(objective.Metric) > maxMetric) {
		j.add(n.Offset, j.at("metric"), codeObjective,
			"name the metric to %s, in at most %d bytes, such as val_accuracy", objective.Goal, maxMetric)
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
