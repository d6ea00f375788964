package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// Operations, states and directions of Optuna 5.0.0 (storages/journal/_storage.py).
const (
	createStudy, deleteStudy, setStudySystem, createTrial, setTrialParam, setTrialState = 0, 1, 3, 4, 5, 6

	trialComplete, trialPruned, trialFailed = 1, 2, 3
	directionMaximize                       = 2
)

// record is one line of a journal.
type record struct {
	Operation  int    `json:"op_code"`
	StudyID    int    `json:"study_id"`
	StudyName  string `json:"study_name"`
	Directions []int  `json:"directions"`
	System     struct {
		Metrics []string `json:"study:metric_names"`
	} `json:"system_attr"`
	TrialID       int                `json:"trial_id"`
	State         int                `json:"state"`
	Value         *float64           `json:"value"`
	Values        []*float64         `json:"values"`
	Parameter     string             `json:"param_name"`
	Internal      float64            `json:"param_value_internal"`
	Distribution  string             `json:"distribution"`
	Parameters    map[string]float64 `json:"params"`
	Distributions map[string]string  `json:"distributions"`
}

// study is a study with the parameters that its trials asked for.
type study struct {
	name, metric string // empty metric = it has no name
	directions   []int
	trials       []*optunaTrial
	parameters   []string // in the order in which trials asked for them
	spaces       map[string]distribution
}

// optunaTrial is a trial with the values of its parameters.
type optunaTrial struct {
	study  *study
	state  int
	value  *float64 // of the first objective; nil = none, or not finite
	values map[string]berth.Value
}

// distribution is one of Optuna's.
type distribution struct {
	Name       string `json:"name"`
	Attributes struct {
		Low     float64           `json:"low"`
		High    float64           `json:"high"`
		Step    float64           `json:"step"`
		Log     bool              `json:"log"`
		Choices []json.RawMessage `json:"choices"`
	} `json:"attributes"`
	changed bool // between trials
}

// readOptuna reads a study of Optuna's JournalFileBackend.
func (d *draft) readOptuna(text string) error {
	studies, err := replay(text)
	if err != nil {
		return err
	}
	s, err := chooseStudy(studies, d.source.Study)
	if err != nil {
		return err
	}
	d.tool, d.Name, d.Search.Algorithm, d.Limits.MaxTrials = "Optuna", s.name, berth.SearchTPE, max(1, len(s.trials))
	d.Objective = &objective{Metric: cmp.Or(s.metric, berth.Placeholder), Goal: berth.GoalMinimize}
	d.lose("sampler", "a journal does not name it: tpe is Optuna's default")
	d.lose("n_trials", "a journal does not say it: max_trials is the number of the study's trials")
	d.lose("objective", "the returned value becomes a printed one: let the script print NAME=0.5, where NAME is objective.metric")
	if slices.Index(s.directions, directionMaximize) == 0 {
		d.Objective.Goal = berth.GoalMaximize
	}
	if len(s.directions) > 1 {
		d.lose("directions", "the first of %d objectives is kept: make objective a list, with the name of each metric", len(s.directions))
	}
	if slices.ContainsFunc(s.trials, func(t *optunaTrial) bool { return t.state == trialPruned }) {
		d.lose("pruner", "trials were pruned, and a journal does not say by which rule: write early_stop, such as {rule: median}")
	}
	for _, name := range s.parameters {
		d.addDistribution(name, s.spaces[name])
		if slices.ContainsFunc(s.trials, func(t *optunaTrial) bool { _, has := t.values[name]; return t.state == trialComplete && !has }) {
			d.lose(name, "not every complete trial has it, by a condition that only the program knows: write it as when")
		}
	}
	d.enqueueBest(s.trials)
	return nil
}

// notFinite matches the numbers that Python writes and JSON does not have.
var notFinite = regexp.MustCompile(`([:\[,]\s*)(?:NaN|-?Infinity)`)

// replay reads a journal as Optuna does: ids count up.
func replay(text string) ([]*study, error) {
	var studies []*study
	var trials []*optunaTrial
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		var r record
		err := json.Unmarshal([]byte(notFinite.ReplaceAllString(line, "${1}null")), &r)
		switch known := r.StudyID >= 0 && r.StudyID < len(studies); {
		case strings.TrimSpace(line) == "", err != nil && i == len(lines)-1: // which may be half written
		case err != nil:
			return nil, fmt.Errorf("reading line %d of the journal: %w", i+1, err)
		case r.Operation == createStudy: // of two processes the first does
			if !slices.ContainsFunc(studies, func(s *study) bool { return s.name == r.StudyName }) {
				studies = append(studies, &study{name: r.StudyName, directions: r.Directions, spaces: map[string]distribution{}})
			}
		case r.Operation == deleteStudy && known:
			studies[r.StudyID] = &study{spaces: map[string]distribution{}}
		case r.Operation == setStudySystem && known && len(r.System.Metrics) > 0:
			studies[r.StudyID].metric = r.System.Metrics[0]
		case r.Operation == createTrial && known:
			t := &optunaTrial{study: studies[r.StudyID], value: r.Value, values: map[string]berth.Value{}}
			t.study.trials, trials = append(t.study.trials, t), append(trials, t)
			t.apply(r)
		case (r.Operation == setTrialParam || r.Operation == setTrialState) && r.TrialID >= 0 && r.TrialID < len(trials):
			trials[r.TrialID].apply(r)
		}
	}
	return slices.DeleteFunc(studies, func(s *study) bool { return s.name == "" }), nil
}

// apply changes a trial. The range of a parameter holds the ranges of all trials.
func (t *optunaTrial) apply(r record) {
	s := t.study
	if t.state >= trialComplete && t.state <= trialFailed {
		return // it has ended
	}
	if r.Operation == setTrialParam {
		r.Distributions, r.Parameters = map[string]string{r.Parameter: r.Distribution}, map[string]float64{r.Parameter: r.Internal}
	} else if t.state = r.State; len(r.Values) > 0 {
		t.value = r.Values[0]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Distributions)) {
		var x distribution
		if json.Unmarshal([]byte(r.Distributions[name]), &x) != nil {
			continue // of another version
		}
		a, old := &x.Attributes, s.spaces[name]
		if b := old.Attributes; old.Name == "" {
			s.parameters = append(s.parameters, name)
		} else if old.changed || a.Low != b.Low || a.High != b.High {
			a.Low, a.High, a.Step, x.changed = min(a.Low, b.Low), max(a.High, b.High), 0, true
		}
		s.spaces[name], t.values[name] = x, x.value(r.Parameters[name])
	}
}

// chooseStudy is the wanted study of a journal; of a single one, wanted may be empty.
func chooseStudy(studies []*study, wanted string) (*study, error) {
	names := make([]string, len(studies))
	for i, s := range studies {
		if names[i] = s.name; s.name == wanted || wanted == "" && len(studies) == 1 {
			return s, nil
		}
	}
	return nil, fmt.Errorf("name one of the journal's studies with --study, not %q; it has %q", wanted, names)
}

// value is a value as the program got it; internally, a choice is its index.
func (x distribution) value(internal float64) (v berth.Value) {
	switch choices := x.Attributes.Choices; {
	case x.Name == "IntDistribution":
		return berth.IntValue(int64(internal))
	case x.Name == "FloatDistribution" || internal < 0 || int(internal) >= len(choices):
		return berth.FloatValue(internal)
	case json.Unmarshal(choices[int(internal)], &v) != nil:
		return berth.StringValue("None") // as Python prints null
	default:
		return v
	}
}

func (d *draft) addDistribution(name string, x distribution) {
	if x.changed {
		d.lose(name, "its range changed during the study: it holds all of the ranges")
	}
	in, a := declaration{key: name, name: name}, x.Attributes
	switch x.Name {
	case "CategoricalDistribution":
		values := make(berth.Values, len(a.Choices))
		for i := range values {
			if values[i] = x.value(float64(i)); values[i] == berth.StringValue("None") {
				d.lose(name, "a value cannot be null: the program gets the text None")
			}
		}
		d.addChoice(in, values, nil)
	case "IntDistribution", "FloatDistribution":
		d.addRange(in, span{min: a.Low, max: a.High, step: a.Step, log: a.Log, whole: x.Name == "IntDistribution"})
	default:
		d.lose(name, "%q is not known; write the parameter by hand", x.Name)
	}
}

// enqueueBest lists the best complete trials that have every parameter, to be tried first.
func (d *draft) enqueueBest(trials []*optunaTrial) {
	const most = 5

	trials = slices.DeleteFunc(slices.Clone(trials), func(t *optunaTrial) bool { return t.state != trialComplete || t.value == nil })
	slices.SortStableFunc(trials, func(a, b *optunaTrial) int {
		if d.Objective.Goal == berth.GoalMaximize {
			a, b = b, a
		}
		return cmp.Compare(*a.value, *b.value)
	})
	seen := map[string]bool{}

	for _, t := range trials {
		a, whole := berth.Assignment{}, true
		for theirs, name := range d.ours {
			if v, has := t.values[theirs]; d.parameter(name).Searched() {
				a[name], whole = v, whole && has
			}
		}
		if whole && !seen[a.Key()] && len(d.Enqueue) < most {
			seen[a.Key()] = true
			d.Enqueue = append(d.Enqueue, a)
		}
	}
	d.lose("trials", "enqueue has the best %d of %d complete trials, to run again; the others stay in the journal", len(d.Enqueue), len(trials))
}
