package search_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
)

// BenchmarkSuggest is one suggestion with ended trials and 24 open ones.
func BenchmarkSuggest(b *testing.B) {
	for _, test := range []struct {
		algorithm string
		ended     int
	}{{berth.SearchTPE, 100}, {berth.SearchTPE, 1000}, {berth.SearchTPE, 10_000}, {berth.SearchGP, 100}, {berth.SearchGP, 250}} {
		b.Run(fmt.Sprint(test.algorithm, test.ended), func(b *testing.B) {
			s, f := problem("mixed4", berth.SearchRandom, 1)
			searcher, err := search.New(s)
			require.NoError(b, err)

			drawn, _, err := searcher.Next(berth.Tried{}, test.ended+24)
			require.NoError(b, err)

			past := make([]berth.Observation, len(drawn))
			order := rand.New(rand.NewPCG(1, 1)).Perm(test.ended)

			for i, suggestion := range drawn {
				past[i] = berth.Observation{Number: i + 1, Params: suggestion.Values, State: berth.TrialRunning}
			}

			for _, i := range order {
				past[i].State, past[i].Value = berth.TrialSucceeded, new(f(past[i].Params))
			}

			s.Search.Algorithm = test.algorithm
			searcher, err = search.New(s)
			require.NoError(b, err)

			tried := berth.Tried{Made: len(past), Past: past, Last: past[len(past)-1].Params}

			for b.Loop() {
				_, _, err := searcher.Next(tried, 1)
				require.NoError(b, err)
			}
		})
	}
}
