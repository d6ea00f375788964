package imports

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
)

// nniConfig is an experiment configuration of NNI, of version 2
// (https://nni.readthedocs.io/en/stable/reference/experiment_config.html).
type nniConfig struct {
	ExperimentName, SearchSpaceFile, TrialCommand string
	SearchSpace                                   yaml.Node
	MaxTrialNumber, TrialConcurrency              int
	Tuner                                         struct {
		Name      string
		ClassArgs struct {
			OptimizeMode string
			Seed         int64
		}
	}
	Assessor struct {
		Name      string
		ClassArgs struct {
			OptimizeMode any // the tuner's counts
			StartStep    int64
		}
	}
}

func (d *draft) readNNI(root *yaml.Node) error {
	var c nniConfig
	d.decode(root, "", &c)
	if c.SearchSpace.Kind != 0 {
		d.readNNISpace(&c.SearchSpace, "searchSpace", c)
		return nil
	}
	if c.SearchSpaceFile == "" {
		return errors.New("the configuration has no searchSpace and no searchSpaceFile; import reads no annotated code")
	}
	text, err := d.source.Open(c.SearchSpaceFile)
	if err != nil {
		return fmt.Errorf("reading the search space: %w", err)
	}
	space, err := parse(text)
	if err == nil && !isSpace(space) {
		err = errors.New("each of its entries needs a _type")
	}
	if err != nil {
		return fmt.Errorf("reading the search space %q: %w", c.SearchSpaceFile, err)
	}
	d.readNNISpace(space, path.Base(c.SearchSpaceFile), c)
	return nil
}

// isSpace says whether a document is a search space of NNI.
func isSpace(root *yaml.Node) bool {
	for _, entry := range pairs(root) {
		if find(entry, "_type") == nil {
			return false
		}
	}
	return root.Kind == yaml.MappingNode && len(root.Content) > 0
}

// find is the value of a key; nil = it is missing.
func find(n *yaml.Node, key string) *yaml.Node {
	for name, value := range pairs(n) {
		if name == key {
			return value
		}
	}
	return nil
}

// readNNISpace reads a search space, and the rest of its configuration.
func (d *draft) readNNISpace(space *yaml.Node, key string, c nniConfig) {
	const shell = "&|;<>$`\"'\\*?~(" // have a meaning to a shell alone

	d.tool, d.Name, d.Limits = "NNI", c.ExperimentName, limits{MaxTrials: c.MaxTrialNumber, MaxParallel: c.TrialConcurrency}
	d.Objective = &objective{Metric: berth.Placeholder, Goal: goalOf(cmp.Or(c.Tuner.ClassArgs.OptimizeMode, "maximize"))} // NNI's default
	d.Search.Seed = c.Tuner.ClassArgs.Seed
	d.setAlgorithm("tuner", strings.ToLower(c.Tuner.Name), map[string]string{
		"random": berth.SearchRandom, "gridsearch": berth.SearchGrid, "tpe": berth.SearchTPE, "gp": berth.SearchGP, "gptuner": berth.SearchGP,
	})
	if stop := c.Assessor; strings.EqualFold(stop.Name, "medianstop") {
		d.EarlyStop = &berth.EarlyStop{Rule: berth.StopMedian, Min: stop.ClassArgs.StartStep}
	} else if stop.Name != "" {
		d.lose("assessor", "%q has no counterpart: early_stop has asha, median, patience and threshold", stop.Name)
	}
	d.readEntries(space, key, "", nil)
	d.lose("nni.get_next_parameter", "the script gets its values as flags: read them, or let it open %s, which has all of them", allValues)
	d.lose("nni.report_final_result", "it names no metric: let the script print one, such as val_acc=0.9, and replace %s in objective by its name", berth.Placeholder)
	if strings.ContainsAny(c.TrialCommand, shell) {
		d.lose("trialCommand", "it needs a shell: write program and arguments as a list instead of %q", c.TrialCommand)
		c.TrialCommand = berth.Placeholder
	}
	if d.Command = strings.Fields(d.literal(c.TrialCommand)); len(d.Command) > 0 {
		d.Command = append(d.Command, d.flags...)
	}
}

// readEntries adds the parameters of a search space, or of one branch of a nested choice,
// which are active when that is chosen. A flag has the same name in each branch.
func (d *draft) readEntries(space *yaml.Node, key, prefix string, when map[string]berth.Values) {
	for name, n := range pairs(space) {
		var p struct {
			Type  string
			Value []yaml.Node
		}
		in := declaration{key: strings.TrimPrefix(key+"."+name, "."), name: prefix + strings.TrimSpace(name), when: when}
		if name == "_name" {
			continue
		}
		if d.decode(n, in.key, &p); p.Type == "choice" {
			d.addNNIChoice(in, p.Value)
		} else {
			d.addNNIRange(in, p.Type, p.Value)
		}
	}
}

// addNNIChoice adds a choice, and the parameters that some of its values have.
func (d *draft) addNNIChoice(in declaration, items []yaml.Node) {
	values := make(berth.Values, len(items))
	for i := range items {
		values[i] = d.value(in.key, cmp.Or(find(&items[i], "_name"), &items[i]))
	}
	d.addChoice(in, values, nil)
	for i := range items {
		if find(&items[i], "_name") == nil {
			continue
		}
		when := map[string]berth.Values{d.ours[in.name]: {values[i]}}
		maps.Copy(when, in.when)
		d.readEntries(&items[i], in.key+"."+values[i].String(), in.name+".", when)
	}
}

// addNNIRange adds a range. The upper bound of randint is exclusive.
func (d *draft) addNNIRange(in declaration, kind string, items []yaml.Node) {
	var numbers [3]number // most have two, quantized ones three
	for i := range items[:min(len(items), len(numbers))] {
		d.err = cmp.Or(d.err, numbers[i].UnmarshalYAML(&items[i]))
	}
	low, high, step := numbers[0].float, numbers[1].float, numbers[2].float
	switch kind {
	case "randint":
		d.addRange(in, span{min: math.Ceil(low), max: math.Ceil(high) - 1, whole: true})
	case "uniform", "loguniform", "quniform", "qloguniform":
		d.addMultiples(in, span{min: low, max: high, log: strings.HasSuffix(kind, "loguniform")}, step)
	case "normal", "lognormal", "qnormal", "qlognormal":
		d.addNormal(in, low, high, step, strings.HasSuffix(kind, "lognormal"))
	default:
		d.lose(in.key, "%q is not known; write the parameter by hand", kind)
	}
}
