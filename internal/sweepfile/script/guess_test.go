package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

func named(name, kind string, usual any) Flag {
	f := Flag{Names: []string{"--" + name}, Dest: strings.ReplaceAll(name, "-", "_"), Type: kind, Form: FormValue}

	switch v := usual.(type) {
	case int:
		f.Default = new(berth.IntValue(int64(v)))
	case float64:
		f.Default = new(berth.FloatValue(v))
	case bool:
		f.Default = new(berth.BoolValue(v))
	case string:
		f.Default = new(berth.StringValue(v))
	}

	return f
}

func with(f Flag, change func(*Flag)) Flag {
	change(&f)

	return f
}

func choices(texts ...string) func(*Flag) { return func(f *Flag) { f.Choices = texts } }

// TestGuess compares the guesses with files that people would write by hand.
func TestGuess(t *testing.T) {
	t.Parallel()

	const left = ""

	required := func(f *Flag) { f.Required = true }

	for _, test := range []struct {
		flag Flag
		want string // the parameter; empty = the command does not name it
	}{
		{named("lr", TypeFloat, 0.01), "type: float, min: 0.0003, max: 0.1, log: true, default: 0.01"},
		{named("learning-rate", TypeFloat, 1e-4), "type: float, min: 0.000003, max: 0.001, log: true, default: 0.0001"},
		{named("lr", TypeFloat, nil), "type: float, min: 0.00003, max: 0.01, log: true"},
		{named("lr", TypeFloat, 0.5), "type: float, min: 0.02, max: 1, log: true, default: 0.5"},
		{named("lr", "str", "auto"), left},
		{named("lr", TypeNone, 0.001), left}, // argparse would pass a text
		{with(named("lr", TypeFloat, 0.01), choices("0.1", "0.01")), left},
		{named("batch-size", TypeInt, 64), "type: categorical, values: [32, 64, 128], default: 64, memory: true"},
		{named("batch", TypeInt, 1), "type: categorical, values: [1, 2], default: 1, memory: true"},
		{named("bs", TypeInt, nil), "type: categorical, values: [16, 32, 64], memory: true"},
		{named("test-batch-size", TypeInt, 1000), left},
		{named("dropout", TypeFloat, 0.2), "type: float, min: 0, max: 0.5, default: 0.2"},
		{named("drop-rate", TypeFloat, 0.7), "type: float, min: 0, max: 0.7, default: 0.7"},
		{named("weight-decay", TypeFloat, 0.0), "type: float, min: 0.000001, max: 0.01, log: true"},
		{named("weight-decay", TypeFloat, 0.05), "type: float, min: 0.000001, max: 0.05, log: true, default: 0.05"},
		{named("epochs", TypeInt, 90), "type: fixed, value: 90"},
		{with(named("epochs", TypeInt, nil), required), "type: fixed, value: REPLACE-ME"},
		{named("seed", TypeInt, 42), "type: fixed, value: 42"},
		{named("seed", TypeInt, nil), left},
		{named("output-dir", "str", "runs/x"), `type: fixed, value: "/trial/out"`},
		{named("save-path", "str", "model.keras"), `type: fixed, value: "/trial/out/model.keras"`},
		{named("model_dir", "str", "/tmp/waves"), `type: fixed, value: "/trial/out"`},
		{named("out", "str", nil), left}, // the script may write nothing
		{with(named("out", "str", nil), required), `type: fixed, value: "/trial/out"`},
		{with(named("save", "str", nil), func(f *Flag) { f.Form = "switch" }), left},

		// Everything else stays as the script has it.
		{named("hidden", TypeInt, 128), left},
		{named("data-dir", "str", "./data"), left},
		{with(named("optimizer", "str", "adam"), choices("adam", "sgd")), left},
		{with(named("mode", "str", nil), func(f *Flag) { required(f); choices("on", "off")(f) }), "type: fixed, value: REPLACE-ME"},
		{with(named("mode", "str", "on"), required), `type: fixed, value: "on"`}, // click prompts for it
		{with(named("data-dir", "str", nil), required), "type: fixed, value: REPLACE-ME"},
		{with(named("data-dir", "str", "a\x1bb"), required), "type: fixed, value: REPLACE-ME"},
	} {
		got := GuessFlags([]Flag{test.flag})[0]
		require.Equal(t, test.want, got.Parameter, "%+v", test.flag)
		require.Equal(t, test.want == left, got.Treatment == Left && len(got.Elements) == 0, "%+v", test.flag)
		require.Equal(t, strings.Contains(test.want, "REPLACE-ME"), got.Treatment == Fill, "%+v", test.flag)
	}
}

// The file has for each flag its treatment, and the reason.
func TestSweepFile_MarksEachFlag(t *testing.T) {
	t.Parallel()

	text := Plan{Objective: GuessObjective(""), Guesses: GuessFlags([]Flag{
		named("lr", TypeFloat, 0.01),
		with(named("opt", "str", "adam"), choices("adam", "sgd")),
		with(named("depth", TypeNone, 3), func(f *Flag) { f.Help = "how\ndeep" }),
		with(named("sizes", TypeInt, nil), func(f *Flag) { f.Form, f.Required = "list", true }),
		{Form: FormCommand, Names: []string{"train"}, Dest: "train", Choices: []string{"test", "fetch"}},
		{Names: []string{"-b"}, Dest: "batch", Type: TypeInt, Form: FormValue},
	})}.SweepFile()

	for _, want := range []string{
		"  - \"--lr={{lr}}\"\n  - \"--sizes={{sizes}}\"\n  - \"train\"\n  - \"-b\"\n  - \"{{batch}}\"\n",
		"# opt: guess: at the script's default: adam (one of adam, sgd)\n",
		"# depth: guess: at the script's default: 3; the script would take a text: give it a type, such as type=float, to search it; the script says: how deep\n",
		"# sizes: guess: FILL IN: the script requires it",
		"# train: guess: subcommand: the one that trains; others: test, fetch\n",
		"objective: {metric: REPLACE-ME, goal: minimize}   # guess: FILL IN",
	} {
		require.Contains(t, text, want)
	}

	require.Contains(t, Plan{}.SweepFile(), "# FILL IN: nothing is searched yet.")
}

// TestSweepFile_IsAccepted: Berth accepts the file that it made for any flags, once it is filled in.
func TestSweepFile_IsAccepted(t *testing.T) {
	t.Parallel()

	words := []string{
		"lr", "batch-size", "dropout", "seed", "epochs", "out", "data-dir", "layers", "a.b", "1st", "Größe", "name", "NAME", "name_2", "weight-decay", "x{{y}}",
	}
	texts := []string{"", "a", "-x", "on", "1", "a b", "é\"\\", "\x00", "{{lr}}", "#x", "null", "\u202eabc", strings.Repeat("x", 5000)}

	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.Map(rapid.Int64Range(-1<<53, 1<<53), berth.IntValue),
			rapid.Map(rapid.Int64Range(-3, 300), berth.IntValue),
			rapid.Map(rapid.Float64Range(-1e300, 1e300), berth.FloatValue),
			rapid.Map(rapid.Float64Range(0, 1), berth.FloatValue),
			rapid.Map(rapid.Bool(), berth.BoolValue),
			rapid.Map(rapid.SampledFrom(texts), berth.StringValue),
		)

		var flags []Flag

		for i := range rapid.IntRange(0, 8).Draw(t, "flags") {
			word := rapid.SampledFrom(words).Draw(t, "name")
			f := Flag{
				Dest: word, Form: rapid.SampledFrom([]string{FormValue, FormValue, "switch", "list"}).Draw(t, "form"),
				Type: rapid.SampledFrom([]string{TypeInt, TypeFloat, "str", "bool", TypeNone}).Draw(t, "type"),
				Help: rapid.SampledFrom(texts).Draw(t, "help"), Required: rapid.Bool().Draw(t, "required"),
				Choices: rapid.SliceOfN(rapid.SampledFrom(texts), 0, 3).Draw(t, "choices"),
			}
			if rapid.IntRange(0, 4).Draw(t, "positional") > 0 {
				f.Names = []string{fmt.Sprintf("--%s%d", word, i)}
			}
			if rapid.Bool().Draw(t, "has default") {
				f.Default = new(value.Draw(t, "default"))
			}
			flags = append(flags, f)
		}

		if rapid.Bool().Draw(t, "subcommand") {
			flags = append(flags, Flag{Form: FormCommand, Names: []string{"train"}, Dest: "train"})
		}

		plan := Plan{
			Script: "train.py", Name: "x-train", Image: "x-train:1", File: "train.py", Trials: 20, Guesses: GuessFlags(flags), Objective: GuessObjective(""),
		}
		text := plan.SweepFile()
		_, err := spec.Decode([]byte(strings.ReplaceAll(text, berth.Placeholder, "filled_in")), "application/yaml")
		require.NoError(t, err, text)
	})
}
