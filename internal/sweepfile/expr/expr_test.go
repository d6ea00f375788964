package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/expr"
)

var scope = expr.Scope{
	"epochs": expr.Number, "batch": expr.Number, "lr": expr.Number,
	"optimizer": expr.String, "amp": expr.Bool, "mixed": expr.Any,
}

var values = berth.Assignment{
	"epochs": berth.IntValue(5), "batch": berth.IntValue(32), "lr": berth.FloatValue(0.5),
	"optimizer": berth.StringValue("adam"), "amp": berth.BoolValue(true), "mixed": berth.IntValue(3),
}

func TestNumber(t *testing.T) {
	t.Parallel()

	tests := map[string]berth.Value{
		"ceil(0.1 * epochs)":      berth.IntValue(1),
		"batch * epochs":          berth.IntValue(160),
		"batch / epochs":          berth.FloatValue(6.4),
		"batch // epochs":         berth.IntValue(6),
		"-7 // 2":                 berth.IntValue(-4),
		"-7 % 3":                  berth.IntValue(2),
		"batch * lr":              berth.FloatValue(16),
		"2 ** 3 ** 2":             berth.IntValue(512),
		"-2 ** 2":                 berth.IntValue(-4),
		"2 ** -1":                 berth.FloatValue(0.5),
		"1 + 2 * 3":               berth.IntValue(7),
		"(1 + 2) * 3":             berth.IntValue(9),
		"10 - 3 - 2":              berth.IntValue(5),
		"min(batch, epochs, 40)":  berth.IntValue(5),
		"max(batch, lr)":          berth.FloatValue(32),
		"round(2.5)":              berth.IntValue(2),
		"floor(-0.5)":             berth.IntValue(-1),
		"abs(-epochs)":            berth.IntValue(5),
		"sqrt(pow(3, 2) + 4 * 4)": berth.FloatValue(5),
		"log(exp(2))":             berth.FloatValue(2),
		"1e-4 * 1e4":              berth.FloatValue(1),
		"mixed + 1":               berth.IntValue(4),
		"2 ** 60":                 berth.FloatValue(1 << 60),
	}

	for source, want := range tests {
		t.Run(source, func(t *testing.T) {
			t.Parallel()

			program, err := expr.Compile(source, expr.Number, scope)
			require.NoError(t, err)

			got, err := program.Number(values)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestBool(t *testing.T) {
	t.Parallel()

	tests := map[string]bool{
		"batch * epochs > 159":                 true,
		"batch > 10 and epochs < 3":            false,
		"batch > 10 && !(epochs < 3)":          true,
		`optimizer == "adam" and not amp`:      false,
		`optimizer != 'sgd'`:                   true,
		"batch == 32.0":                        true,
		"amp == true or batch / 0 > 1":         true,
		"not amp or batch <= 32":               true,
		`mixed == "auto"`:                      false,
		"amp":                                  true,
		"lr >= 0.5":                            true,
		"not batch == 32":                      false,
		"(batch > 1) == (epochs > 1)":          true,
		"batch * 2 > epochs + 1 || epochs > 9": true,
		"not batch + 1 > 3 * epochs":           false,
		"not not amp == true":                  true,
		`optimizer in ["sgd", "adam"]`:         true,
		"batch not in [1, 2.0, 32.0]":          false,
		`optimizer == "//"`:                    false,
		`"é" == 'é' and 7 // 2 == 3`:           true,
	}

	for source, want := range tests {
		t.Run(source, func(t *testing.T) {
			t.Parallel()

			program, err := expr.Compile(source, expr.Bool, scope)
			require.NoError(t, err)

			got, err := program.Bool(values)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()

	tests := map[string]string{
		"":                              "is empty",
		"1 +":                           "ends too early",
		"(1 + 2":                        "ends before a bracket is closed",
		"1 2":                           "fails at character 3: unexpected token Number",
		"nosuch + 1":                    `uses "nosuch", which is no parameter; there are: amp, batch`,
		"batch > 1":                     "gives true or false where a number is needed",
		`optimizer + 1`:                 `fails at character 11: a text where "+" needs a number`,
		`optimizer == 1`:                "fails at character 11: invalid operation: == (mismatched types string and int)",
		"1 < batch < 3":                 "chains comparisons",
		"system(1)":                     "no function; there are: abs, ceil",
		"ceil(1, 2)":                    "2 values for ceil, which takes 1",
		"min()":                         "0 values for min, which takes 1 to 32",
		"ceil(amp)":                     `true or false where "ceil" needs a number`,
		"1e999":                         "value out of range",
		"1.2.3":                         "fails at character 4",
		"batch $ 2":                     `uses "$"`,
		"batch = 2":                     `has "=" at character 7`,
		`"open`:                         "literal not terminated",
		strings.Repeat("(", 1024):       "ends before a bracket is closed",
		strings.Repeat("1+", 600):       "at most 1024",
		")":                             `unexpected token Bracket(")")`,
		"[batch, 2]":                    "gives a list where a number is needed",
		"1 ** true * 2":                 `true or false where "**" needs a number`,
		"1 < (1 < (1 < 2 < 3) < 4) < 5": "chains comparisons",
		`"and" < "a" < "b"`:             "chains comparisons",
		"let a = 1; a":                  `has "let"`,
		"batch; 2":                      `has ";"`,
		"amp ? 1 : 2":                   `has "?"`,
		"len(1..999999999)":             "which is no function",
		"[1..999999999]":                `has ".."`,
		"optimizer matches '.*'":        `has "matches"`,
		"$env":                          `uses "$env"`,
		"nil":                           `uses "nil"`,
	}

	for source, want := range tests {
		_, err := expr.Compile(source, expr.Number, scope)
		require.ErrorContains(t, err, want, source)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	}
}

func TestEvaluateRefuses(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]string{
		"1 / (epochs - 5)":   `fails at character 3: no finite result for "/"`,
		"log(0 * batch)":     `no finite result for "log"`,
		"10 ** 400":          "no finite result",
		"mixed and true":     "",
		"sqrt(-1)":           "no finite result",
		"batch // 0":         "no finite result",
		"exp(batch * 1000)":  "no finite result",
		"-mixed + inactive1": "has no value in this trial",
	} {
		names := expr.Scope{"inactive1": expr.Number, "epochs": expr.Number, "batch": expr.Number, "mixed": expr.Any}

		program, err := expr.Compile(source, expr.Number, names)
		if want == "" {
			require.Error(t, err)

			continue
		}

		require.NoError(t, err, source)

		_, err = program.Number(values)
		require.ErrorContains(t, err, want, source)
	}
}

// TestParametersNamedAsFunctions: a bracket makes a call.
func TestParametersNamedAsFunctions(t *testing.T) {
	t.Parallel()

	program, err := expr.Compile("max(log, 2) + min + count", expr.Number, expr.Scope{"log": expr.Number, "min": expr.Number, "count": expr.Number})
	require.NoError(t, err)
	require.Equal(t, []string{"log", "min", "count"}, program.Names())

	got, err := program.Number(berth.Assignment{"log": berth.IntValue(3), "min": berth.FloatValue(0.5), "count": berth.IntValue(1)})
	require.NoError(t, err)
	require.Equal(t, berth.FloatValue(4.5), got)
}

func TestNamesAndReady(t *testing.T) {
	t.Parallel()

	program, err := expr.Compile("batch * lr + batch", expr.Number, scope)
	require.NoError(t, err)
	require.Equal(t, []string{"batch", "lr"}, program.Names())
	require.True(t, program.Ready(values))
	require.False(t, program.Ready(berth.Assignment{"batch": berth.IntValue(1)}))
}

func TestTypeOf(t *testing.T) {
	t.Parallel()

	choices := func(v ...berth.Value) berth.Parameter {
		return berth.Parameter{Type: berth.ParameterCategorical, Values: v}
	}

	require.Equal(t, expr.Number, expr.TypeOf(choices(berth.IntValue(1), berth.FloatValue(2))))
	require.Equal(t, expr.String, expr.TypeOf(choices(berth.StringValue("a"))))
	require.Equal(t, expr.Any, expr.TypeOf(choices(berth.StringValue("a"), berth.IntValue(1))))
	require.Equal(t, expr.Number, expr.TypeOf(berth.Parameter{Type: berth.ParameterFloat}))
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"ceil(0.1 * epochs)", "batch > 3 and not amp", `optimizer == "x"`, "((", "1e", "-2**-2"} {
		f.Add(seed)
	}

	f.Fuzz(func(_ *testing.T, source string) {
		for _, want := range []expr.Type{expr.Number, expr.Bool} {
			program, err := expr.Compile(source, want, scope)
			if err != nil {
				continue
			}

			_, _ = program.Number(values)
			_, _ = program.Bool(values)
		}
	})
}
