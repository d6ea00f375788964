package imports

import (
	"cmp"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
)

// wandbSweep is a sweep configuration of W&B
// (https://docs.wandb.ai/models/sweeps/sweep-config-keys).
type wandbSweep struct {
	Name, Program, Method string
	RunCap                int
	Command               []string
	Parameters            yaml.Node
	EarlyTerminate        *wandbStop
	Metric                struct {
		Name, Goal string
		Target     *number
	}
}

type wandbStop struct {
	Type                     string
	MinIter, MaxIter, Eta, S *number
}

type wandbParameter struct {
	Value, Parameters      yaml.Node // null is a value
	Values                 []yaml.Node
	Probabilities          []float64
	Distribution           string
	Min, Max, Mu, Sigma, Q *number
}

func (d *draft) readWandB(root *yaml.Node) {
	var w wandbSweep
	d.decode(root, "", &w)
	d.tool, d.Name, d.Limits.MaxTrials = "W&B", w.Name, w.RunCap
	d.setAlgorithm("method", w.Method, map[string]string{"grid": berth.SearchGrid, "random": berth.SearchRandom})
	if w.EarlyTerminate != nil {
		d.readHyperband(*w.EarlyTerminate)
	}
	if w.Metric.Name != "" || d.EarlyStop != nil || d.Search.Algorithm == berth.SearchAuto {
		d.Objective = &objective{Metric: cmp.Or(w.Metric.Name, berth.Placeholder), Goal: goalOf(w.Metric.Goal), Target: w.Metric.Target}
		d.lose("metric", "Berth does not read wandb.log: let the script print the metric too, such as %s=0.5", d.Objective.Metric)
	}
	d.readWandBSpace(&w.Parameters, "parameters", "")
	d.readWandBCommand(w)
}

// goalOf is a goal; minimize is W&B's default.
func goalOf(text string) berth.Goal {
	if text == "maximize" {
		return berth.GoalMaximize
	}
	return berth.GoalMinimize
}

// readHyperband turns early_terminate into asha. W&B judges at min_iter, min_iter times eta and
// so on, or at the s last of the steps that max_iter divided by eta again and again gives.
func (d *draft) readHyperband(w wandbStop) {
	const key, lastStep = "early_terminate", 1_000_000_000 // a step that no training reaches

	eta := max(2, math.Round(w.Eta.or(3))) // W&B's default is 3, and the least that asha takes 2
	first, last := math.Trunc(w.MinIter.or(0)), math.Trunc(w.MaxIter.or(0))
	switch {
	case w.Type != "hyperband" || first < 1 && last <= 1:
		d.lose(key, "it is no hyperband with min_iter or max_iter; write early_stop: {rule: asha, max: 27} with the number of epochs")
		return
	case last > 1:
		first = max(1, math.Trunc(last/math.Pow(eta, max(1, w.S.or(1)))))
	default:
		last = lastStep
		d.lose(key+".min_iter", "W&B does not say where runs end: set early_stop.max to the number of epochs")
	}
	d.lose(key, "trials are judged at step %v, and at %v times as many again and again", first, eta)
	d.EarlyStop = &berth.EarlyStop{Rule: berth.StopASHA, Min: int64(first), Max: int64(last), Eta: int64(eta)}
}

// readWandBSpace adds the parameters of an object, and those nested in them.
func (d *draft) readWandBSpace(space *yaml.Node, key, prefix string) {
	d.decode(space, key, &map[string]yaml.Node{}) // which refuses a list
	for name, n := range pairs(space) {
		var p wandbParameter
		in := declaration{key: key + "." + name, name: prefix + name}
		d.decode(n, in.key, &p)
		if p.Parameters.Kind == 0 {
			d.addWandBParameter(in, p)
			continue
		}
		d.lose(in.key, "W&B passes nested parameters as one object; here each is a flag, such as --%s.NAME=1: let the script read them", in.name)
		d.readWandBSpace(&p.Parameters, in.key+".parameters", in.name+".")
	}
}

// addWandBParameter adds a parameter. The bounds of log_uniform are exponents of e; the
// bounds of log_uniform_values are values.
func (d *draft) addWandBParameter(in declaration, p wandbParameter) {
	low, high, step := p.Min.or(0), p.Max.or(0), 0.0

	kind, quantized := strings.CutPrefix(p.Distribution, "q_")
	if quantized {
		step = p.Q.or(1)
	}
	switch {
	case p.Value.Kind != 0:
		d.add(in, berth.Parameter{Type: berth.ParameterFixed, Value: new(d.value(in.key, &p.Value))})
	case p.Values != nil:
		values := make(berth.Values, len(p.Values))
		for i := range values {
			values[i] = d.value(in.key, &p.Values[i])
		}
		d.addChoice(in, values, p.Probabilities)
	case kind == "normal", kind == "log_normal":
		d.addNormal(in, p.Mu.or(0), p.Sigma.or(1), step, kind == "log_normal")
	case p.Min == nil || p.Max == nil:
		d.lose(in.key, "it has neither values nor min and max; write the parameter by hand")
	case kind == "log_uniform":
		d.addMultiples(in, exponents(low, high), step)
	case kind == "log_uniform_values":
		d.addMultiples(in, span{min: low, max: high, log: true}, step)
	case kind == "", kind == "int_uniform":
		d.addRange(in, span{min: low, max: high, whole: p.Min.whole && p.Max.whole})
	case kind == "uniform":
		d.addMultiples(in, span{min: low, max: high}, step)
	default:
		d.lose(in.key, "the distribution %q is not known; write the parameter by hand", kind)
	}
}

// readWandBCommand expands the macros of W&B's command.
func (d *draft) readWandBCommand(w wandbSweep) {
	if len(w.Command) == 0 {
		w.Command = []string{"${interpreter}", "${program}", "${args}"}
	}
	for _, text := range w.Command {
		switch {
		case text == "${env}":
		case text == "${interpreter}":
			d.Command = append(d.Command, "python3")
		case text == "${program}":
			d.Command = append(d.Command, d.literal(cmp.Or(w.Program, berth.Placeholder)))
		case text == "${args_no_hyphens}":
			for _, flag := range d.flags {
				d.Command = append(d.Command, strings.TrimPrefix(flag, "--"))
			}
		case text == "${args}":
			d.Command = append(d.Command, d.flags...)
		case strings.HasPrefix(text, "${args"):
			d.lose("command", "%s becomes one flag for each value, such as --lr=0.1 and --amp=true: let the script read them", text)
			d.Command = append(d.Command, d.flags...)
		case strings.Contains(text, "${"):
			d.lose("command", "the element %q has no counterpart: replace %s by its value", text, berth.Placeholder)
			d.Command = append(d.Command, berth.Placeholder)
		default:
			d.Command = append(d.Command, d.literal(text))
		}
	}
}
