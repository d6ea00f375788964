package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/report"
)

// hourAgo is when the runs of all tests begin: one time, or a second may pass between two.
var hourAgo = time.Now().Truncate(time.Second).Add(-time.Hour)

// ran runs a request on a device (empty = cores) from one second to another.
func (b *bundle) ran(t *testing.T, r berth.PlacementRequest, device string, kind berth.FailureKind, from, to int) {
	t.Helper()
	b.ended(t, r, device, berth.Outcome{Kind: kind}, from, to)
}

// ended is ran, with more of the outcome than its kind.
func (b *bundle) ended(t *testing.T, r berth.PlacementRequest, device string, o berth.Outcome, from, to int) {
	t.Helper()

	class := berth.ClassCPU
	if device != "" {
		class, r.Demand.DeviceBytes = "NVIDIA H200", 2*gib
	}

	_, err := b.store.Place(t.Context(), map[string]berth.Placement{
		r.AttemptID: {HostID: b.host.ID, DeviceID: device, Class: class, Demand: r.Demand},
	})
	require.NoError(t, err)

	status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)

	o.Message, o.StartedAt, o.FinishedAt = "m", hourAgo.Add(time.Duration(from)*time.Second), hourAgo.Add(time.Duration(to)*time.Second)
	o.Usage = berth.Usage{MemoryPeakBytes: gib / 2, DevicePeakBytes: gib, Samples: 3, DeviceSamples: 3, CPU: berth.Duration(time.Second), Wall: berth.Duration(2 * time.Second)}

	if device != "" {
		o.Usage.DeviceActivity = berth.DeviceActivity{SMMilli: 500, DRAMMilli: 100}
		o.Usage.DeviceActive, o.Usage.DeviceUnknown = berth.Duration(2*time.Second), berth.Duration(time.Second)
	}

	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, o)))
}

// another is the bundle with another sweep.
func (b *bundle) another(t *testing.T) *bundle {
	t.Helper()

	other := *b
	other.sweep, other.trial = uuid.NewString(), 0
	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
		ID: other.sweep, Spec: berth.Spec{Name: "t"}, ImageDigest: "sha256:x", CreatedBy: "local",
	})
	require.NoError(t, err)

	return &other
}

func (b *bundle) report(t *testing.T) report.Report {
	t.Helper()

	in, err := b.store.ReportInput(t.Context(), b.sweep)
	require.NoError(t, err)

	return report.Make(in)
}

func TestReport(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	b.host.Devices = []berth.Device{
		{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 143_771 << 20, FreeBytes: 143_771 << 20, MaxContexts: 48},
		{ID: "GPU-2", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 143_771 << 20, FreeBytes: 143_771 << 20, MaxContexts: 48},
	}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	before := b.report(t)
	require.Empty(t, before.Trials)
	require.False(t, before.Ended)

	retried := b.request(t, gib)
	b.ran(t, retried, "GPU-1", berth.FailureDeviceOOM, 0, 10)
	b.ran(t, b.again(t, retried, 2), "GPU-1", berth.FailureOK, 10, 40)
	b.ran(t, b.request(t, gib), "GPU-1", berth.FailureOK, 10, 30)
	b.ran(t, b.request(t, gib), "", berth.FailureOK, 0, 30)

	other := b.another(t)
	other.ran(t, other.request(t, gib), "GPU-1", berth.FailureOK, 30, 60) // 10 s beside the sweep
	other.ran(t, other.request(t, gib), "GPU-1", berth.FailureOK, 60, 90) // later
	other.ran(t, other.request(t, gib), "GPU-2", berth.FailureOK, 10, 40) // on another card
	other.ran(t, other.request(t, gib), "", berth.FailureOK, 100, 130)    // later on the same cores

	in, err := b.store.ReportInput(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Len(t, in.Attempts, 5, "its four, and the one neighbour")

	mine, theirs := b.report(t), other.report(t)
	require.Equal(t, 40*time.Second, mine.GPU.Used)
	require.Equal(t, 35*time.Second, mine.GPU.Charged)
	require.Equal(t, 60*time.Second, mine.GPU.AttemptTime)
	require.Equal(t, 60*time.Second, mine.GPU.ActivityTime)
	require.Equal(t, []time.Duration{4500 * time.Millisecond, 900 * time.Millisecond}, []time.Duration{mine.GPU.SMTime, mine.GPU.DRAMTime}, "3 s of each of three")
	require.Equal(t, 30*time.Second, mine.Cores.Used)
	require.Equal(t, []int{3, 1, 2}, []int{len(mine.Trials), len(mine.Trials[1].Attempts), len(mine.Trials[0].Attempts)})
	require.Equal(t, []report.Loss{{Cause: "device_oom", Attempts: 1, Repeated: 1, Time: 10 * time.Second}}, mine.Losses)

	first := mine.Trials[0].Attempts[1]
	require.Equal(t, int64(141_450<<20), first.DefaultBytes)
	require.Equal(t, int64(2*gib), first.ReservedBytes)
	require.InDelta(t, 50, *first.SlackPercent, 1e-9)
	require.Equal(t, b.host.MemoryBytes, mine.Trials[2].Attempts[0].MemoryBytes)
	require.Equal(t, "a", mine.Trials[2].Attempts[0].HostName)

	require.Equal(t, 90*time.Second+30*time.Second, mine.GPU.Charged+theirs.GPU.Charged, "GPU-1 was in use for 90 s, GPU-2 for 30 s")

	_, err = b.store.ReportInput(t.Context(), uuid.NewString())
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

// The report says which data retention deleted, and counts running attempts
// until now.
func TestReport_OfWhatIsMissingAndWhatRuns(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	pool := openPool(t, url)

	gone := b.request(t, gib)
	b.ran(t, gone, "", berth.FailureOK, 0, 10)
	_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
		TrialID: gone.TrialID, SweepID: b.sweep, Number: 1, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(1.0),
	})
	require.NoError(t, err)
	require.Zero(t, b.report(t).Missing)

	_, err = pool.Exec(t.Context(), "DELETE FROM attempts WHERE id = $1", gone.AttemptID)
	require.NoError(t, err)

	runs := b.request(t, gib)
	placed := b.place(t, runs)
	require.NoError(t, b.store.AttemptRunning(t.Context(), runs.AttemptID, placed.Token, "c", time.Now().Add(-time.Minute)))

	r := b.report(t)
	require.Equal(t, 1, r.Missing)
	require.GreaterOrEqual(t, r.Cores.Used, time.Minute)
	require.Less(t, r.Cores.Used, 10*time.Minute)
	require.Nil(t, r.Trials[0].Attempts[0].SlackPercent)
}

// A sweep of 10,000 trials among 90,000 attempts of others is read in time that a
// person waits: the statement timeout of the store is 5 s.
func TestReport_OfTenThousandTrials(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	pool := openPool(t, url)
	other := b.another(t)
	b.ran(t, b.request(t, gib), "", berth.FailureOK, 0, 10) // makes the shape

	crowd(t, pool, b, 9_999, 2, 0)
	crowd(t, pool, other, 90_000, 1, 30*24*time.Hour) // long ago, except the first

	in, err := b.store.ReportInput(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Len(t, in.Attempts, 10_000+1)

	r := report.Make(in)
	require.Len(t, r.Trials, 10_000)
	require.NotEqual(t, r.Cores.Used, r.Cores.Charged)
}

// crowd stores trials; every second one has an attempt of ten seconds. The first
// began just now, and the later ones ago before.
func crowd(t *testing.T, pool *pgxpool.Pool, b *bundle, trials, from int, ago time.Duration) {
	t.Helper()

	_, err := pool.Exec(t.Context(), `
		WITH made AS (
			INSERT INTO trials (id, sweep_id, number, params, shape_key)
			SELECT gen_random_uuid(), $1, n, '{}', (SELECT key FROM shapes LIMIT 1) FROM generate_series($3::int, $3::int + $4::int - 1) n
			RETURNING id, number
		)
		INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, started_at, finished_at)
		SELECT gen_random_uuid(), m.id, 1, 'main', 'run', 'finished', $2, m.number, 1 << 30, 1000, 'ok', s.at, s.at + interval '10 s'
		FROM made m, LATERAL (SELECT now() - interval '1 h' + CASE WHEN m.number = $3 THEN interval '0' ELSE make_interval(secs => m.number % 3000) - $5::interval END AS at) s`,
		b.sweep, b.host.ID, from, trials, ago)
	require.NoError(t, err)

	_, err = pool.Exec(t.Context(), "ANALYZE")
	require.NoError(t, err)
}
