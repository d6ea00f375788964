package search_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	sweepfile "github.com/berthml/berth/internal/sweepfile/spec"
)

// A search with separately stored enqueued assignments, which gets only the next ones,
// makes the same trials as a search with its whole file.
func TestWith_ContinuesAsTheWholeFile(t *testing.T) {
	t.Parallel()

	const enqueue = "enqueue: [{x: 3}, {x: 3}, {x: 1}, {x: 7}, {x: 2}]\n" // with a repeated one

	for name, more := range map[string]string{
		"list":             "search: {algorithm: list}\nparameters: [{name: x, values: [1, 2, 3, 7]}]\n",
		"list, undeclared": "",
		"random":           "search: {seed: 4}\nparameters: [{name: x, min: 1, max: 9}]\n",
		"grid":             "search: {algorithm: grid}\nparameters: [{name: x, min: 1, max: 9}]\n",
	} {
		s, err := sweepfile.Decode([]byte("name: a\nimage: b\ncommand: [train, '{{x}}']\n"+enqueue+more), "")
		require.NoError(t, err, name)

		whole, err := search.New(s)
		require.NoError(t, err)

		plan, err := search.New(s.Plan())
		require.NoError(t, err)

		shapes, planned := search.NewShapes(s, "sha256:x", berth.StageMain), search.NewShapes(s.Plan(), "sha256:x", berth.StageMain)
		listed := whole.Enqueued()
		require.Len(t, listed, 4)

		var history []berth.Assignment

		for end := search.EndNone; end == search.EndNone; {
			from := min(len(history), len(listed))
			entries := listed[from:min(from+2, len(listed))]

			if plan.Needs().Entries {
				from, entries = 0, listed
			}

			want, _, err := whole.Next(triedOf(history), 2)
			require.NoError(t, err)

			var got []search.Suggestion

			got, end, err = plan.With(len(listed), from, entries).Next(triedOf(history), 2)
			require.NoError(t, err)
			require.Equal(t, want, got, name)

			for _, a := range values(got) {
				require.Equal(t, shapes.Of(a), planned.Of(a), name)
			}

			history = append(history, values(got)...)
		}
	}
}
