package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/spec"
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

// TestGuess is what people would write by hand.
func TestGuess(t *testing.T) {
	t.Parallel()

	const left = "left out"

	choices := func(texts ...string) func(*Flag) {
		return func(f *Flag) {
			for _, text := range texts {
				f.Choices = append(f.Choices, berth.StringValue(text))
			}
		}
	}
	required := func(f *Flag) { f.Required = true }
	low, high := 0.0, 0.05

	tests := []struct {
		flag Flag
		want string // the parameter; left out
	}{
		{named("lr", TypeFloat, 0.01), "{name: lr, type: float, min: 0.0003, max: 0.3, log: true, default: 0.01}"},
		{named("learning-rate", TypeFloat, 1e-4), "{name: learning_rate, type: float, min: 0.000003, max: 0.003, log: true, default: 0.0001}"},
		{named("lr", TypeFloat, nil), "{name: lr, type: float, min: 0.00003, max: 0.03, log: true}"},
		{named("lr", TypeFloat, 0.5), "{name: lr, type: float, min: 0.02, max: 1, log: true, default: 0.5}"},
		{named("lr", TypeFloat, 1), "{name: lr, type: float, min: 0.03, max: 1, log: true, default: 1}"},
		{with(named("lr", TypeFloat, 0.01), func(f *Flag) { f.Min, f.Max = &low, &high }), "{name: lr, type: float, min: 0.0003, max: 0.05, log: true, default: 0.01}"},
		{named("lr", TypeString, "auto"), "{name: lr, type: fixed, value: auto}"},
		{named("batch-size", TypeInt, 64), "{name: batch_size, type: categorical, values: [32, 64, 128], default: 64, memory: true}"},
		{named("test-batch-size", TypeInt, 1000), "{name: test_batch_size, type: fixed, value: 1000}"},
		{named("batch", TypeInt, 1), "{name: batch, type: categorical, values: [1, 2], default: 1, memory: true}"},
		{named("bs", TypeInt, nil), "{name: bs, type: categorical, values: [16, 32, 64], memory: true}"},
		{named("dropout", TypeFloat, 0.2), "{name: dropout, type: float, min: 0, max: 0.5, default: 0.2}"},
		{named("drop-rate", TypeFloat, 0.7), "{name: drop_rate, type: float, min: 0, max: 0.7, default: 0.7}"},
		{named("momentum", TypeFloat, 0.9), "{name: momentum, type: float, min: 0.5, max: 0.99, default: 0.9}"},
		{named("weight-decay", TypeFloat, 0.0), "{name: weight_decay, type: float, min: 0.000001, max: 0.01, log: true}"},
		{named("weight-decay", TypeFloat, 0.05), "{name: weight_decay, type: float, min: 0.000001, max: 0.05, log: true, default: 0.05}"},
		{named("epochs", TypeInt, 90), "{name: epochs, type: fixed, value: 90}"},
		{with(named("epochs", TypeInt, nil), required), "{name: epochs, type: fixed, value: 5}"},
		{named("seed", TypeInt, 42), "{name: seed, type: fixed, value: 42}"},
		{named("seed", TypeInt, nil), left},
		{named("hidden-size", TypeInt, 128), "{name: hidden_size, type: categorical, values: [64, 128, 256], default: 128, memory: true}"},
		{named("num-layers", TypeInt, 2), "{name: num_layers, type: int, min: 1, max: 3, default: 2, memory: true}"},
		{with(named("optimizer", TypeString, "adam"), choices("adam", "sgd")), "{name: optimizer, type: categorical, values: [adam, sgd], default: adam, memory: true}"},
		{with(named("dataset", TypeString, "mnist"), choices("mnist", "cifar")), "{name: dataset, type: fixed, value: mnist}"},
		{with(named("mode", TypeString, nil), choices("on", "off")), left},
		{with(with(named("mode", TypeString, nil), choices("on", "off")), required), `{name: mode, type: fixed, value: "on"}`},
		{named("output-dir", TypeString, "runs/x"), "{name: output_dir, type: fixed, value: /trial/out}"},
		{named("save-path", TypeString, "model.keras"), "{name: save_path, type: fixed, value: /trial/out/model.keras}"},
		{named("out", TypeString, nil), left},
		{with(named("out", TypeString, nil), required), "{name: out, type: fixed, value: /trial/out}"},
		{named("data-dir", TypeString, "./data"), `{name: data_dir, type: fixed, value: "./data"}`},
		{with(named("data-dir", TypeString, nil), required), "{name: data_dir, type: fixed, value: REPLACE-ME}"},
		{named("data-dir", TypeString, nil), left},
		{named("num-workers", TypeInt, 4), "{name: num_workers, type: fixed, value: 4}"},
		{named("temperature", TypeFloat, 2.0), "{name: temperature, type: float, min: 0.7, max: 6, default: 2}"},
		{named("image-size", TypeInt, 224), "{name: image_size, type: fixed, value: 224}"},
		{named("flip", TypeBoolTrap, true), left},
		{named("amp", TypeBool, false), left},
		{named("nesterov", TypeBool, true), "{name: nesterov, type: categorical, values: [false, true], default: true}"},
		{with(named("verbose", TypeBool, false), func(f *Flag) { f.Form = FormTrue }), left},
		{with(named("sizes", TypeInt, nil), func(f *Flag) { f.Form = FormList }), left},
		{with(named("v", TypeInt, nil), func(f *Flag) { f.Form = FormCount }), left},
		{named("name", TypeString, "a\x1bb"), left}, // a character that nobody sees
		{named("model", TypeString, "resnet"), "{name: model, type: fixed, value: resnet}"},
	}

	for _, test := range tests {
		got := GuessFlags([]Flag{test.flag})[0]

		if test.want == left {
			require.True(t, got.Left, "%+v", got)

			continue
		}

		require.False(t, got.Left, "%s: %+v", test.want, got)
		require.Equal(t, []string{test.want}, got.Parameters)
	}
}

// A switch without a value is an element that is there or not.
func TestGuess_Switches(t *testing.T) {
	t.Parallel()

	flags := []Flag{
		{Names: []string{"--batch-norm"}, Dest: "batch_norm", Type: TypeBool, Form: FormTrue},
		{Names: []string{"--no-augment"}, Dest: "augment", Type: TypeBool, Form: FormFalse},
		{Names: []string{"--bias"}, Negative: []string{"--no-bias"}, Dest: "bias", Type: TypeBool, Form: FormPair},
	}

	var elements []string
	for _, g := range GuessFlags(flags) {
		elements = append(elements, g.Elements...)
	}

	require.Equal(t, []string{"--batch-norm{{batch_norm_is_on}}", "--no-augment{{augment_is_off}}", "--bias{{bias_is_on}}", "--no-bias{{bias_is_off}}"}, elements)
}

// Flags that exclude each other are not set together.
func TestGuess_OneOfAGroup(t *testing.T) {
	t.Parallel()

	got := GuessFlags([]Flag{
		with(named("lr", TypeFloat, 0.1), func(f *Flag) { f.Group = 1 }),
		with(named("epochs", TypeInt, 1), func(f *Flag) { f.Group = 1 }),
	})
	require.False(t, got[0].Left)
	require.True(t, got[1].Left)
}

// TestSweepFile_IsAccepted: whatever flags a script has, Berth takes the file that
// it made, also with everything taken in that was left out.
func TestSweepFile_IsAccepted(t *testing.T) {
	t.Parallel()

	words := []string{
		"lr", "batch-size", "dropout", "momentum", "seed", "epochs", "out", "data-dir", "optimizer", "layers", "hidden", "bn", "verbose",
		"a.b", "1st", "Größe", "name", "NAME", "name_is_on", "weight-decay", "bn_is_on", "gamma", "x{{y}}",
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
				Dest: word, Form: rapid.SampledFrom([]string{FormValue, FormValue, FormTrue, FormFalse, FormPair, FormCount, FormConst, FormList}).Draw(t, "form"),
				Type: rapid.SampledFrom([]string{TypeInt, TypeFloat, TypeString, TypeBool, TypeBoolTrap, TypeOther}).Draw(t, "type"),
				Help: rapid.SampledFrom(texts).Draw(t, "help"), Required: rapid.Bool().Draw(t, "required"), Group: rapid.IntRange(0, 2).Draw(t, "group"),
				Command: rapid.SampledFrom([]string{"", "", "train", "test"}).Draw(t, "command"),
			}
			if rapid.IntRange(0, 4).Draw(t, "positional") > 0 {
				f.Names = []string{fmt.Sprintf("--%s%d", word, i)}
				f.Negative = []string{"--no-" + word}
			}
			if rapid.Bool().Draw(t, "has default") {
				f.Default = new(value.Draw(t, "default"))
			}
			f.Choices = rapid.SliceOfN(value, 0, 3).Draw(t, "choices")
			if rapid.Bool().Draw(t, "bounded") {
				f.Min = new(rapid.Float64Range(-10, 10).Draw(t, "min"))
				f.Max = new(rapid.Float64Range(-10, 10).Draw(t, "max"))
			}
			flags = append(flags, f)
		}

		own, behind, chosen, others := Choose(flags)
		plan := Plan{
			Script: "train.py", Name: "x-train", Image: "x-train:1", Python: "python3", Path: "/app/train.py", Workdir: "/app",
			Guesses: GuessFlags(append(own, behind...)), Behind: len(own), Subcommand: strings.Fields(chosen), Others: others,
			Objective: GuessObjective(""),
		}
		text := plan.SweepFile()
		_, err := spec.Decode([]byte(text), "application/yaml")
		require.NoError(t, err, text)

		taken := strings.ReplaceAll(strings.ReplaceAll(text, "  # - ", "  - "), "# parameters:", "parameters:")
		_, err = spec.Decode([]byte(taken), "application/yaml")
		require.NoError(t, err, taken)
	})
}
