package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/spec"
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
		{command: []string{"{{inactive}}"}, err: "nothing is left"},
		{command: []string{strings.Repeat("x", 200_000)}, err: "longer than"},
	}

	for _, test := range tests {
		s := berth.Spec{Command: test.command, Parameters: []berth.Parameter{{Name: "inactive"}}}

		got, err := spec.Render(s, a)
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))

			continue
		}

		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
}
