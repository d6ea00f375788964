package argv_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

func TestRender(t *testing.T) {
	t.Parallel()

	a := berth.Assignment{
		"lr": berth.FloatValue(1e-4), "n": berth.IntValue(-3), "text": berth.StringValue("; rm -rf / $(x) {{n}}"),
		"dash": berth.StringValue("-rf"), "on": berth.BoolValue(true), "empty": berth.StringValue(""),
	}

	tests := []struct {
		command []string
		want    []string
		err     string
	}{
		{command: []string{"train", "--lr={{lr}}", "--n={{ n }}"}, want: []string{"train", "--lr=0.0001", "--n=-3"}},
		{command: []string{"{{text}}"}, want: []string{"; rm -rf / $(x) {{n}}"}},
		{command: []string{"a{{on}}b{{lr}}{{on}}"}, want: []string{"atrueb0.0001true"}},
		{command: []string{`{"a": {"lr": 1}}`, "}}", "{"}, want: []string{`{"a": {"lr": 1}}`, "}}", "{"}},
		{command: []string{"train", "--dash={{dash}}"}, want: []string{"train", "--dash=-rf"}},
		{command: []string{"train", "-{{n}}"}, want: []string{"train", "--3"}},
		{command: []string{"train", "--inactive={{inactive}}", "x"}, want: []string{"train", "x"}},
		{command: []string{"train", ""}, want: []string{"train", ""}},
		{command: []string{"train", "{{dash}}"}, err: "would be read as an option"},
		{command: []string{"train", "{{n}}x"}, err: "would be read as an option"},
		{command: []string{"train", "{{empty}}{{dash}}"}, err: "would be read as an option"},
		{command: []string{"train", "{{nobody}}"}, err: `there is no parameter "nobody"`},
		{command: []string{"train", "{{lr}"}, err: "no placeholder begins at"},
		{command: []string{"{{inactive}}"}, err: "no program is left"},
		{command: []string{"{{empty}}", "x"}, err: "no program is left"},
		{command: []string{"bin/{{inactive}}", "x"}, err: "no program is left"},
		{command: nil, err: "it is empty"},
		{command: []string{strings.Repeat("x", 200_000)}, err: "longer than"},
	}

	for _, test := range tests {
		s := berth.Spec{Command: test.command, Parameters: []berth.Parameter{{Name: "inactive"}}}

		got, err := argv.Render(s, a)
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))

			continue
		}

		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()

	s := berth.Spec{Parameters: []berth.Parameter{{Name: "inactive"}}, EnvironmentVariables: map[string]string{
		"LR": "{{lr}}", "N": "{{ n }}", "LIST": "{{lr}},{{n}}", "PLAIN": "a {b}}", "OFF": "x{{inactive}}",
	}}
	a := berth.Assignment{"lr": berth.FloatValue(1e-4), "n": berth.IntValue(-3)}

	got, err := argv.Environment(s, a)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"LR": "0.0001", "N": "-3", "LIST": "0.0001,-3", "PLAIN": "a {b}}"}, got)

	for value, want := range map[string]string{"{{nobody}}": `environment_variables.X: there is no parameter "nobody"`, "{{lr}": "no placeholder begins at"} {
		s.EnvironmentVariables = map[string]string{"X": value}
		_, err := argv.Environment(s, a)
		require.ErrorContains(t, err, want)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	}
}

func TestSure(t *testing.T) {
	t.Parallel()

	low, high, below := 0.0, 9.0, -1.0
	parameters := []berth.Parameter{
		{Name: "n", Type: berth.ParameterInt, Min: &low, Max: &high},
		{Name: "below", Type: berth.ParameterFloat, Min: &below, Max: &high},
		{Name: "maybe", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue(""), berth.StringValue("x")}},
		{Name: "big", Type: berth.ParameterFixed, Value: new(berth.StringValue(strings.Repeat("x", 100_000)))},
		{Name: "z", Type: berth.ParameterDerived, Expr: "n - 5"},
	}

	for element, want := range map[string]bool{
		"x": true, "{{n}}": true, "--x={{below}}": true, "--x={{z}}": true, "{{maybe}}{{n}}": true, "x{{maybe}}{{z}}": true,
		"{{big}}": true, "{{n}}{{z}}": true, "{{z}}": false, "{{below}}": false, "{{maybe}}{{below}}": false, "{{maybe}}{{z}}": false,
		"{{big}}{{big}}": false, "{{": false,
	} {
		s := berth.Spec{Command: []string{"train", element}, Parameters: parameters}
		require.Equal(t, want, argv.Sure(s), element)
	}

	require.False(t, argv.Sure(berth.Spec{Command: []string{"{{maybe}}"}, Parameters: parameters}), "the program may be empty")
}
