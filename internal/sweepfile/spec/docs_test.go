package spec_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

func page(t *testing.T, name string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	require.NoError(t, err)

	return string(text)
}

// The Berth side of each search in coming-from.md is the same search: Berth reads it,
// and it asks for the same values as the others.
func TestDocs_ComingFrom(t *testing.T) {
	t.Parallel()

	sections := strings.Split(page(t, "coming-from.md"), "\n## From ")[1:]
	require.Len(t, sections, 4)

	yamlBlock := regexp.MustCompile("(?s)```yaml\n(.*?)```")

	for _, section := range sections {
		name, _, _ := strings.Cut(section, "\n")
		blocks := yamlBlock.FindAllStringSubmatch(section, -1)
		require.Len(t, blocks, 1, name)

		s, err := spec.Decode([]byte(blocks[0][1]), "application/yaml")
		require.NoError(t, err, name)

		require.Len(t, s.Parameters, 2, name)
		lr, batch := s.Parameters[0], s.Parameters[1]
		require.Equal(t, berth.ParameterFloat, lr.Type)
		require.InDelta(t, 0.0001, *lr.Min, 0)
		require.InDelta(t, 0.1, *lr.Max, 0)
		require.True(t, lr.Log, name)
		require.Equal(t, berth.Values{berth.IntValue(32), berth.IntValue(64), berth.IntValue(128)}, batch.Values)
		require.Equal(t, berth.SearchRandom, s.Search.Algorithm, name)
		require.Equal(t, 10, s.Limits.MaxTrials, name)
		require.Equal(t, "val_accuracy", s.Objective.Metric)
		require.Equal(t, berth.GoalMaximize, s.Objective.Goal)

		// What stands in the other form, too.
		other, _, _ := strings.Cut(section, blocks[0][0])
		require.Regexp(t, `\[(32, 64, 128|"32", "64", "128")\]`, other, name)
		require.Regexp(t, `(num_samples|n_trials|maxTrialCount|run_cap)[=:] ?10\b`, other, name)

		require.NotNil(t, s.EarlyStop, name)
		require.Regexp(t, `ASHAScheduler|MedianPruner|medianstop|hyperband`, other, name)

		if strings.Contains(other, "enqueue_trial") {
			require.Len(t, s.Enqueue, 1, name)
		}
	}
}

// Berth refuses everything that limits.md says it refuses, with the named code; so the
// page is corrected once Berth can do it.
func TestDocs_Limits(t *testing.T) {
	t.Parallel()

	const file = "name: a\nimage: a:1\ncommand: [a, \"{{x}}\"]\nparameters: [{name: x, min: 0.5, max: 1}]\nlimits: {max_trials: 2}\n"

	row := regexp.MustCompile("(?m)^\\| `([^`]+)`(?: \\(also ([^)]*)\\))? \\| `(E_\\w+)` \\|")
	rows := row.FindAllStringSubmatch(page(t, "limits.md"), -1)
	require.Len(t, rows, 2)

	refused := func(line, code string) {
		_, err := spec.Decode([]byte(file+line+"\n"), "application/yaml")

		problems := &berth.SpecError{}
		require.ErrorAs(t, err, &problems, line)
		require.True(t, slices.ContainsFunc(problems.Problems, func(p berth.Problem) bool { return p.Code == code }), "%s: %v", line, err)
	}

	for _, r := range rows {
		refused(r[1], r[3])
	}

	_, err := spec.Decode([]byte(file), "application/yaml")
	require.NoError(t, err, "nothing else was wrong")
}

// Each example's sweep file is accepted, and names the image that the script builds of its
// directory.
func TestDocs_Examples(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "sweep.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 10)

	script, err := os.ReadFile(filepath.Join(root, "scripts", "example-images"))
	require.NoError(t, err)

	list, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	require.NoError(t, err)

	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))

		text, err := os.ReadFile(file)
		require.NoError(t, err)

		s := decode(t, string(text))
		require.Equal(t, "berth-examples/"+name+":1", s.Image)
		require.Regexp(t, `(?m)^(for example in .*|example )\b`+name+`\b`, string(script))
		require.Contains(t, string(list), "]("+name+"/", name)
	}

	never, err := os.ReadFile(filepath.Join(root, "examples", "oom", "never-fits.yaml"))
	require.NoError(t, err)
	decode(t, string(never))
}
