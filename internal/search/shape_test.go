package search_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
)

func fixed(name string, value int64) berth.Parameter {
	return berth.Parameter{Name: name, Type: berth.ParameterFixed, Value: new(berth.IntValue(value))}
}

func marked(changes bool, p berth.Parameter) berth.Parameter {
	p.Memory = &changes

	return p
}

func TestMemoryParameters(t *testing.T) {
	t.Parallel()

	lr, batch, optimizer := floatRange("lr", 0, 1), intRange("batch", 1, 8), choice("optimizer", "sgd", "adam")

	for _, test := range []struct {
		name       string
		parameters []berth.Parameter
		want       []string
	}{
		{"nothing said", []berth.Parameter{lr, batch, optimizer}, []string{"batch", "optimizer"}},
		{"some true", []berth.Parameter{lr, marked(true, batch), optimizer}, []string{"batch"}},
		{"a float", []berth.Parameter{marked(true, lr), batch}, []string{"lr"}},
		{"some false", []berth.Parameter{lr, batch, marked(false, optimizer)}, []string{"batch"}},
		{"all false", []berth.Parameter{marked(false, lr), marked(false, batch), marked(false, optimizer)}, nil},
		{"true and false", []berth.Parameter{marked(true, batch), marked(false, optimizer), intRange("n", 1, 2)}, []string{"batch"}},
		{"fixed", []berth.Parameter{marked(true, batch), fixed("width", 32)}, []string{"batch", "width"}},
		{"fixed, false", []berth.Parameter{batch, marked(false, fixed("width", 32))}, []string{"batch"}},
		{"all false and fixed", []berth.Parameter{marked(false, batch), fixed("width", 32)}, []string{"width"}},
		{"derived of one that counts", []berth.Parameter{batch, fixed("w", 2), derived("units", "batch * w")}, []string{"batch", "w", "units"}},
		{"derived of fixed", []berth.Parameter{lr, fixed("epochs", 5), derived("warmup", "ceil(0.1 * epochs)")}, []string{"epochs", "warmup"}},
		{"derived, false", []berth.Parameter{batch, marked(false, derived("units", "batch * 2"))}, []string{"batch"}},
		{"derived of a float", []berth.Parameter{batch, lr, derived("floor", "lr / 100"), derived("twice", "floor * 2")}, []string{"batch"}},
		{"derived of a float, true", []berth.Parameter{batch, lr, marked(true, derived("units", "round(lr * 100)"))}, []string{"units"}},
		{"derived of one not marked", []berth.Parameter{marked(true, batch), intRange("n", 1, 2), derived("d", "n * 2")}, []string{"batch"}},
		{"derived of one that is false", []berth.Parameter{marked(false, batch), derived("d", "batch * 2")}, nil},
	} {
		require.Equal(t, test.want, search.MemoryParameters(spec(berth.SearchRandom, test.parameters...)), test.name)
	}
}

// TestEditsMakeAnotherShape changes one thing at a time that can change memory.
func TestEditsMakeAnotherShape(t *testing.T) {
	t.Parallel()

	key := func(edit func(*berth.Spec)) string {
		s := spec(berth.SearchGrid, choice("kind", "a", "b"), fixed("batch", 32), derived("units", "batch * 2"), marked(false, fixed("seed", 1)))
		s.Command, s.Workdir = []string{"train", "--batch={{batch}}"}, "/app"
		s.EnvironmentVariables = map[string]string{"A": "1"}
		edit(&s)

		searcher, err := search.New(s)
		require.NoError(t, err)

		first, _, err := searcher.Next(berth.Tried{}, 1)
		require.NoError(t, err)

		return search.NewShapes(s, "sha256:1", berth.StageMain).Of(first[0].Values).Key()
	}

	keys := map[string]string{"": key(func(*berth.Spec) {})}

	for name, edit := range map[string]func(*berth.Spec){
		"fixed value": func(s *berth.Spec) { s.Parameters[1].Value = new(berth.IntValue(4096)) },
		"expression":  func(s *berth.Spec) { s.Parameters[2].Expr = "batch * 200" },
		"workdir":     func(s *berth.Spec) { s.Workdir = "/other" },
		"entrypoint":  func(s *berth.Spec) { s.Entrypoint = true },
		"environment": func(s *berth.Spec) { s.EnvironmentVariables["A"] = "2" },
		"command":     func(s *berth.Spec) { s.Command[0] = "run" },
		"thread cap":  func(s *berth.Spec) { s.Resources.CPUs = 2000 },
		"stages":      func(s *berth.Spec) { s.Stages = []berth.Stage{{Name: "base"}} },
		"choice":      func(s *berth.Spec) { s.Parameters[0].Values[0] = berth.StringValue("c") },
	} {
		edited := key(edit)
		for other, k := range keys {
			require.NotEqual(t, k, edited, "%q and %q", other, name)
		}

		keys[name] = edited
	}

	require.Equal(t, keys[""], key(func(s *berth.Spec) { s.Parameters[3].Value = new(berth.IntValue(2)) }), "marked memory: false")
}
