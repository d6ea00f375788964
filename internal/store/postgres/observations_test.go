package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A search that learns gets all trials as they are, although the store remembers those that
// ended: not when one ends that was open, nor when a restored database has others.
func TestSuggest_RemembersOnlyWhatIsOver(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for range 6 {
		b.next(t, gib)
	}

	seen := func() (values []any) {
		_, _, err := b.store.Suggest(t.Context(), b.sweep, 100, 1, berth.SearchNeeds{Past: true}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
			for i, o := range tried.Past {
				require.Equal(t, i+1, o.Number)

				if o.Value == nil {
					values = append(values, o.State)
				} else {
					values = append(values, *o.Value)
				}
			}

			return nil, true, nil
		})
		require.NoError(t, err)

		return values
	}
	ends := func(number int, value float64) {
		b.exec(t, "UPDATE trials SET state = 'succeeded', value = $1, finished_at = now() WHERE number = $2", value, number)
	}

	const open = berth.TrialPending

	require.Equal(t, []any{open, open, open, open, open, open}, seen())
	ends(1, 0.1)
	ends(2, 0.2)
	ends(4, 0.4)
	require.Equal(t, []any{0.1, 0.2, open, 0.4, open, open}, seen())
	ends(3, 0.3)
	ends(5, 0.5)
	require.Equal(t, []any{0.1, 0.2, 0.3, 0.4, 0.5, open}, seen())

	ends(6, 0.6)
	b.exec(t, "UPDATE trials SET value = 9 WHERE number = 5") // which never happens
	require.Equal(t, []any{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, seen())

	b.exec(t, "DELETE FROM trials WHERE number >= 4")
	b.trial = 3
	b.next(t, gib)
	require.Equal(t, []any{0.1, 0.2, 0.3, open}, seen(), "trials 4 to 6 are gone, and there is another 4")
	b.next(t, gib)
	b.next(t, gib)
	b.exec(t, "UPDATE trials SET state = 'succeeded', value = -number, finished_at = now() WHERE number >= 4")
	require.Equal(t, []any{0.1, 0.2, 0.3, -4.0, -5.0, -6.0}, seen())
}
