package postgres_test

import (
	"cmp"
	"context"
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
	"github.com/berthml/berth/internal/control/health"
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
