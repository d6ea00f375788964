package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/spec"
	_ "github.com/berthml/berth/internal/testseed"
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

func choices(texts ...string) func(*Flag) {
	return func(f *Flag) {
		for _, text := range texts {
			f.Choices = append(f.Choices, berth.StringValue(text))
		}
	}
}

// TestGuess is what people would write by hand.
func TestGuess(t *testing.T) {
	t.Parallel()

	const left = "left out"

	numbers := func(values ...float64) func(*Flag) {
		return func(f *Flag) {
			for _, v := range values {
				f.Choices = append(f.Choices, berth.FloatValue(v))
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
		{with(named("optimizer", TypeString, "adam"), choices("adam", "sgd")), "{name: optimizer, type: categorical, values: [adam, sgd], default: adam, memory: false}"},
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
		{named("num-workers", TypeInt, 4), left}, // of the machine that it looked on
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
		{named("device", TypeString, "cpu"), left},
		{with(named("cache", TypeString, "/home/look"), func(f *Flag) { f.Computed = true }), left},

		// Without a type argparse passes texts.
		{named("resume", TypeNone, false), left},
		{named("lr", TypeNone, 0.001), left},
		{named("steps", TypeString, 32), left},
		{with(named("k", TypeNone, nil), numbers(1, 2)), left},
		{named("tag", TypeNone, "a"), "{name: tag, type: fixed, value: a}"},
		{named("total", TypeInt, 1e10), "{name: total, type: fixed, value: 10000000000}"},

		// What a script takes bounds what is tried.
		{with(named("batch-size", TypeInt, 64), numbers(64, 128, 256)), "{name: batch_size, type: categorical, values: [64, 128, 256], default: 64, memory: true}"},
		{with(named("hidden", TypeInt, 16), numbers(8, 9, 10, 11, 12, 13, 14, 15, 16, 17)), "{name: hidden, type: categorical, values: [8, 16], default: 16, memory: true}"},
		{with(named("num-layers", TypeInt, 2), numbers(2, 4)), "{name: num_layers, type: categorical, values: [2, 4], default: 2, memory: true}"},
		{with(named("lr", TypeFloat, 0.01), numbers(0.1, 0.01)), "{name: lr, type: categorical, values: [0.1, 0.01], default: 0.01, memory: false}"},
		{with(named("dropout", TypeFloat, 0.1), numbers(0.1, 0.2)), "{name: dropout, type: categorical, values: [0.1, 0.2], default: 0.1, memory: false}"},
		{with(named("level", TypeInt, 5), numbers(1, 2)), left},
		{with(with(named("mode", TypeString, nil), choices("test", "train")), required), "{name: mode, type: fixed, value: train}"},

		// What a script reads is not where it writes.
		{named("base-model", TypeString, "bert-base-uncased"), "{name: base_model, type: fixed, value: bert-base-uncased}"},
		{named("model", TypeString, "google/vit"), "{name: model, type: fixed, value: google/vit}"},
		{named("resume-checkpoint", TypeString, "weights/start.h5"), "{name: resume_checkpoint, type: fixed, value: weights/start.h5}"},
		{named("export", TypeString, "onnx"), "{name: export, type: fixed, value: onnx}"},
		{named("log-dir", TypeString, "logs"), "{name: log_dir, type: fixed, value: /trial/out}"},
		{named("tensorboard-dir", TypeString, "tb"), "{name: tensorboard_dir, type: fixed, value: /trial/out}"},
		{named("model_dir", TypeString, "/tmp/waves"), "{name: model_dir, type: fixed, value: /trial/out}"}, // a new container's /tmp is empty
		{named("params_file", TypeString, "/tmp/params.npz"), "{name: params_file, type: fixed, value: /trial/out/params.npz}"},
		{named("model_dir", TypeString, "models/base"), "{name: model_dir, type: fixed, value: models/base}"},
		{named("data_dir", TypeString, "/tmp/mnist"), "{name: data_dir, type: fixed, value: /tmp/mnist}"},
		{named("log", TypeString, "info"), "{name: log, type: fixed, value: info}"},

		// What the data decides, and what makes trials differ in what they measure.
		{named("in-channels", TypeInt, 3), "{name: in_channels, type: fixed, value: 3}"},
		{named("input-dim", TypeInt, 784), "{name: input_dim, type: fixed, value: 784}"},
		{named("n-features", TypeInt, 20), "{name: n_features, type: fixed, value: 20}"},
		{named("split", TypeFloat, 0.2), "{name: split, type: fixed, value: 0.2}"},
		{named("train-ratio", TypeFloat, 0.8), "{name: train_ratio, type: fixed, value: 0.8}"},
		{named("target-accuracy", TypeFloat, 0.9), "{name: target_accuracy, type: fixed, value: 0.9}"},
		{with(named("loss", TypeString, "mse"), choices("mse", "mae")), "{name: loss, type: fixed, value: mse}"},
		{named("pretrained", TypeBool, false), left},
		{named("lr-decay", TypeFloat, 1e-6), "{name: lr_decay, type: float, min: 0.0000001, max: 0.00001, log: true, default: 0.000001}"},
		{named("gamma", TypeFloat, 0.9), "{name: gamma, type: float, min: 0.5, max: 0.999, default: 0.9}"},
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

	one := func(f *Flag) { f.Group, f.GroupRequired = 1, true }
	got = GuessFlags([]Flag{
		with(named("fast", TypeBool, nil), func(f *Flag) { one(f); f.Form = FormTrue }),
		with(named("nesterov", TypeBool, nil), func(f *Flag) { one(f); f.Form = FormTrue }),
	})
	require.False(t, got[0].Left)
	require.Equal(t, []string{"--fast"}, got[0].Elements, "the script requires one of them")
	require.Empty(t, got[0].Parameters)
	require.True(t, got[1].Left)
}

// A first sweep of 20 trials does not measure 27 shapes. What the script requires stays.
func TestGuessFlags_MeasuresHalfOfTheTrialsAtMost(t *testing.T) {
	t.Parallel()

	required := func(f *Flag) { f.Required = true }
	got := GuessFlags([]Flag{
		named("batch-size", TypeInt, 64), named("num-layers", TypeInt, 2), with(named("width", TypeInt, nil), required),
		with(named("optimizer", TypeString, "adam"), choices("adam", "sgd")),
	})

	left := map[string]bool{}
	for _, g := range got {
		left[g.Name] = g.Left
	}

	require.Equal(t, map[string]bool{"batch_size": false, "num_layers": true, "width": false, "optimizer": false}, left)
	require.Contains(t, got[1].Why, "each of its values is measured apart")
	require.Contains(t, Plan{Guesses: got}.SweepFile(), "\n  # - \"--num-layers={{num_layers}}\"\n")
}

func TestChoose(t *testing.T) {
	t.Parallel()

	for want, commands := range map[string][]string{
		"train":        {"prepare", "train"},
		"train resnet": {"prepare", "train", "train resnet", "train vit"},
		"a":            {"a", "b"},
	} {
		flags := []Flag{{Dest: "seed"}}
		for _, name := range commands {
			flags = append(flags, Flag{Form: FormCommand, Command: name})
		}

		own, of, chosen, _ := Choose(flags)
		require.Equal(t, want, chosen)
		require.Len(t, own, 1)
		require.Empty(t, of)
	}
}

// A list would take the argument behind it.
func TestSweepFile_ListsComeLast(t *testing.T) {
	t.Parallel()

	list := with(named("layers", TypeInt, nil), func(f *Flag) { f.Form, f.Required = FormList, true })
	data := Flag{Dest: "data", Type: TypeString, Form: FormValue, Required: true}
	text := Plan{Guesses: GuessFlags([]Flag{list, data})}.SweepFile()
	require.Contains(t, text, "  - \"{{data}}\"\n  - \"--layers\"\n  - REPLACE-ME\n")
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
				Dest: word, Form: rapid.SampledFrom([]string{FormValue, FormValue, FormTrue, FormFalse, FormPair, FormCount, FormConst, FormList, FormCommand}).Draw(t, "form"),
				Type: rapid.SampledFrom([]string{TypeInt, TypeFloat, TypeString, TypeBool, TypeBoolTrap, TypeOther, TypeNone}).Draw(t, "type"),
				Help: rapid.SampledFrom(texts).Draw(t, "help"), Required: rapid.Bool().Draw(t, "required"), Group: rapid.IntRange(0, 2).Draw(t, "group"),
				GroupRequired: rapid.Bool().Draw(t, "group required"), Computed: rapid.Bool().Draw(t, "computed"),
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
			Guesses: GuessFlags(append(own, behind...)), Subcommand: strings.Fields(chosen), Others: others,
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

// The comment beside a range says what the range is.
func TestGuessFlags_TheReasonSaysWhatTheRangeIs(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		usual  float64
		most   *float64
		ranged string
		why    string
	}{
		{2, nil, "min: 0.7, max: 6,", "a third to three times the default"},
		{0.25, nil, "min: 0.08, max: 0.8,", "a third to three times the default"},
		{1, nil, "min: 0.3, max: 1,", "a third of the default to 1"},
		{0.5, nil, "min: 0.2, max: 1,", "a third of the default to 1"},
		{2, new(3.0), "min: 0.7, max: 3,", "a third to three times the default, within the script's bounds"},
		{2, new(8.0), "min: 0.7, max: 6,", "a third to three times the default"},
	} {
		g := GuessFlags([]Flag{{Names: []string{"--lam"}, Dest: "lam", Type: TypeFloat, Form: FormValue, Default: new(berth.FloatValue(c.usual)), Max: c.most}})[0]
		require.Contains(t, g.Parameters[0], c.ranged)
		require.Equal(t, c.why, g.Why, "%+v", c)
	}
}
