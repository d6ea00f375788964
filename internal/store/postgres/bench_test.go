package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/store/postgres"
)

// BenchmarkPlace measures leases per second through a PostgreSQL that writes
// every commit to disk. One operation is 1,000 leases over 64 hosts.
func BenchmarkPlace(b *testing.B) {
	url := durable(b)

	for _, batch := range []int{200, 1} {
		b.Run(fmt.Sprintf("%d at once", batch), func(b *testing.B) {
			f := newFleet(b, url)

			for b.Loop() {
				b.StopTimer()
				waiting := f.ask(b)
				b.StartTimer()

				f.place(b, waiting, batch)

				b.StopTimer()
				f.end(b, waiting)
				f.release(b, waiting)
				b.StartTimer()
			}

			b.ReportMetric(leasesPerSecond(b), "leases/s")
		})
	}

	b.Run("release", func(b *testing.B) {
		f := newFleet(b, url)

		for b.Loop() {
			b.StopTimer()
			waiting := f.ask(b)
			f.place(b, waiting, 200)
			f.end(b, waiting)
			b.StartTimer()

			f.release(b, waiting)
		}

		b.ReportMetric(leasesPerSecond(b), "leases/s")
	})
}

func leasesPerSecond(b *testing.B) float64 {
	b.Helper()

	return float64(b.N*leasesPerOp) / b.Elapsed().Seconds()
}

const (
	leasesPerOp = 1000
	fleetHosts  = 64
)

// durable starts a server that, unlike that of the tests, syncs its commits.
func durable(b testing.TB) string {
	b.Helper()

	dir, err := os.MkdirTemp("", "berth-bench-") //nolint:usetesting // PostgreSQL's user must pass through its parents
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(b, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	server, err := devstack.StartPostgres(b.Context(), devstack.PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop()) })
	require.NoError(b, postgres.Migrate(b.Context(), server.URL))

	return server.URL
}

// fleet is a store with hosts and a sweep.
type fleet struct {
	store *postgres.Store
	pool  *pgxpool.Pool
	hosts []string
	sweep string
	shape string
	asked int
}

func newFleet(b *testing.B, url string) *fleet {
	b.Helper()

	store := open(b, url)
	pool := openPool(b, url)

	f := &fleet{store: store, pool: pool, sweep: uuid.NewString(), shape: uuid.NewString()}

	for i := range fleetHosts {
		f.hosts = append(f.hosts, uuid.NewString())
		require.NoError(b, store.RegisterHost(b.Context(), berth.Host{
			ID: f.hosts[i], Name: fmt.Sprint("host-", i), BootID: "boot", CPUMilli: 64_000, MemoryBytes: 256 * gib, MemoryFreeBytes: 256 * gib,
		}, "bench"))
	}

	_, _, err := store.CreateSweep(b.Context(), berth.NewSweep{ID: f.sweep, Spec: berth.Spec{Name: "s"}, ImageDigest: "sha256:x", CreatedBy: "me"})
	require.NoError(b, err)
	_, err = pool.Exec(b.Context(), `INSERT INTO shapes (key, shape) VALUES ($1, '{}')`, f.shape)
	require.NoError(b, err)

	return f
}

// ask stores trials that wait, all at once.
func (f *fleet) ask(b *testing.B) []string {
	b.Helper()

	rows, err := f.pool.Query(b.Context(), `
WITH made AS (
    INSERT INTO trials (id, sweep_id, number, params, shape_key, state)
    SELECT gen_random_uuid(), $1, $3 + n, '{}', $2, 'waiting' FROM generate_series(1, $4::integer) n RETURNING id
)
INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli)
SELECT gen_random_uuid(), $1, id, 'w', 1, 'main', 'run', $2, 1 << 30, 1000 FROM made RETURNING attempt_id`,
		f.sweep, f.shape, f.asked, leasesPerOp)
	require.NoError(b, err)

	waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b, err)

	f.asked += leasesPerOp

	return waiting
}

func (f *fleet) place(b *testing.B, waiting []string, batch int) {
	b.Helper()

	for from := 0; from < len(waiting); from += batch {
		decisions := make(map[string]berth.Placement, batch)
		for i, id := range waiting[from:min(from+batch, len(waiting))] {
			decisions[id] = berth.Placement{HostID: f.hosts[(from+i)%len(f.hosts)], Demand: berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 1000}}
		}

		placed, err := f.store.Place(b.Context(), decisions)
		require.NoError(b, err)
		require.Len(b, placed, len(decisions))
	}
}

// end ends attempts, without which no lease is released.
func (f *fleet) end(b *testing.B, placed []string) {
	b.Helper()

	_, err := f.pool.Exec(b.Context(), `UPDATE attempts SET state = 'finished', failure_kind = 'ok', finished_at = now() WHERE id = ANY ($1)`, placed)
	require.NoError(b, err)
}

func (f *fleet) release(b *testing.B, placed []string) {
	b.Helper()

	for _, id := range placed {
		require.NoError(b, f.store.ReleaseLease(b.Context(), id, "bench"))
	}
}

// BenchmarkPutMetrics measures metric points per second as a worker writes
// them: 100 points of 10 metrics in one call.
func BenchmarkPutMetrics(b *testing.B) {
	const points, names = 100, 10

	url := durable(b)
	store := open(b, url)

	f := newFleet(b, url)
	placed := f.ask(b)[:1]
	f.place(b, placed, 1)

	status, err := store.PlacementStatus(b.Context(), placed[0])
	require.NoError(b, err)

	step := int64(0)

	for b.Loop() {
		batch := make([]berth.MetricPoint, points)
		for i := range batch {
			if i%names == 0 {
				step++
			}

			batch[i] = berth.MetricPoint{Name: fmt.Sprintf("m%d", i%names), Step: step, Value: float64(i), Status: berth.MetricFinite, At: time.Now()}
		}

		require.NoError(b, store.PutMetrics(b.Context(), placed[0], status.Token, batch))
	}

	b.ReportMetric(float64(b.N*points)/b.Elapsed().Seconds(), "points/s")
}
