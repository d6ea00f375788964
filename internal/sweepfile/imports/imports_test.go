package imports_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/imports"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

func open(path string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", path)) }

// read imports a file of testdata.
func read(t *testing.T, name, study string) (imports.Result, error) {
	t.Helper()

	text, err := open(name)
	require.NoError(t, err)

	return imports.Import(imports.Source{Name: name, Text: text, Study: study, Open: open})
}

// decode reads an imported file as the server does, with a value for each placeholder.
func decode(t *testing.T, text string) berth.Spec {
	t.Helper()

	s, err := spec.Decode([]byte(strings.ReplaceAll(text, berth.Placeholder, "filled_in")), "application/yaml")
	require.NoError(t, err, text)

	return s
}

// TestGolden imports each file of testdata. The sweep file lists the losses in its head.
func TestGolden(t *testing.T) {
	t.Parallel()

	for name, tool := range map[string]string{
		"wandb-hyperband.yaml": "W&B", "wandb-distributions.yaml": "W&B", "wandb-hydra.yaml": "W&B",
		"katib-median.yaml": "Katib", "katib-tfjob.yaml": "Katib", "katib-hyperband.yaml": "Katib",
		"nni-config.yml": "NNI", "nni-space.json": "NNI", "nni-nested.json": "NNI",
		"optuna-plain.journal": "Optuna", "optuna-conditional.journal": "Optuna",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			study := map[string]string{"optuna-conditional.journal": "nets"}[name]
			result, err := read(t, name, study)
			require.NoError(t, err)
			require.Equal(t, tool, result.Tool)
			decode(t, result.Text)

			for _, l := range result.Losses {
				require.Contains(t, result.Text, "#   "+l.Key+": "+l.Instead+"\n")
			}

			golden := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(result.Text), 0o600))
			}

			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), result.Text)
		})
	}
}

// run imports a text, and decodes the result.
func run(t *testing.T, text string) (berth.Spec, imports.Result) {
	t.Helper()

	result, err := imports.Import(imports.Source{Name: "x.yaml", Text: []byte(text), Open: open})
	require.NoError(t, err, text)

	return decode(t, result.Text), result
}

const (
	wandb = "method: random\nprogram: a.py\nrun_cap: 3\nmetric: {name: loss}\nparameters: {x: "
	nni   = "trialCommand: a b\nmaxTrialNumber: 3\nsearchSpace: {x: "
	katib = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nspec: {maxTrialCount: 3, objective: {type: minimize, objectiveMetricName: loss}, " +
		"algorithm: {algorithmName: random}, parameters: [{name: x, "
)

// TestParameter imports one parameter at a time; want is a part of the file, and loss of the
// losses. Empty = no loss names the parameter.
func TestParameter(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, text, want, loss string }{
		{"whole bounds are an int", wandb + "{min: 1, max: 4}}", "{name: x, type: int, min: 1, max: 4}", ""},
		{"unless uniform", wandb + "{min: 1, max: 4, distribution: uniform}}", "{name: x, type: float, min: 1, max: 4}", ""},
		{"bounds as texts", wandb + "{min: '1e-3', max: 4}}", "{name: x, type: float, min: 0.001, max: 4}", ""},
		{"exponents", wandb + "{min: -2.302585093, max: 0, distribution: log_uniform}}", "{name: x, type: float, min: 0.1, max: 1, log: true}", ""},
		{"log from zero", wandb + "{min: 0, max: 1, distribution: log_uniform_values}}", "{name: x, type: float, min: 0, max: 1}", "begins above 0"},
		{"fractions as multiples", wandb + "{min: 0, max: 1, q: 0.1, distribution: q_uniform}}", "{name: x, type: float, min: 0, max: 1, step: 0.1}", ""},
		{"multiples of one", wandb + "{min: 1, max: 5, distribution: q_uniform}}", "{name: x, type: int, min: 1, max: 5}", ""},
		{"a step beyond the range", wandb + "{min: 0, max: 1, q: 4, distribution: q_uniform}}", "{name: x, type: fixed, value: 0}", "only multiples of 4"},
		{"one value", wandb + "{min: 2, max: 2}}", "{name: x, type: fixed, value: 2}", ""},
		{"min above max", wandb + "{min: 2, max: 1}, y: {value: 1}}", "name: y", "no value is between"},
		{"no bounds", wandb + "{min: 2}, y: {value: 1}}", "name: y", "neither values nor min and max"},
		{"unknown distribution", wandb + "{min: 0.5, max: 1, distribution: inv_log_uniform}, y: {value: 1}}", "name: y", `"inv_log_uniform" is not known`},
		{"unknown key", wandb + "{min: 0.5, max: 1, scale: 3}}", "min: 0.5", "Berth has no such setting"},
		{"Booleans and texts like them", wandb + "{values: [true, 'yes', '1', 2.0, '']}}", `values: [true, yes, "1", 2.0, ""]`, ""},
		{"the same number twice", wandb + "{values: [1, 1.0]}}", "values: [1]", "listed twice"},
		{"too few probabilities", wandb + "{values: [1, 2], probabilities: [1]}}", "values: [1, 2]}", "their sum must be 1"},
		{"no values", wandb + "{values: []}, y: {value: 1}}", "name: y", "no value to choose"},
		{"a name of another alphabet", wandb + "{value: 1}, '1-é.z': {value: 2}}", "{name: p_1_z, type: fixed, value: 2}", ""},

		{"upper bound is exclusive", nni + "{_type: randint, _value: [0, 5]}}", "{name: x, type: int, min: 0, max: 4}", ""},
		{"a choice of lists", nni + "{_type: choice, _value: [[1, a], [2]]}}", `values: ["[1,\"a\"]", "[2]"]`, "lists and objects as text"},
		{"a deviation of zero", nni + "{_type: normal, _value: [2, 0]}}", "{name: x, type: fixed, value: 2.0}", "mean ± 3 deviations"},

		{"a discrete value", katib + "parameterType: discrete, feasibleSpace: {list: ['0.1', '1e-3', 2]}}]}", `values: [0.1, "1e-3", 2]`, ""},
		{
			"log and step", katib + "parameterType: double, feasibleSpace: {min: '0.1', max: '1', step: '0.1', distribution: logUniform}}]}",
			"{name: x, type: float, min: 0.1, max: 1, log: true}", "has no steps",
		},
		{"a wide step", katib + "parameterType: double, feasibleSpace: {min: '0.1', max: '1', step: '2'}}]}", "{name: x, type: float, min: 0.1, max: 1}", "as wide as its step"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			_, result := run(t, test.text)
			require.Contains(t, result.Text, test.want)

			var found []string

			for _, l := range result.Losses {
				if last := l.Key[strings.LastIndex(l.Key, ".")+1:]; last == "x" || strings.Contains(l.Key, ".x.") {
					found = append(found, l.Instead)
				}
			}

			if all := strings.Join(found, "\n"); test.loss == "" {
				require.Empty(t, all)
			} else {
				require.Contains(t, all, test.loss)
			}
		})
	}
}

// TestSearch imports the rest of a file: search, limits, command.
func TestSearch(t *testing.T) {
	t.Parallel()

	const x = "parameters: {x: {min: 0.5, max: 1}}\n"

	for _, test := range []struct{ name, text, want, loss string }{
		{"grid over a range", "method: grid\nprogram: a\n" + x, "max: 1, count: 5}", "a grid needs points"},
		{"bayes without a metric", "method: bayes\nprogram: a\n" + x, "search: {algorithm: auto}\nobjective: {metric: REPLACE-ME", "wandb.log"},
		{"early stopping without a metric", "method: random\nearly_terminate: {type: hyperband, min_iter: 1}\n" + x, "objective: {metric: REPLACE-ME", "wandb.log"},
		{"bands that do not divide", "method: random\nmetric: {name: l}\nearly_terminate: {type: hyperband, max_iter: 100, s: 2}\n" + x, "min: 11, max: 100, eta: 3", "step 11, and at 3 times as many"},
		{"eta of a half", "method: random\nmetric: {name: l}\nearly_terminate: {type: hyperband, min_iter: 2, eta: 2.5}\n" + x, "min: 2, max: 1000000000, eta: 3", "W&B does not say where runs end"},
		{"another stop", "method: random\nmetric: {name: l}\nearly_terminate: {type: envelope}\n" + x, "limits:", "no hyperband"},
		{"no program", "method: random\n" + x, "- REPLACE-ME   # W&B does not say it\n  - \"--x={{x}}", ""},
		{"values of wandb.config", "method: random\nprogram: a.py\ncommand: [python, '${program}']\n" + x, "- a.py\n  - \"--x={{x}}\"", "does not pass x"},
		{"flags without a value", "method: random\nprogram: a.py\ncommand: ['${program}', '${args_no_boolean_flags}']\n" + x, "--x={{x}}", "becomes one flag for each value"},
		{"a foreign placeholder", "method: random\nprogram: a.py\ncommand: ['${program}', '{{y}}', '${args}']\n" + x, "- REPLACE-ME", "write \"{{y}}\" without it"},
		{"a cap of zero", "method: random\nprogram: a.py\nrun_cap: 0\n" + x, "max_trials: 20", "is a guess"},
		{"a long time", nni + "{_type: uniform, _value: [0, 1]}}\nmaxExperimentDuration: 2 weeks\n", "limits: {max_trials: 3}", "write limits: {max_duration: 10h}"},
		{"many GPUs", nni + "{_type: uniform, _value: [0, 1]}}\ntrialGpuNumber: 2\n", "limits:", "resources: {device: gpu}"},
		{"an advisor", nni + "{_type: uniform, _value: [0, 1]}}\nadvisor: {name: BOHB}\n", "algorithm: auto", "advisor: Berth has no such setting"},
		{"an unknown algorithm", strings.Replace(katib, "random", "annealing", 1) + "parameterType: int, feasibleSpace: {min: 1, max: 2}}]}", "algorithm: auto", "annealing becomes auto"},
		{"a file of JSON", `{"method": "random", "program": "a", "run_cap": 2, "parameters": {"x": {"values": [1, 2]}}}`, "values: [1, 2]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			_, result := run(t, test.text)
			require.Contains(t, result.Text, test.want)

			if test.loss != "" {
				head, _, _ := strings.Cut(result.Text, "\nversion:")
				require.Contains(t, head, test.loss)
			}
		})
	}
}

// TestRefused has what no import reads.
func TestRefused(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"":                              "the file is empty; import reads a W&B sweep",
		" \n\t":                         "the file is empty",
		"a: [":                          "reading YAML or JSON: line 1",
		"hello":                         "none of the files that can be read: import reads a W&B sweep (method, parameters), a Katib Experiment",
		"a: 1\n---\nb: 2":               "a second document begins",
		"{\"a\": [":                     "reading YAML or JSON",
		"[1, 2]":                        "none of the files",
		"\xff\xfe":                      "none of the files",
		"SQLite format 3\x00":           "optuna.copy_study",
		"image: a\ncommand: [b]":        "a sweep file of Berth already",
		"method: grid\nparameters: [1]": "line 2: cannot unmarshal !!seq",
		"kind: Experiment\napiVersion: kubeflow.org/v1alpha3\nspec: {}":             `"kubeflow.org/v1alpha3"; import reads an Experiment of kubeflow.org/v1beta1`,
		"kind: Experiment\napiVersion: kubeflow.org/v1beta1\nspec: {nasConfig: {}}": "architecture search",
		"searchSpacePath: a.json":                          "an NNI configuration of version 1: import the file that searchSpacePath names",
		"trialCommand: a":                                  "no searchSpace and no searchSpaceFile",
		"trialCommand: a\nsearchSpaceFile: none.json":      "reading the search space: open",
		"trialCommand: a\nsearchSpaceFile: README.md":      `reading the search space "README.md"`,
		"trialCommand: a\nsearchSpaceFile: nni-config.yml": "each of its entries needs a _type",
		`{"op_code":2,"study_id":7}`:                       "name one of the journal's studies with --study, not \"\"; it has []",
		"{\"op_code\":0}\n{\"op_c\n{\"op_code\":2}":        "reading line 2 of the journal",
	} {
		_, err := imports.Import(imports.Source{Name: "x.yaml", Text: []byte(text), Open: open})
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, `importing "x.yaml": `)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	}
}

func TestStudies(t *testing.T) {
	t.Parallel()

	const file = "optuna-conditional.journal"

	_, err := read(t, file, "")
	require.ErrorContains(t, err, `with --study, not ""; it has ["nets" "other"]`)

	_, err = read(t, file, "none")
	require.ErrorContains(t, err, `with --study, not "none"; it has ["nets" "other"]`)

	result, err := read(t, file, "other")
	require.NoError(t, err)
	require.Contains(t, result.Losses, imports.Loss{Key: "directions", Instead: "the first of 2 objectives is kept: make objective a list, with the name of each metric"})
	require.Equal(t, berth.GoalMaximize, decode(t, result.Text).Objective.Goal)
}

// TestJournal has records that Optuna writes seldom.
func TestJournal(t *testing.T) {
	t.Parallel()

	const (
		study = `{"op_code":0,"study_name":"s","directions":[1]}` + "\n"
		x     = `"{\"name\": \"UniformDistribution\", \"attributes\": {\"low\": 0, \"high\": 1}}"`
		wide  = `"{\"name\": \"FloatDistribution\", \"attributes\": {\"low\": -1, \"high\": 0.5, \"step\": null}}"`
	)

	s, result := run(t, `{"op_code":0,"study_name":"old","directions":[2]}`+"\n"+study+study+ // the second is a duplicate
		`{"op_code":1,"study_id":0}`+"\n"+
		`{"op_code":4,"study_id":1,"state":1,"value":2.5,"values":null,"params":{"x":0.75},"distributions":{"x":`+x+`}}`+"\n"+
		`{"op_code":4,"study_id":1}`+"\n"+
		`{"op_code":5,"trial_id":1,"param_name":"x","param_value_internal":-0.5,"distribution":`+wide+`}`+"\n"+
		`{"op_code":7,"trial_id":1,"step":0,"intermediate_value":NaN}`+"\n"+
		`{"op_code":6,"trial_id":1,"state":1,"values":[-1.5]}`+"\n"+
		`{"op_code":6,"trial_id":1,"state":1,"values":[9.5]}`+"\n"+ // it has ended
		`{"op_code":5,"trial_id":1,"param_na`) // half written

	require.Equal(t, "s", s.Name)
	require.Equal(t, berth.GoalMinimize, s.Objective.Goal)
	require.Equal(t, []berth.Assignment{{"x": berth.FloatValue(-0.5)}, {"x": berth.FloatValue(0.75)}}, s.Enqueue)
	require.Contains(t, result.Text, "{name: x, type: float, min: -1, max: 1}")
	require.Contains(t, result.Losses, imports.Loss{Key: "x", Instead: "its range changed during the study: it holds all of the ranges"})
}

// TestTexts writes texts that YAML could take for something else.
func TestTexts(t *testing.T) {
	t.Parallel()

	texts := []string{
		"true", "null", "~", "1", "-1.5e3", "0x1f", "0o17", ".inf", "=", "a: b", "a #b", "- a", "[a]", "it's", `say "it's"`, `a\b`, " a ", "a,b", "&a", "*a", "!a", "%", "@", "|", ">", "é", "a\nb", "2026-01-01",
	}

	data, err := json.Marshal(texts)
	require.NoError(t, err)

	s, _ := run(t, wandb+"{values: "+string(data)+"}}")
	for i, text := range texts {
		require.Equal(t, berth.StringValue(text), s.Parameters[0].Values[i])
	}
}
