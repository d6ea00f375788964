package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/placer"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/internal/search"
)

// BenchmarkScale times the queries of rounds, requests and pages on yearOfBerth. Then it
// explains every executed statement, and fails where one takes too long or reads too much
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

// drop turns a function with a result into a call without one.
func drop[T any](ask func(ctx context.Context, s *postgres.Store) (T, error)) func(context.Context, *postgres.Store) error {
	return func(ctx context.Context, s *postgres.Store) error {
		_, err := ask(ctx, s)

		return err
	}
}

// timed are the calls with targets.
func (y year) timed(b *testing.B) []scaleCall {
	b.Helper()

	newest := berth.SweepQuery{Limit: 50, Sort: berth.Sort{By: berth.SortCreatedAt, Descending: true}}
	best := berth.TrialQuery{Limit: 50, Sort: berth.Sort{By: berth.SortValue}}
	spec := longList(b, "")

	return []scaleCall{
		{"queue of a round", drop(func(ctx context.Context, s *postgres.Store) (berth.Queue, error) { return s.Queue(ctx, 10_000) })},
		{"hosts and devices", drop(func(ctx context.Context, s *postgres.Store) ([]berth.Host, error) { return s.RecentHosts(ctx) })},
		{"page of sweeps", drop(func(ctx context.Context, s *postgres.Store) (berth.Page[berth.Sweep], error) {
			return s.PageSweeps(ctx, newest)
		})},
		{"page of 100,000 trials", drop(func(ctx context.Context, s *postgres.Store) (berth.Page[berth.ListedTrial], error) {
			return s.PageTrials(ctx, y.hundredThousand, best)
		})},
		{"report of 1,000 trials", func(ctx context.Context, s *postgres.Store) error {
			_, err := s.ReportInput(ctx, y.thousand)
			return err
		}},
		{"recent usage of a shape", drop(func(ctx context.Context, s *postgres.Store) ([]berth.RecentUsage, error) {
			return s.RecentUsage(ctx, "s1")
		})},
		{"oldest outputs of a host", drop(func(ctx context.Context, s *postgres.Store) ([]berth.TrialOutputs, error) {
			return s.OldestOutputs(ctx, y.host, nil, 1000)
		})},
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
		_, _, err := s.Suggest(ctx, y.hundredThousand, 100_001, 8, false, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
			_, _, err := searcher.Next(tried, 8)

			return nil, true, err
		})

		return err
	}
}

// further are calls that only have their statements explained.
func (y year) further(b *testing.B) []scaleCall {
	b.Helper()

	return []scaleCall{
		{"the last of a space", y.suggests(b, 100_000)},
		{"round", func(ctx context.Context, s *postgres.Store) error {
			return placer.New(s, slog.New(slog.DiscardHandler)).Round(ctx)
		}},
		{"leases", drop(func(ctx context.Context, s *postgres.Store) ([]berth.HeldLease, error) {
			return s.ListLeases(ctx, berth.LeaseKey{HostID: uuid.Nil.String(), AttemptID: uuid.Nil.String()}, 100)
		})},
		{"queue", func(ctx context.Context, s *postgres.Store) error {
			_, _, err := s.ListQueue(ctx, berth.QueueKey{AttemptID: uuid.Nil.String()}, 100)
			return err
		}},
		{"sweep", drop(func(ctx context.Context, s *postgres.Store) (berth.Sweep, error) { return s.GetSweep(ctx, y.thousand) })},
		{"sweep by prefix", drop(func(ctx context.Context, s *postgres.Store) (string, error) { return s.FindSweep(ctx, y.thousand[:8]) })},
		{"trial", drop(func(ctx context.Context, s *postgres.Store) (berth.Trial, error) {
			return s.GetTrial(ctx, y.thousand, 7)
		})},
		{"trial by id", drop(func(ctx context.Context, s *postgres.Store) (berth.Trial, error) { return s.FindTrial(ctx, y.trial) })},
		{"planned trial", drop(func(ctx context.Context, s *postgres.Store) (berth.PlannedTrial, error) {
			return s.PlannedTrial(ctx, y.thousand, 7)
		})},
		{"ended trials", drop(func(ctx context.Context, s *postgres.Store) ([]berth.TrialEnd, error) {
			return s.EndedTrials(ctx, y.thousand, []int{1, 2, 3})
		})},
		{"silent trials", drop(func(ctx context.Context, s *postgres.Store) ([]berth.Trial, error) {
			return s.SilentTrials(ctx, berth.Trial{SweepID: uuid.Nil.String()}, time.Hour, 100)
		})},
		{"trial times", drop(func(ctx context.Context, s *postgres.Store) (berth.TrialTimes, error) {
			return s.TrialTimes(ctx, y.hundredThousand)
		})},
		{"attempts of a trial", drop(func(ctx context.Context, s *postgres.Store) ([]berth.Attempt, error) {
			return s.ListAttempts(ctx, y.trial)
		})},
		{"attempts of a sweep", drop(func(ctx context.Context, s *postgres.Store) ([]berth.SweepAttempt, error) {
			return s.ListSweepAttempts(ctx, y.hundredThousand, 0, 0, 100)
		})},
		{"attempt", drop(func(ctx context.Context, s *postgres.Store) (berth.Attempt, error) {
			return s.GetAttempt(ctx, y.attempt)
		})},
		{"assignee", drop(func(ctx context.Context, s *postgres.Store) (berth.Assignee, error) { return s.Assignee(ctx, y.runs) })},
		{"metrics", drop(func(ctx context.Context, s *postgres.Store) ([]berth.MetricPoint, error) {
			return s.ListMetrics(ctx, y.attempt, "loss", 1000)
		})},
		{"metric names", drop(func(ctx context.Context, s *postgres.Store) ([]berth.MetricName, error) {
			return s.MetricNames(ctx, y.thousand)
		})},
		{"curves", drop(func(ctx context.Context, s *postgres.Store) ([]berth.Curve, error) {
			return s.Curves(ctx, y.thousand, "loss", []int{1, 2, 3}, 100)
		})},
		{"exported trials", drop(func(ctx context.Context, s *postgres.Store) ([]berth.ExportedTrial, error) {
			return s.ExportTrials(ctx, y.hundredThousand, berth.TrialFilter{}, 0, 1000)
		})},
		{"log", drop(func(ctx context.Context, s *postgres.Store) ([]berth.LogPiece, error) {
			return s.ReadLog(ctx, y.attempt, 0, 1000)
		})},
		{"memory", drop(func(ctx context.Context, s *postgres.Store) ([]berth.MemoryPoint, error) {
			return s.ListMemory(ctx, y.attempt)
		})},
		{"leases of a host", drop(func(ctx context.Context, s *postgres.Store) ([]berth.HostLease, error) {
			return s.HostLeases(ctx, y.host)
		})},
		{"leases of attempts", drop(func(ctx context.Context, s *postgres.Store) ([]berth.HostLease, error) {
			return s.LeasesOf(ctx, []string{y.runs})
		})},
		{"placement", drop(func(ctx context.Context, s *postgres.Store) (berth.PlacementStatus, error) {
			return s.PlacementStatus(ctx, y.waits)
		})},
		{"footprints", drop(func(ctx context.Context, s *postgres.Store) ([]berth.ProbedShape, error) {
			return s.ListFootprints(ctx, "", 100)
		})},
		{"health", drop(func(ctx context.Context, s *postgres.Store) (health.State, error) { return s.Health(ctx) })},
		{"GPU", drop(func(ctx context.Context, s *postgres.Store) (berth.Device, error) { return s.GetDevice(ctx, "g7") })},
		{"files to store", drop(func(ctx context.Context, s *postgres.Store) ([]berth.UnstoredAttempt, error) {
			return s.FilesToStore(ctx, y.host, 100)
		})},
		{"checkpoints to store", drop(func(ctx context.Context, s *postgres.Store) ([]berth.AttemptCheckpoint, error) {
			return s.CheckpointsToStore(ctx, y.host, 100)
		})},
		{"events", drop(func(ctx context.Context, s *postgres.Store) (int, error) { return s.PublishEvents(ctx, 1000) })},
		{"outbox", drop(func(ctx context.Context, s *postgres.Store) ([]berth.OutboxMessage, error) {
			return s.ClaimOutbox(ctx, 100, time.Minute)
		})},
		{"heartbeat", func(ctx context.Context, s *postgres.Store) error {
			return s.TouchHost(ctx, y.host, berth.HostFree{MemoryBytes: 2 << 40}, []berth.SeenAttempt{{AttemptID: y.runs, Token: 1}})
		}},
		{"running", drop(func(ctx context.Context, s *postgres.Store) ([]string, error) { return s.SuspectLeases(ctx) })},
		{"withdrawal", drop(func(ctx context.Context, s *postgres.Store) (berth.PlacementStatus, error) {
			return s.WithdrawRequest(ctx, y.waits)
		})},
		{"secrets", drop(func(ctx context.Context, s *postgres.Store) ([]berth.Secret, error) { return s.ListSecrets(ctx) })},
		{"tokens", drop(func(ctx context.Context, s *postgres.Store) ([]berth.Token, error) { return s.ListTokens(ctx) })},
		{"paused", drop(func(ctx context.Context, s *postgres.Store) (bool, error) {
			return s.SetSweepState(ctx, y.open, berth.SweepPaused, "")
		})},
		{"limit", func(ctx context.Context, s *postgres.Store) error { return s.SetMaxParallel(ctx, y.open, 2) }},
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

// checkStatements explains the statements of all calls and prints their costs.
func checkStatements(b *testing.B, url string, pool *pgxpool.Pool, y year) {
	b.Helper()

	store := open(b, url)
	record := &planRecorder{worst: make(map[string]measured)}
	require.NoError(b, store.Trace(b.Context(), record))

	for _, c := range slices.Concat(y.timed(b), y.further(b)) {
		if err := c.call(b.Context(), store); err != nil {
			b.Errorf("%s: %v", c.name, err)
		}
	}

	(&flow{B: b, ctx: b.Context(), s: store, pool: pool}).run()

	online := record.measuredNames()

	y.clone(b, pool)
	require.NoError(b, store.DeleteSweep(b.Context(), y.cloned))
	retainAll(b, store)
	require.NoError(b, record.problem)

	all := record.measuredNames()

	for _, name := range slices.SortedFunc(maps.Keys(all), func(x, y string) int { return cmp.Compare(all[y].milliseconds, all[x].milliseconds) }) {
		m, limit := all[name], cmp.Or(ownBounds[name], usual)
		if _, isOnline := online[name]; !isOnline && ownBounds[name] == (bound{}) {
			limit = hourly
		}

		fmt.Fprintf(os.Stdout, "%-28s %7.1f ms, read %7d for %6d rows %v\n", name, m.milliseconds, m.read, m.rows, m.whole)

		if m.milliseconds > limit.milliseconds || len(m.whole) > 0 || m.read > max(limit.least, limit.rowsEach*m.rows) {
			b.Errorf("%s is over its bound: %.0f ms, %d rows read or %d for each row", name, limit.milliseconds, limit.least, limit.rowsEach)
		}
	}

	require.Empty(b, missingStatements(b, all), "no call runs these statements")
}

// missingStatements returns the statements of the queries folder that were not
// measured.
func missingStatements(tb testing.TB, measured map[string]measured) (missing []string) {
	tb.Helper()

	files, err := filepath.Glob("queries/*.sql")
	require.NoError(tb, err)
	require.NotEmpty(tb, files)

	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)

		for _, name := range regexp.MustCompile(`(?m)^-- name: (\w+) `).FindAllStringSubmatch(string(text), -1) {
			if _, ok := measured[name[1]]; !ok {
				missing = append(missing, name[1])
			}
		}
	}

	return missing
}
