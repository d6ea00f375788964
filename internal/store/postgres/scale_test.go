package postgres_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/placer"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/store/postgres"
)

// BenchmarkScale times the queries of rounds, requests and pages on yearOfBerth. Then it
// explains each statement that they run, and fails where one takes too long or reads too much
// for its result.
func BenchmarkScale(b *testing.B) {
	url, pool := yearDatabase(b)
	store := open(b, url)
	year := readYear(b, pool)

	round := placer.New(store, slog.New(slog.DiscardHandler))

	b.Run("round", func(b *testing.B) {
		require.NoError(b, round.Round(b.Context())) // the first stores why all of them wait

		for b.Loop() {
			require.NoError(b, round.Round(b.Context()))
		}
	})

	for _, c := range year.timed(b) {
		b.Run(c.name, func(b *testing.B) {
			require.NoError(b, c.call(b.Context(), store)) // the first reads the disk

			for b.Loop() {
				require.NoError(b, c.call(b.Context(), store))
			}
		})
	}

	b.Run("deletion of 1,000 trials", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			year.clone(b, pool)
			b.StartTimer()

			require.NoError(b, store.DeleteSweep(b.Context(), year.cloned))
			retainAll(b, store)
		}
	})

	b.Run("statements", func(b *testing.B) {
		if b.N == 1 { // testing first calls the benchmark with N = 1, and then again to time it
			checkStatements(b, url, pool, year)
		}
	})
}

// scaleCall is a call of the store as a round, a request or a page makes it.
type scaleCall struct {
	name string
	call func(ctx context.Context, s *postgres.Store) error
}

// failure is the error of a call with a result.
func failure[T any](_ T, err error) error { return err }

// timed are the calls with targets.
func (y year) timed(b *testing.B) []scaleCall {
	b.Helper()

	newest := berth.SweepQuery{Limit: 50, Sort: berth.Sort{By: berth.SortCreatedAt, Descending: true}}
	best := berth.TrialQuery{Limit: 50, Metrics: []string{"loss"}, Sort: berth.Sort{By: berth.SortValue}}
	spec := longList(b, "")

	return []scaleCall{
		{"queue of a round", func(ctx context.Context, s *postgres.Store) error { return failure(s.Queue(ctx, 10_000)) }},
		{"hosts and devices", func(ctx context.Context, s *postgres.Store) error { return failure(s.RecentHosts(ctx)) }},
		{"page of sweeps", func(ctx context.Context, s *postgres.Store) error { return failure(s.PageSweeps(ctx, newest)) }},
		{"page of 100,000 trials", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.PageTrials(ctx, y.hundredThousand, best))
		}},
		{"report of 1,000 trials", func(ctx context.Context, s *postgres.Store) error { return failure(s.ReportInput(ctx, y.thousand)) }},
		{"recent usage of a shape", func(ctx context.Context, s *postgres.Store) error { return failure(s.RecentUsage(ctx, "s1")) }},
		{"oldest outputs of a host", func(ctx context.Context, s *postgres.Store) error { return failure(s.OldestOutputs(ctx, y.host, 1000)) }},
		{"sweep of 10,000 listed trials", func(ctx context.Context, s *postgres.Store) error {
			_, _, err := s.CreateSweep(ctx, berth.NewSweep{ID: uuid.NewString(), Spec: spec, ImageDigest: "x", CreatedBy: "local"})
			return err
		}},
		{"8 random suggestions after 100,000", y.suggests(b, 200_000)}, // half of them were tried
	}
}

// suggests draws 8 trials of a number up to most, and stores none.
func (y year) suggests(b *testing.B, most float64) func(ctx context.Context, s *postgres.Store) error {
	b.Helper()

	searcher, err := search.New(berth.Spec{
		Search:     berth.SearchSpec{Algorithm: berth.SearchRandom},
		Parameters: []berth.Parameter{{Name: "lr", Type: berth.ParameterInt, Min: new(1.0), Max: &most}},
	})
	require.NoError(b, err)

	return func(ctx context.Context, s *postgres.Store) error {
		_, _, err := s.Suggest(ctx, y.hundredThousand, 100_001, 8, berth.SearchNeeds{}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
			_, _, err := searcher.Next(tried, 8)

			return nil, true, err
		})

		return err
	}
}

// retainAll does the server's hourly work until nothing is left to do.
func retainAll(tb testing.TB, store *postgres.Store) {
	tb.Helper()

	for more := true; more; {
		failed := make(map[string]error)
		more = store.Retain(tb.Context(), berth.Retention{}, failed)
		require.Empty(tb, failed)
	}
}
