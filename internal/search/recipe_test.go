package search_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/sweepfile/argv"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// stagedSpec has a stage of its own command, one that runs the sweep's, and a trial.
func stagedSpec() berth.Spec {
	s := spec(berth.SearchGrid, choice("kind", "a", "b"), intRange("width", 1, 3), floatRange("lr", 0, 1))
	s.Command, s.Workdir = []string{"train", "--kind={{kind}}", "--width={{width}}", "--lr={{lr}}"}, "/app"
	s.EnvironmentVariables = map[string]string{"RATE": "{{lr}}", "KIND": "{{kind}}"}
	s.Objective = &berth.Objective{Metric: "acc"}
	s.Stages = []berth.Stage{
		{Name: "base", Command: []string{"base", "{{width}}"}, Parameters: []string{"width"}},
		{Name: "features", Parameters: []string{"kind"}},
	}

	return s
}

func stages(t *testing.T, s berth.Spec, a berth.Assignment) []berth.StageRun {
	t.Helper()

	runs, err := search.NewRecipes(s, "sweep", "sha256:1").Of(a)
	require.NoError(t, err)

	return runs
}

func TestRecipes(t *testing.T) {
	t.Parallel()

	s := stagedSpec()
	a := berth.Assignment{"kind": berth.StringValue("a"), "width": berth.IntValue(2), "lr": berth.FloatValue(.5)}
	runs := stages(t, s, a)

	require.Equal(t, "base", runs[0].Name)
	require.Equal(t, berth.Assignment{"width": berth.IntValue(2)}, runs[0].Shape.Values, "it decides the memory")
	require.Equal(t, "features", runs[1].Shape.Stage)
	require.Equal(t, s.Command, runs[1].Shape.Command)
	require.Nil(t, s.ForStage("features").Objective)

	command, err := argv.Render(s.ForStage("features"), s.ValuesFor("features", a))
	require.NoError(t, err)
	require.Equal(t, []string{"train", "--kind=a"}, command, "arguments of other parameters are left out")

	environment, err := argv.Environment(s.ForStage("features"), s.ValuesFor("features", a))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"KIND": "a"}, environment)

	require.Equal(t, a, s.ValuesFor(berth.StageMain, a))
	require.Equal(t, []string{"base", "features"}, s.StagesBefore(berth.StageMain))
	require.Equal(t, []string{"base"}, s.StagesBefore("features"))
}

// A key changes with all that the output depends on, and with nothing else.
func TestRecipes_KeyIsOfWhatTheStageSees(t *testing.T) {
	t.Parallel()

	a := berth.Assignment{"kind": berth.StringValue("a"), "width": berth.IntValue(2), "lr": berth.FloatValue(.5)}
	keys := func(edit func(s *berth.Spec, a berth.Assignment)) (base, features string) {
		s, values := stagedSpec(), maps.Clone(a)
		edit(&s, values)
		runs := stages(t, s, values)

		return runs[0].Key, runs[1].Key
	}
	base, features := keys(func(*berth.Spec, berth.Assignment) {})
	require.NotEqual(t, base, features)

	for name, test := range map[string]struct {
		edit                  func(s *berth.Spec, a berth.Assignment)
		sameBase, sameFeature bool
	}{
		"a value that none reads":    {func(_ *berth.Spec, a berth.Assignment) { a["lr"] = berth.FloatValue(.1) }, true, true},
		"a value of the second":      {func(_ *berth.Spec, a berth.Assignment) { a["kind"] = berth.StringValue("b") }, true, false},
		"a value of the first":       {func(_ *berth.Spec, a berth.Assignment) { a["width"] = berth.IntValue(3) }, false, false},
		"an inactive value":          {func(_ *berth.Spec, a berth.Assignment) { delete(a, "kind") }, true, false},
		"an argument that is absent": {func(s *berth.Spec, _ berth.Assignment) { s.Command = append(s.Command, "--rate={{lr}}") }, true, true},
		"an argument":                {func(s *berth.Spec, _ berth.Assignment) { s.Command = append(s.Command, "--fast") }, true, false},
		"the first command":          {func(s *berth.Spec, _ berth.Assignment) { s.Stages[0].Command = []string{"base2", "{{width}}"} }, false, false},
		"a variable":                 {func(s *berth.Spec, _ berth.Assignment) { s.EnvironmentVariables["X"] = "1" }, false, false},
		"the working directory":      {func(s *berth.Spec, _ berth.Assignment) { s.Workdir = "/src" }, false, false},
		"a secret": {func(s *berth.Spec, _ berth.Assignment) {
			s.Secrets = []berth.SecretMount{{Name: "a", File: "/run/secrets/a"}}
		}, false, false},
		"the version of a data set": {func(s *berth.Spec, _ berth.Assignment) {
			s.Datasets = []berth.DatasetMount{{Name: "a", Target: "/a", Version: "2"}}
		}, false, false},
		"who chose that version": {func(s *berth.Spec, _ berth.Assignment) {
			s.Datasets = []berth.DatasetMount{}
		}, true, true},
		"an image of its own": {func(s *berth.Spec, _ berth.Assignment) {
			s.Stages[1].Image, s.Stages[1].ImageDigest = "b:1", "sha256:2"
		}, true, false},
		"the name of an image": {func(s *berth.Spec, _ berth.Assignment) {
			s.Stages[1].Image, s.Stages[1].ImageDigest = "b:1", "sha256:1"
		}, true, true},
		"a network": {func(s *berth.Spec, _ berth.Assignment) { s.Network = true }, false, false},
		"what it may use": {func(s *berth.Spec, _ berth.Assignment) {
			s.Stages[0].Resources = &berth.Resources{Memory: 1 << 30, CPUs: 2000}
			s.Limits.MaxTrials, s.Objective, s.Search.Seed = 7, nil, 3
		}, true, true},
	} {
		b, f := keys(test.edit)
		require.Equal(t, test.sameBase, b == base, name)
		require.Equal(t, test.sameFeature, f == features, name)
	}
}

// Whatever the trial, a stage's program sees only what its key is of: equal keys, equal sight.
func TestRecipes_EqualKeysSeeTheSame(t *testing.T) {
	t.Parallel()

	type sight struct {
		command     []string
		environment map[string]string
		values      berth.Assignment
	}

	rapid.Check(t, func(t *rapid.T) {
		s := stagedSpec()
		s.Stages[1].Parameters = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"kind", "width", "lr"}), 1, 2, rapid.ID).Draw(t, "read")
		recipes := search.NewRecipes(s, "sweep", "sha256:1")
		seen := map[string]sight{}

		for range 20 {
			a := berth.Assignment{
				"kind":  berth.StringValue(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kind")),
				"width": berth.IntValue(rapid.Int64Range(1, 2).Draw(t, "width")),
				"lr":    berth.FloatValue(rapid.SampledFrom([]float64{.1, .2}).Draw(t, "lr")),
			}

			runs, err := recipes.Of(a)
			require.NoError(t, err)

			for _, run := range runs {
				values := s.ValuesFor(run.Name, a)
				command, err := argv.Render(s.ForStage(run.Name), values)
				require.NoError(t, err)

				environment, err := argv.Environment(s.ForStage(run.Name), values)
				require.NoError(t, err)

				now := sight{command, environment, values}
				if before, known := seen[run.Key]; known {
					require.Equal(t, before, now)
				}

				seen[run.Key] = now
			}
		}
	})
}
