package imports

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
)

// katibExperiment is an Experiment of Katib
// (https://www.kubeflow.org/docs/components/katib/user-guides/hp-tuning/configure-experiment/).
type katibExperiment struct {
	APIVersion, Kind string
	Metadata         struct{ Name, GenerateName string }
	Spec             struct {
		Objective struct {
			Type, ObjectiveMetricName string
			Goal                      *number
			AdditionalMetricNames     any // Berth keeps all that it reads
			MetricStrategies          []katibSetting
		}
		Algorithm            katibAlgorithm
		EarlyStopping        *katibAlgorithm
		MetricsCollectorSpec struct {
			Collector struct{ Kind string }
			Source    struct{ FileSystemPath any }
		}
		MaxTrialCount, ParallelTrialCount, MaxFailedTrialCount int
		Parameters                                             []katibParameter
		TrialTemplate                                          katibTemplate
		NASConfig                                              any
	}
}

type katibSetting struct{ Name, Value string }

type katibAlgorithm struct {
	AlgorithmName     string
	AlgorithmSettings []katibSetting
}

type katibParameter struct {
	Name, ParameterType string
	FeasibleSpace       struct {
		Min, Max, Step *number
		List           []string
		Distribution   string
	}
}

type katibTemplate struct {
	PrimaryContainerName string
	TrialParameters      []struct {
		Name, Reference string
		Description     any
	}
	TrialSpec struct {
		Kind       string
		APIVersion any
		Spec       struct {
			Template                            katibPod
			PyTorchReplicaSpecs, TFReplicaSpecs map[string]katibGroup
		}
	}
}

type katibGroup struct {
	Replicas, RestartPolicy any
	Template                katibPod
}

type katibPod struct {
	Metadata any
	Spec     struct {
		RestartPolicy any
		Containers    []katibContainer
	}
}

type katibContainer struct {
	Name, Image     string
	Command, Args   []string
	ImagePullPolicy any
}

func (d *draft) readKatib(root *yaml.Node) error {
	var e katibExperiment
	d.decode(root, "", &e)
	s := e.Spec
	switch {
	case e.Kind != "Experiment" || e.APIVersion != "kubeflow.org/v1beta1":
		return fmt.Errorf("this is a %s of %q; import reads an Experiment of kubeflow.org/v1beta1", e.Kind, e.APIVersion)
	case s.NASConfig != nil:
		return errors.New("this is an architecture search (nasConfig), which Berth does not have")
	}
	d.tool, d.Name = "Katib", cmp.Or(e.Metadata.Name, e.Metadata.GenerateName)
	d.Limits = limits{MaxTrials: s.MaxTrialCount, MaxParallel: s.ParallelTrialCount, MaxFailedTrials: s.MaxFailedTrialCount}
	d.Objective = &objective{
		Metric: cmp.Or(s.Objective.ObjectiveMetricName, berth.Placeholder), Goal: goalOf(s.Objective.Type),
		Target: s.Objective.Goal, Strategy: berth.StrategyBest, // Katib's default
	}
	if slices.Contains(s.Objective.MetricStrategies, katibSetting{d.Objective.Metric, "latest"}) {
		d.Objective.Strategy = "" // ours
	} else if s.Objective.MetricStrategies != nil {
		d.lose("spec.objective.metricStrategies", "the best value counts; strategy has last, best and mean")
	}
	d.setAlgorithm("spec.algorithm", s.Algorithm.AlgorithmName, map[string]string{
		"random": berth.SearchRandom, "grid": berth.SearchGrid, "sobol": berth.SearchSobol,
		"tpe": berth.SearchTPE, "multivariate-tpe": berth.SearchTPE, "bayesianoptimization": berth.SearchGP,
	})
	d.readSettings("spec.algorithm", s.Algorithm.AlgorithmSettings, map[string]*int64{"random_state": &d.Search.Seed, "seed": &d.Search.Seed})
	if stop := s.EarlyStopping; stop != nil && stop.AlgorithmName == "medianstop" {
		startup := int64(3) // Katib's default, as is 4
		d.EarlyStop = &berth.EarlyStop{Rule: berth.StopMedian, Min: 4}
		d.readSettings("spec.earlyStopping", stop.AlgorithmSettings, map[string]*int64{"start_step": &d.EarlyStop.Min, "min_trials_required": &startup})
		d.EarlyStop.Startup = int(startup)
	} else if stop != nil {
		d.lose("spec.earlyStopping", "%q is not known; write early_stop by hand", stop.AlgorithmName)
	}
	collector := s.MetricsCollectorSpec.Collector.Kind
	d.Metrics.Source = map[string]string{"": berth.MetricsStdout, "StdOut": berth.MetricsStdout, "File": berth.MetricsFile, "TensorFlowEvent": berth.MetricsTensorBoard}[collector]
	if d.Metrics.Source != berth.MetricsStdout {
		d.lose("spec.metricsCollectorSpec", "of %s: let the program write to the file of the variable TRIAL_METRICS_FILE, event files below /trial/out, or print the metric, such as accuracy=0.9", collector)
	}
	for _, p := range s.Parameters {
		d.addKatibParameter(p)
	}
	d.readTemplate(s.TrialTemplate)
	return nil
}

// readSettings sets the known settings, which are whole numbers.
func (d *draft) readSettings(key string, settings []katibSetting, known map[string]*int64) {
	for _, s := range settings {
		if v, err := strconv.ParseInt(s.Value, 10, 64); err == nil && known[s.Name] != nil {
			*known[s.Name] = v
		} else {
			d.lose(key+".algorithmSettings."+s.Name, "Berth has no such setting")
		}
	}
}

// addKatibParameter adds a parameter, whose values Katib writes as texts.
func (d *draft) addKatibParameter(p katibParameter) {
	space, in := p.FeasibleSpace, declaration{key: "spec.parameters." + p.Name, name: p.Name}

	if strings.HasSuffix(strings.ToLower(space.Distribution), "normal") {
		d.lose(in.key, "%s becomes an even or logarithmic range from min to max; narrow it as you know better", space.Distribution)
	}
	switch {
	case p.ParameterType == "categorical", p.ParameterType == "discrete":
		values := make(berth.Values, len(space.List))
		for i, text := range space.List { // one that a number writes in the same way is that number
			if json.Unmarshal([]byte(text), &values[i]) != nil || values[i].String() != text {
				values[i] = berth.StringValue(text)
			}
		}
		d.addChoice(in, values, nil)
	case (p.ParameterType == "double" || p.ParameterType == "int") && space.Min != nil && space.Max != nil:
		d.addRange(in, span{
			min: space.Min.float, max: space.Max.float, step: space.Step.or(0),
			log: strings.HasPrefix(space.Distribution, "log"), whole: p.ParameterType == "int",
		})
	default:
		d.lose(in.key, "its type is not known, or min or max is missing; write the parameter by hand")
	}
}

// readTemplate reads image and command of the main container of a trial's first process.
func (d *draft) readTemplate(t katibTemplate) {
	const key = "spec.trialTemplate.trialSpec"

	job, containers := t.TrialSpec.Spec, t.TrialSpec.Spec.Template.Spec.Containers
	for _, groups := range []map[string]katibGroup{job.PyTorchReplicaSpecs, job.TFReplicaSpecs} {
		for _, name := range []string{"Worker", "Chief", "Master"} {
			if group, is := groups[name]; is {
				containers = group.Template.Spec.Containers
				d.lose(key+".spec", "a trial is one container: one process of %s runs alone, so the command must not wait for others", name)
			}
		}
	}
	if len(containers) == 0 {
		d.lose(key, "import reads the container of a Job, PyTorchJob or TFJob: name image and command of one process")
		return
	}
	main := max(0, slices.IndexFunc(containers, func(c katibContainer) bool { return c.Name == t.PrimaryContainerName }))
	if len(containers) > 1 {
		d.lose(key+".containers", "a trial is one container: only %q runs", containers[main].Name)
	}
	c := containers[main]
	d.Image, d.Entrypoint = c.Image, len(c.Command) == 0 && len(c.Args) > 0
	given := map[string]string{} // ours by the names of the template
	for _, p := range t.TrialParameters {
		given[p.Name] = d.ours[p.Reference]
	}
	for _, word := range slices.Concat(c.Command, c.Args) {
		d.addWord(trialParameter.ReplaceAllStringFunc(d.literal(word), func(match string) string {
			if name := given[trialParameter.FindStringSubmatch(match)[1]]; name != "" {
				return "{{" + name + "}}"
			}
			d.lose("command", "%s stands for no parameter of this file: replace %s by its value", match, berth.Placeholder)
			return berth.Placeholder
		}))
		if strings.Contains(word, "$(") {
			d.lose("command", "nothing expands $(…) in %q: write the value, or run a shell", word)
		}
	}
}

var trialParameter = regexp.MustCompile(`\$\{trialParameters\.([^}]*)\}`)
