package search_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
)

// featuresParts is what the key of the stage features is of, in a trial of the edited spec.
func featuresParts(t *testing.T, edit func(s *berth.Spec, a berth.Assignment)) search.StageParts {
	t.Helper()

	s, a := stagedSpec(), berth.Assignment{"kind": berth.StringValue("a"), "width": berth.IntValue(2), "lr": berth.FloatValue(.5)}
	edit(&s, a)

	recipe, err := search.NewRecipes(s, "sweep", "sha256:1").Parts(a)
	require.NoError(t, err)
	require.Equal(t, "features", recipe[1].Stage)

	return recipe[1]
}

// The cause comes first, in plain words.
func TestStageParts_Differences(t *testing.T) {
	t.Parallel()

	there := featuresParts(t, func(*berth.Spec, berth.Assignment) {})
	earlier := func(edit func(s *berth.Spec, a berth.Assignment)) string {
		return "earlier stages: the key of input 1 is " + featuresParts(t, edit).Earlier[0][:12] + ", there it was " + there.Earlier[0][:12]
	}
	entrypoint := func(s *berth.Spec, _ berth.Assignment) { s.Entrypoint = true }
	width := func(_ *berth.Spec, a berth.Assignment) { a["width"] = berth.IntValue(3) }
	version := func(s *berth.Spec, _ berth.Assignment) {
		s.Datasets = []berth.DatasetMount{{Name: "flowers", Target: "/data", Version: "2"}}
	}
	network := func(s *berth.Spec, _ berth.Assignment) {
		s.Network, s.Secrets, s.Workdir = true, []berth.SecretMount{{Name: "hub", File: "/run/hub"}}, ""
	}

	for name, test := range map[string]struct {
		edit func(s *berth.Spec, a berth.Assignment)
		want []string
	}{
		"nothing": {func(_ *berth.Spec, a berth.Assignment) { a["lr"] = berth.FloatValue(.1) }, nil},
		"a value": {func(_ *berth.Spec, a berth.Assignment) { a["kind"] = berth.StringValue("b") }, []string{
			"values: kind is b, there it was a", "command: argument 2 is --kind=b, there it was --kind=a", "environment: KIND is b, there it was a",
		}},
		"an inactive value": {func(_ *berth.Spec, a berth.Assignment) { delete(a, "kind") }, []string{
			"values: kind is absent, there it was a", "command: argument 2 is absent, there it was --kind=a", "environment: KIND is absent, there it was a",
		}},
		"arguments": {func(s *berth.Spec, _ berth.Assignment) { s.Command = append(s.Command, "--fast", "") }, []string{
			"command: argument 3 is --fast, there it was absent; argument 4 is empty, there it was absent",
		}},
		"an earlier stage": {width, []string{earlier(width)}},
		"the entrypoint":   {entrypoint, []string{earlier(entrypoint), "entrypoint: the image's entrypoint is used, there it was not used"}},
		"a data set":       {version, []string{earlier(version), "data sets: flowers is version 2 at /data, there it was absent"}},
		"a network": {network, []string{
			earlier(network), "workdir: it is absent, there it was /app", "secrets: hub is mounted at /run/hub, there it was absent",
			"network: the only sweep that shares it is sweep, there it was absent",
		}},
	} {
		require.Equal(t, test.want, featuresParts(t, test.edit).Differences(there), name)
	}
}

// Each part of a key makes a difference: a new one, too.
func TestStageParts_DifferencesHaveEachPart(t *testing.T) {
	t.Parallel()

	other := reflect.ValueOf(featuresParts(t, func(s *berth.Spec, _ berth.Assignment) {
		s.Datasets, s.Secrets = []berth.DatasetMount{{Name: "a", Target: "/a"}}, []berth.SecretMount{{Name: "a", File: "/b"}}
		s.Network, s.Entrypoint = true, true
	}))

	for i := range other.NumField() {
		name := other.Type().Field(i).Name
		if name == "Key" || name == "Format" || name == "Stage" { // equal, or no part
			continue
		}

		var is search.StageParts

		reflect.ValueOf(&is).Elem().Field(i).Set(other.Field(i))
		require.Len(t, is.Differences(search.StageParts{}), 1, name)
	}
}

// The nearest key has the most parts in common; of several the first.
func TestStageParts_Nearest(t *testing.T) {
	t.Parallel()

	with := func(kind, fast string) search.StageParts {
		return featuresParts(t, func(s *berth.Spec, a berth.Assignment) {
			a["kind"], s.Command = berth.StringValue(kind), append(s.Command, fast)
		})
	}
	is := with("a", "--fast")

	nearest, differences := is.Nearest([]search.StageParts{with("b", "--fast"), with("a", "--slow"), with("a", "--other")})
	require.Equal(t, 1, nearest)
	require.Equal(t, []string{"command: argument 3 is --fast, there it was --slow"}, differences)

	nearest, differences = is.Nearest(nil)
	require.Equal(t, -1, nearest)
	require.Empty(t, differences)
}
