package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// marked are marks by kind and subject.
type marked map[berth.HintKind]map[string]berth.Mark

func (b *bundle) marks(t *testing.T, sweepIDs ...string) marked {
	t.Helper()

	list, err := b.store.ListMarks(t.Context(), sweepIDs)
	require.NoError(t, err)

	all := make(marked)

	for _, m := range list {
		if all[m.Kind] == nil {
			all[m.Kind] = make(map[string]berth.Mark)
		}

		require.NotContains(t, all[m.Kind], m.Subject, "one of a kind and subject")
		all[m.Kind][m.Subject] = m
	}

	return all
}

// hint is what is said of one mark.
func (b *bundle) hint(t *testing.T, m berth.Mark) berth.Hint {
	t.Helper()
	require.NotEmpty(t, m.Subject)

	hints, err := b.store.ListHints(t.Context(), []berth.Mark{m})
	require.NoError(t, err)
	require.Len(t, hints, 1)
	require.WithinDuration(t, time.Now(), hints[0].At, time.Minute)

	hints[0].At = time.Time{}

	return hints[0]
}

func point(name string, step int64, value float64) []berth.MetricPoint {
	return []berth.MetricPoint{{Name: name, Step: step, Value: value, Status: berth.MetricFinite, At: time.Unix(step, 0).UTC()}}
}

// Whatever an attempt reports changes its mark, also what has the step and the name of
// an earlier point; the hint says the newest of the objective.
func TestMarks_Metrics(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)
	token := b.place(t, r).Token
	put := func(points []berth.MetricPoint) berth.Mark {
		t.Helper()

		before := b.marks(t)[berth.HintMetrics][r.AttemptID]
		require.NoError(t, b.store.PutMetrics(t.Context(), r.AttemptID, token, points))

		after := b.marks(t)[berth.HintMetrics][r.AttemptID]
		require.NotEqual(t, before.Value, after.Value)
		require.Equal(t, b.sweep, after.SweepID)

		return after
	}

	require.Empty(t, b.marks(t)[berth.HintMetrics])

	want := berth.Hint{Kind: berth.HintMetrics, Subject: r.AttemptID, SweepID: b.sweep, TrialNumber: 1}
	require.Equal(t, want, b.hint(t, put(point("loss", 9, 0.1))), "nothing of the objective yet")

	put(point("acc", 7, 0.5))

	want.Metric = &point("acc", 8, 0.25)[0]
	require.Equal(t, want, b.hint(t, put(point("acc", 8, 0.25))))
	require.Equal(t, want, b.hint(t, put(point("acc", 7, 0.75))), "the highest step, as the page of the trial shows")

	want.Metric = &point("acc", 8, 1)[0]
	require.Equal(t, want, b.hint(t, put(point("acc", 8, 1))), "replaced")

	before := b.marks(t)
	require.Equal(t, berth.KindFenced, berth.KindOf(b.store.PutMetrics(t.Context(), r.AttemptID, token+1, point("acc", 9, 1))))
	require.Equal(t, before[berth.HintMetrics][r.AttemptID].Value, b.marks(t)[berth.HintMetrics][r.AttemptID].Value, "fenced")
	require.NoError(t, b.store.DropMetrics(t.Context(), r.AttemptID, token, []string{"acc"}))
	require.NotEqual(t, before[berth.HintMetrics][r.AttemptID].Value, b.marks(t)[berth.HintMetrics][r.AttemptID].Value, "dropped")

	b.end(t, r)
	require.Empty(t, b.marks(t)[berth.HintMetrics], "an event tells that it has ended")
}

func TestMarks_Memory(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)
	token := b.place(t, r).Token
	put := func(points ...berth.MemoryPoint) berth.Mark {
		t.Helper()

		before := b.marks(t)[berth.HintMemory][r.AttemptID]
		require.NoError(t, b.store.PutMemory(t.Context(), r.AttemptID, token, points))

		after := b.marks(t)[berth.HintMemory][r.AttemptID]
		require.NotEqual(t, before.Value, after.Value)
		require.Empty(t, b.marks(t)[berth.HintMetrics])

		return after
	}

	require.Empty(t, b.marks(t)[berth.HintMemory])
	put(berth.MemoryPoint{Second: 7, HostBytes: new(int64(9)), DeviceBytes: new(int64(5))})

	h := b.hint(t, put(berth.MemoryPoint{Second: 8, HostBytes: new(int64(11))}))
	require.Equal(t, 1, h.TrialNumber)
	require.Equal(t, 8, h.Memory.Second)
	require.Equal(t, new(int64(11)), h.Memory.HostBytes, "the newest point")
	require.Equal(t, new(int64(5)), h.Memory.DeviceBytes, "the point before knows it")

	leases := b.leases(t)
	require.Equal(t, *leases[0].MeasuredAt, h.Memory.At)
}

func TestMarks_WhyAttemptsWait(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r, quiet := b.request(t, gib), b.request(t, gib)
	keep := func(reason, host string) {
		t.Helper()
		require.NoError(t, b.store.StoreReasons(t.Context(), map[string]berth.Wait{r.AttemptID: {
			Reasons: []berth.Rejection{{HostName: "a", Dimension: berth.DimensionMemory, Needed: 3, Free: 2, Reason: reason}},
			Kept:    berth.KeptPlace{HostID: host},
		}}))
	}
	store := func(reason string) {
		t.Helper()
		keep(reason, "")
	}

	store("full")

	before := b.marks(t)[berth.HintWaiting]
	require.Len(t, before, 2)
	store("full")
	require.Equal(t, before[r.AttemptID].Value, b.marks(t)[berth.HintWaiting][r.AttemptID].Value, "as it was")
	store("fuller")

	after := b.marks(t)[berth.HintWaiting]
	require.NotEqual(t, before[r.AttemptID].Value, after[r.AttemptID].Value)
	require.Equal(t, before[quiet.AttemptID].Value, after[quiet.AttemptID].Value)
	require.Equal(t, berth.Hint{
		Kind: berth.HintWaiting, Subject: r.AttemptID, SweepID: b.sweep, TrialNumber: 1,
		Waiting: []berth.Rejection{{HostName: "a", Dimension: berth.DimensionMemory, Needed: 3, Free: 2, Reason: "fuller"}},
	}, b.hint(t, after[r.AttemptID]))

	keep("fuller", uuid.NewString())
	require.NotEqual(t, after[r.AttemptID].Value, b.marks(t)[berth.HintWaiting][r.AttemptID].Value, "a host is kept for it")

	b.place(t, r)
	require.NotContains(t, b.marks(t)[berth.HintWaiting], r.AttemptID)

	hints, err := b.store.ListHints(t.Context(), []berth.Mark{after[r.AttemptID]})
	require.NoError(t, err)
	require.Empty(t, hints, "it waits no more")
}

// The database's clock says when a host is silent, and to the second when GET /hosts does.
func TestMarks_SilentHosts(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	seen := func(ago time.Duration) berth.Mark {
		t.Helper()

		_, err := pool.Exec(t.Context(), "UPDATE hosts SET last_seen_at = now() - $1::interval", ago)
		require.NoError(t, err)

		m := b.marks(t, uuid.NewString())[berth.HintHostSilent][b.host.ID]
		hosts, err := b.store.ListHosts(t.Context())
		require.NoError(t, err)
		require.Equal(t, hosts[0].State == berth.HostLost, m.Value != 0)

		return m
	}

	m := seen(berth.HostLostAfter - 20*time.Second)
	require.Zero(t, m.Value)
	require.Equal(t, berth.Hint{Kind: berth.HintHostBack, Subject: b.host.ID}, b.hint(t, m))

	m = seen(berth.HostLostAfter + time.Second)
	require.Equal(t, berth.Hint{Kind: berth.HintHostSilent, Subject: b.host.ID}, b.hint(t, m))

	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, berth.HostFree{}, nil))
	require.Zero(t, b.marks(t)[berth.HintHostSilent][b.host.ID].Value)

	seen(berth.HostLostAfter + time.Second)
	require.NoError(t, b.store.RemoveHost(t.Context(), b.host.ID, false))
	require.Empty(t, b.marks(t)[berth.HintHostSilent], "it is gone, which is an event")
}

func TestMarks_OfSomeSweeps(t *testing.T) {
	t.Parallel()

	b := setup(t)
	other := b.another(t)

	for _, each := range []*bundle{b, other} {
		running := each.request(t, gib)
		token := each.place(t, running).Token
		require.NoError(t, b.store.PutMetrics(t.Context(), running.AttemptID, token, point("acc", 1, 1)))
		each.request(t, gib)
	}

	for _, tt := range []struct {
		watched []string
		of      []string
	}{{nil, []string{b.sweep, other.sweep}}, {[]string{b.sweep}, []string{b.sweep}}, {[]string{b.sweep, other.sweep}, []string{b.sweep, other.sweep}}, {[]string{uuid.NewString()}, nil}} {
		var metrics, waiting []string

		all := b.marks(t, tt.watched...)
		for _, m := range all[berth.HintMetrics] {
			metrics = append(metrics, m.SweepID)
		}

		for _, m := range all[berth.HintWaiting] {
			waiting = append(waiting, m.SweepID)
		}

		require.ElementsMatch(t, tt.of, metrics)
		require.ElementsMatch(t, tt.of, waiting)
		require.Len(t, all[berth.HintHostSilent], 1, "hosts are of no sweep")
	}
}
