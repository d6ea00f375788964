package runtrial

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// json.dump(results, file, indent=2) says what json.dump(results, file) says.
func TestReadFile_IndentedRecordsAreTheSameRecords(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ metric, record, indented string }{
		"the best beside it": {"val_loss", `{"val_loss": 0.4, "best": {"val_loss": 0.3}}`, "{\n  \"val_loss\": 0.4,\n  \"best\": {\n    \"val_loss\": 0.3\n  }\n}\n"},
		"by split":           {"val_loss", `{"val": {"loss": 0.4}, "train": {"loss": 0.1}}`, "{\n  \"val\": {\n    \"loss\": 0.4\n  },\n  \"train\": {\n    \"loss\": 0.1\n  }\n}\n"},
		"a bare name":        {"loss", `{"val": {"loss": 0.4}, "train": {"loss": 0.1}}`, "{\n  \"val\": {\n    \"loss\": 0.4\n  },\n  \"train\": {\n    \"loss\": 0.1\n  }\n}\n"},
	} {
		for form, text := range map[string]string{"one line": c.record + "\n", "indented": c.indented} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()

				objective := berth.Objective{Metric: c.metric, Goal: berth.GoalMinimize}
				o, _ := autoOutput(t, objective)
				require.NoError(t, os.WriteFile(filepath.Join(o.run.dirs.out, metricsName), []byte(text), 0o600))
				o.file.read(math.MaxInt64)
				o.finish()

				value, _ := o.metrics.objective(objective)
				require.NotNil(t, value)
				require.InDelta(t, 0.4, *value, 0)
			})
		}
	}
}

// What begins like a record and is none is read line by line, and delays nothing behind it.
func TestReadFile_BrokenRecordsOfSeveralLines(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		text string
		live bool // it is there before the file's end
		want float64
	}{
		"cut off":                {"{\n  \"epoch\": 1,\n  \"acc\": 0.25,\n", false, 0.25},
		"a record behind":        {"{\n  \"acc\": 0.25,\n{\"acc\": 0.5}\n", true, 0.5},
		"two of several lines":   {"{\n  \"acc\": 0.25\n}\n{\n  \"acc\": 0.5\n}\n", true, 0.5},
		"a list":                 {"[\n  {\n    \"acc\": 0.25\n  },\n  {\n    \"acc\": 0.5\n  }\n]\n", true, 0.5},
		"braces in a text":       {"{\n  \"note\": \"}{{\",\n  \"acc\": 0.5\n}\n", true, 0.5},
		"a dict of Python":       {"{'epoch': 1,\n 'acc': 0.5}\n", true, 0.5},
		"no end, and very large": {"{\n  \"acc\": 0.5,\n" + strings.Repeat("  \"note\": \""+strings.Repeat("x", 1000)+"\",\n", 300), true, 0.5},
		"behind words":           {"Results: {\n  \"acc\": 0.5\n}\n", true, 0.5},
		"behind words, deeper":   {"Results: {\n  \"acc\": 0.5,\n  \"per_class\": {\n    \"cat\": {\n      \"acc\": 0.1\n    }\n  }\n}\n", true, 0.5},
		"behind words, no end":   {"acc: 0.25, more: {\n  \"lr\": 0.25,\nacc: 0.5\n", false, 0.5},
		"the end is not whole":   {"{\n  \"acc\": 0.25\n}\n{\n  \"acc\": 0.5", false, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objective := berth.Objective{Metric: "acc"}
			o, _ := autoOutput(t, objective)
			require.NoError(t, os.WriteFile(filepath.Join(o.run.dirs.out, metricsName), []byte(c.text), 0o600))
			o.file.read(math.MaxInt64)

			if value, _ := o.metrics.objective(objective); c.live {
				require.NotNil(t, value)
				require.InDelta(t, c.want, *value, 0)
			}

			o.finish()

			value, _ := o.metrics.objective(objective)
			require.NotNil(t, value)
			require.InDelta(t, c.want, *value, 0)
			require.Empty(t, o.notes())
		})
	}
}
