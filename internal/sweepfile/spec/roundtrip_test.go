package spec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// requireRoundTrip fails unless the JSON of s decodes to s.
func requireRoundTrip(t require.TestingT, s berth.Spec) {
	data, err := json.Marshal(s)
	require.NoError(t, err)

	again, err := spec.Decode(data, "application/json")
	require.NoError(t, err, string(data))
	require.Equal(t, s, again, string(data))
}

func value(t *rapid.T) string {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-1000, 1000), func(n int) string { return fmt.Sprint(n) }),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(v float64) string { return fmt.Sprint(v) }),
		rapid.SampledFrom([]string{"true", "false", `""`, `"a b"`, `"1"`, `"\u00e9"`, `"<&>"`, `"null"`, "1e-300", "-0.0", "1.0"}),
	).Draw(t, "value")
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()

	accepts := schema(t)

	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(1, 100).Draw(t, "low")
		span := rapid.Float64Range(0.001, 1e6).Draw(t, "span")
		pick := func(name string, texts ...string) string { return rapid.SampledFrom(texts).Draw(t, name) }
		maybe := func(name, text string) string { return pick(name, "", text) }

		doc := with(
			fmt.Sprintf("parameters: [{name: a, min: %d, max: %g%s%s}, {name: b, values: [x, %s]%s%s}, {name: c, value: %s%s}, %s]",
				low, float64(low)+span, maybe("log", ", log: true"), maybe("count", ", count: 7"),
				value(t), maybe("probabilities", ", probabilities: [0.25, 0.75]"), pick("memory", "", ", memory: true", ", memory: false"), value(t), maybe("when", ", when: {b: x}"),
				pick("derived", "{name: d, expr: 'a * 2', memory: true}", "{name: n, min: 0, max: 8, step: 2, default: 4}")),
			"command: [train, /trial/in/params.json]",
			"search: {algorithm: random, seed: "+fmt.Sprint(rapid.Int64Range(-1<<53, 1<<53).Draw(t, "seed"))+"}",
			pick("objective", "objective: ", "objective: {metric: m, goal: minimize, target: -1.5e-7}", "objective: [{metric: m, strategy: mean}, {metric: n, goal: minimize}]\nconstraints: [{metric: o, max: 0}]"),
			"resources: {cpus: "+pick("cpus", "auto", "0.01", "1.5", "3")+", memory: "+pick("size", "auto", "1.5GiB", "999MB")+"}",
			"limits: {max_trials: 3, max_duration: "+pick("duration", "null", "1d", "90s", "1h0.5s")+"}",
			"labels: "+pick("labels", "{}", "{a: b, team/x: 'ü'}"),
			"environment_variables: "+pick("env", "{}", "{A: '', B: \"x\\ny\"}"),
			"forbid: "+pick("forbid", "[]", "['a < 0 and b == \"x\"']"),
			"entrypoint: "+pick("entrypoint", "true", "false"),
			"network: "+pick("network", "true", "false"),
			pick("shim", "shim: ", "shim: true", "shim: false"),
		)

		s, err := spec.Decode([]byte(doc), "")
		if err != nil { // two equal choices, mostly
			t.Skip(err)
		}

		requireRoundTrip(t, s)

		written, ok := plain(t, doc)
		require.True(t, ok)
		require.NoError(t, accepts.Validate(written), doc)
	})
}

func FuzzDecode(f *testing.F) {
	for _, test := range bad {
		if len(test.doc) < 10_000 {
			f.Add([]byte(test.doc), test.contentType)
		}
	}

	example, err := os.ReadFile("testdata/example.yaml")
	require.NoError(f, err)
	f.Add(example, "application/yaml")
	f.Add([]byte(base), "")

	s, err := spec.Decode(example, "")
	require.NoError(f, err)

	data, err := json.Marshal(s)
	require.NoError(f, err)
	f.Add(data, "application/json")

	f.Fuzz(func(t *testing.T, data []byte, contentType string) {
		if s, err := spec.Decode(data, contentType); err == nil {
			requireRoundTrip(t, s)
			spec.Warnings(s)
		} else {
			var refused *berth.SpecError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Problems)
		}
	})
}
