package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/placer"
	"github.com/berthml/berth/internal/store/postgres"
)

// further are calls that only have their statements explained.
func (y year) further(b *testing.B) []scaleCall {
	b.Helper()

	return []scaleCall{
		{"the last of a space", y.suggests(b, 100_000)},
		{"round", func(ctx context.Context, s *postgres.Store) error {
			return placer.New(s, slog.New(slog.DiscardHandler)).Round(ctx)
		}},
		{"leases", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ListLeases(ctx, berth.LeaseKey{HostID: uuid.Nil.String(), AttemptID: uuid.Nil.String()}, 100))
		}},
		{"queue", func(ctx context.Context, s *postgres.Store) error {
			_, _, err := s.ListQueue(ctx, berth.QueueKey{AttemptID: uuid.Nil.String()}, 100)
			return err
		}},
		{"sweep", func(ctx context.Context, s *postgres.Store) error { return failure(s.GetSweep(ctx, y.thousand)) }},
		{"sweep by prefix", func(ctx context.Context, s *postgres.Store) error { return failure(s.FindSweep(ctx, y.thousand[:8])) }},
		{"trial", func(ctx context.Context, s *postgres.Store) error { return failure(s.GetTrial(ctx, y.thousand, 7)) }},
		{"trial by id", func(ctx context.Context, s *postgres.Store) error { return failure(s.FindTrial(ctx, y.trial)) }},
		{"planned trial", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.PlannedTrial(ctx, y.thousand, 7, berth.StageMain))
		}},
		{"ended trials", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.EndedTrials(ctx, y.thousand, []int{1, 2, 3}))
		}},
		{"silent trials", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.SilentTrials(ctx, berth.Trial{SweepID: uuid.Nil.String()}, time.Hour, 100))
		}},
		{"trial times", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.TrialTimes(ctx, y.hundredThousand))
		}},
		{"attempts of a trial", func(ctx context.Context, s *postgres.Store) error { return failure(s.ListAttempts(ctx, y.trial)) }},
		{"attempts of a sweep", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ListSweepAttempts(ctx, y.hundredThousand, 0, 0, 100))
		}},
		{"attempt", func(ctx context.Context, s *postgres.Store) error { return failure(s.GetAttempt(ctx, y.attempt)) }},
		{"assignee", func(ctx context.Context, s *postgres.Store) error { return failure(s.Assignee(ctx, y.runs)) }},
		{"metrics", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ListMetrics(ctx, y.attempt, "loss", 1000))
		}},
		{"notes", func(ctx context.Context, s *postgres.Store) error {
			return errors.Join(s.SetSweepNote(ctx, y.hundredThousand, "x", nil), s.SetTrialNote(ctx, y.hundredThousand, 99_999, "x", nil))
		}},
		{"failures", func(ctx context.Context, s *postgres.Store) error { return failure(s.Failures(ctx, y.hundredThousand)) }},
		{"metric names", func(ctx context.Context, s *postgres.Store) error { return failure(s.MetricNames(ctx, y.thousand)) }},
		{"curves", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.Curves(ctx, y.thousand, "loss", []int{1, 2, 3}, 100))
		}},
		{"exported trials", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ExportTrials(ctx, y.hundredThousand, berth.TrialFilter{}, 0, 1000))
		}},
		{"insight", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.InsightInput(ctx, berth.Sweep{ID: y.hundredThousand}))
		}},
		{"log", func(ctx context.Context, s *postgres.Store) error { return failure(s.ReadLog(ctx, y.attempt, 0, 1000)) }},
		{"memory", func(ctx context.Context, s *postgres.Store) error { return failure(s.ListMemory(ctx, y.attempt)) }},
		{"leases of a host", func(ctx context.Context, s *postgres.Store) error { return failure(s.HostLeases(ctx, y.host)) }},
		{"leases of attempts", func(ctx context.Context, s *postgres.Store) error { return failure(s.LeasesOf(ctx, []string{y.runs})) }},
		{"placement", func(ctx context.Context, s *postgres.Store) error { return failure(s.PlacementStatus(ctx, y.waits)) }},
		{"footprints", func(ctx context.Context, s *postgres.Store) error { return failure(s.ListFootprints(ctx, "", 100)) }},
		{"stages", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ListStages(ctx, "", berth.StagePosition{}, 100))
		}},
		{"stages of a sweep", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ListStages(ctx, y.hundredThousand, berth.StagePosition{}, 100))
		}},
		{"stage by prefix", func(ctx context.Context, s *postgres.Store) error {
			if _, err := s.FindStage(ctx, "0123456789"); berth.KindOf(err) != berth.KindNotFound {
				return err
			}

			return nil
		}},
		{"health", func(ctx context.Context, s *postgres.Store) error { return failure(s.Health(ctx)) }},
		{"GPU", func(ctx context.Context, s *postgres.Store) error { return failure(s.GetDevice(ctx, "g7")) }},
		{"files to store", func(ctx context.Context, s *postgres.Store) error { return failure(s.FilesToStore(ctx, y.host, 100)) }},
		{"checkpoints to store", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.CheckpointsToStore(ctx, y.host, 100))
		}},
		{"events", func(ctx context.Context, s *postgres.Store) error { return failure(s.PublishEvents(ctx, 1000)) }},
		{"outbox", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.ClaimOutbox(ctx, 100, time.Minute))
		}},
		{"heartbeat", func(ctx context.Context, s *postgres.Store) error {
			return s.TouchHost(ctx, y.host, berth.HostFree{MemoryBytes: 2 << 40}, []berth.SeenAttempt{{AttemptID: y.runs, Token: 1}})
		}},
		{"running", func(ctx context.Context, s *postgres.Store) error { return failure(s.SuspectLeases(ctx)) }},
		{"withdrawal", func(ctx context.Context, s *postgres.Store) error { return failure(s.WithdrawRequest(ctx, y.waits)) }},
		{"secrets", func(ctx context.Context, s *postgres.Store) error { return failure(s.ListSecrets(ctx)) }},
		{"tokens", func(ctx context.Context, s *postgres.Store) error { return failure(s.ListTokens(ctx)) }},
		{"paused", func(ctx context.Context, s *postgres.Store) error {
			return failure(s.SetSweepState(ctx, y.open, berth.SweepPaused, ""))
		}},
		{"limit", func(ctx context.Context, s *postgres.Store) error { return s.SetMaxParallel(ctx, y.open, 2) }},
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
}
