package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/apitest"
)

// hinting is a server that looks often for what is fresh.
func hinting(t *testing.T, store *apitest.Store, change ...func(*api.Config)) *running {
	t.Helper()

	r := setup(t, store, change...)
	api.SetHintsEvery(r.server, 10*time.Millisecond)

	return r
}

// looked waits until the server has looked for what is fresh again.
func looked(t *testing.T, store *apitest.Store) {
	t.Helper()

	before := len(store.Looks())

	require.Eventually(t, func() bool { return len(store.Looks()) > before+1 }, 30*time.Second, time.Millisecond)
}

func fresh(kind berth.HintKind, sweep int, subject string) berth.Hint {
	return berth.Hint{Kind: kind, SweepID: apitest.NewID(sweep), TrialNumber: 3, Subject: subject, At: apitest.Start}
}

// A stream that asks for hints gets them beside its events. They have no id: what a
// browser sends when it comes back stays that of the last event.
func TestFresh_BesideEvents(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := hinting(t, store)
	s := r.subscribe("/api/v1/events?live=true")
	require.Equal(t, []string{"retry: 3000", "id: 0"}, s.block())
	looked(t, store)

	metrics := fresh(berth.HintMetrics, 1, "a")
	metrics.Metric = &berth.MetricPoint{Name: "accuracy", Step: 7, Value: 0.5, Status: berth.MetricFinite, At: apitest.Start}
	store.Hint(metrics)
	require.Equal(t, []string{
		"event: fresh",
		`data: {"at":"2026-11-21T12:00:00Z","kind":"metrics","metric":{"at":"2026-11-21T12:00:00Z","name":"accuracy","status":"finite","step":7,"value":0.5},` +
			`"subject":"a","sweep_id":"` + apitest.NewID(1) + `","trial":3}`,
	}, s.block())

	metrics.Metric = &berth.MetricPoint{Name: "accuracy", Step: 8, Status: berth.MetricNaN, At: apitest.Start}
	store.Hint(metrics)
	s.requireEvent("fresh", "", `"status":"nan","step":8}`)

	memory := fresh(berth.HintMemory, 1, "a")
	memory.Memory = &berth.MemoryPoint{Second: 8, At: apitest.Start, HostBytes: new(int64(9))}
	store.Hint(memory)
	s.requireEvent("fresh", "", `"kind":"memory","memory":{"at":"2026-11-21T12:00:00Z","host_bytes":9},"subject":"a"`)

	waiting := fresh(berth.HintWaiting, 1, "w")
	waiting.Waiting = []berth.Rejection{{HostName: "box", Dimension: berth.DimensionMemory, Needed: 3, Free: 2, Reason: "box: needs 3, 2 free"}}
	store.Hint(waiting)
	s.requireEvent("fresh", "", `"waiting":[{"dimension":"memory","free":2,"host_name":"box","needed":3,"reason":"box: needs 3, 2 free"}]`)

	store.Publish("trial.state", apitest.NewID(1), "b", "running")
	s.requireEvent("change", "1", `"subject":"b"`)

	store.Hint(berth.Hint{Kind: berth.HintHostSilent, Subject: "h", At: apitest.Start})
	looked(t, store)
	store.Hint(berth.Hint{Kind: berth.HintHostBack, Subject: "h", At: apitest.Start})
	require.Equal(t, []string{"event: fresh", `data: {"at":"2026-11-21T12:00:00Z","kind":"host.back","subject":"h"}`}, s.block())

	store.Publish("trial.state", apitest.NewID(1), "c", "running")
	s.requireEvent("change", "2", `"subject":"c"`)
}

// Clients of before know no event "fresh": they get none, and cost the database nothing.
func TestFresh_OnlyForThoseWhoAsk(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := hinting(t, store)
	old := r.subscribe("/api/v1/events")
	old.block()

	no := r.subscribe("/api/v1/events?live=false")
	no.block()
	require.Empty(t, store.Looks())

	live := r.subscribe("/api/v1/events?live=true")
	live.block()
	looked(t, store)
	store.Hint(fresh(berth.HintMetrics, 1, "a"))
	live.requireEvent("fresh", "", `"subject":"a"`)
	store.Publish("trial.state", apitest.NewID(1), "b", "running")
	old.requireEvent("change", "1", `"subject":"b"`)
	no.requireEvent("change", "1", `"subject":"b"`)

	status, body := r.text("GET", "/api/v1/events?live=maybe", "")
	require.Equal(t, 400, status)
	require.Contains(t, body, "live")
}

// Who watches one sweep learns nothing of others; hosts are everybody's.
func TestFresh_OfOneSweep(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := hinting(t, store)

	everything := r.subscribe("/api/v1/events?live=true")
	everything.block()

	only := r.subscribe("/api/v1/events?live=true&sweep_id=" + apitest.NewID(1)[:6])
	only.block()
	store.Hint(berth.Hint{Kind: berth.HintHostBack, Subject: "h", At: apitest.Start})
	looked(t, store)

	for _, kind := range []berth.HintKind{berth.HintMetrics, berth.HintMemory, berth.HintWaiting} {
		store.Hint(fresh(kind, 2, "other"))
		store.Hint(fresh(kind, 1, "mine"))
	}

	for range 6 {
		require.Contains(t, everything.block(), "event: fresh")
	}

	for range 3 {
		only.requireEvent("fresh", "", `"subject":"mine"`)
	}

	store.Hint(berth.Hint{Kind: berth.HintHostSilent, Subject: "h", At: apitest.Start})
	only.requireEvent("fresh", "", `"kind":"host.silent"`)
	everything.requireEvent("fresh", "", `"kind":"host.silent"`)
}

// Hints end with the token, however many there are.
func TestFresh_EndsWithTheToken(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	viewer := token(t, store, "viewer")
	r := hinting(t, store)
	api.SetRecheck(r.server, 50*time.Millisecond)

	s := r.subscribe("/api/v1/events?live=true", viewer)
	s.block()
	require.NoError(t, store.RevokeToken(t.Context(), store.Tokens[0].ID))

	revoked := time.Now()

	for store.Hint(fresh(berth.HintMetrics, 1, "a")); s.block() != nil; {
		store.Hint(fresh(berth.HintMetrics, 1, "a"))
	}

	require.Less(t, time.Since(revoked), 15*time.Second, "the client gave up, not the server")

	last := -1

	require.Eventually(t, func() bool { // nobody asks any more
		before := last
		last = len(store.Looks())

		return before == last
	}, 30*time.Second, 100*time.Millisecond)
}

// A restored database ends streams that ask for hints as it ends others.
func TestFresh_OfAnOlderDatabase(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	for range 5 {
		store.Publish("trial.state", apitest.NewID(1), "a", "running")
	}

	r := hinting(t, store)
	s := r.subscribe("/api/v1/events?live=true")
	s.block()
	store.Change(func() { store.Events = store.Events[:2] })
	store.Publish("trial.state", apitest.NewID(1), "b", "running")
	require.Empty(t, s.block())
}

// A reader that does not read keeps no other from hints.
func TestFresh_OfAStalledReader(t *testing.T) {
	t.Parallel()

	const hints, rounds = 200, 12 // of about 20 KB: 48 MB, far more than a connection's buffers hold

	store := apitest.Sample()
	r := hinting(t, store)
	api.SetHintsEvery(r.server, 200*time.Millisecond) // eight batches wait for a reader

	stalled := r.stallAt("/api/v1/events?live=true", "")
	well := r.subscribe("/api/v1/events?live=true")
	well.block()
	looked(t, store)

	began := time.Now()

	for round := range rounds {
		for i := range hints {
			h := fresh(berth.HintWaiting, 1, fmt.Sprint(i))
			h.TrialNumber = round + 1
			h.Waiting = []berth.Rejection{{Reason: strings.Repeat("x", 20_000)}}
			store.Hint(h)
		}

		for heard := make(map[string]bool); len(heard) < hints; {
			block := well.block()
			require.NotEmpty(t, block)

			if _, rest, found := strings.Cut(block[1], `"subject":"`); found && strings.Contains(block[1], fmt.Sprintf(`"trial":%d,`, round+1)) {
				subject, _, _ := strings.Cut(rest, `"`)
				heard[subject] = true
			}
		}
	}

	require.Less(t, time.Since(began), 8*time.Second, "the other reader was kept waiting")
	require.NoError(t, stalled.conn.Close())
}
