package postgres_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

// exported reads all trials and points of the bundle's sweep, in pages of limit.
func (b *bundle) exported(t *testing.T, limit int) (trials []berth.ExportedTrial, points []berth.ExportedMetric) {
	t.Helper()

	for after := 0; ; {
		page, err := b.store.ExportTrials(t.Context(), b.sweep, berth.TrialFilter{}, after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit)

		if trials = append(trials, page...); len(page) < limit {
			break
		}

		after = page[limit-1].Number
	}

	for after := (berth.MetricKey{}); ; {
		page, next, err := b.store.ExportMetrics(t.Context(), b.sweep, after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit)

		if points = append(points, page...); next == nil {
			return trials, points
		}

		after = *next
	}
}

func TestExport(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	ctx := t.Context()

	first := b.request(t, gib)
	require.NoError(t, b.store.PutMetrics(ctx, first.AttemptID, b.place(t, first).Token, append(points("loss", 5), points("acc", 3)...)))
	b.end(t, first)

	short := first
	short.AttemptID, short.Number, short.Purpose, short.Short = uuid.NewString(), 2, berth.PurposeProbe, true
	_, err := b.store.RequestPlacement(ctx, short)
	require.NoError(t, err)
	require.NoError(t, b.store.PutMetrics(ctx, short.AttemptID, b.place(t, short).Token, points("loss", 2)))

	waits := b.request(t, gib)
	other := b.another(t)
	other.request(t, gib)

	for _, limit := range []int{1, 2, 3, 7, 100} {
		trials, points := b.exported(t, limit)
		require.Len(t, trials, 2, "another sweep's are its own")
		require.Equal(t, []int{1, 2}, []int{trials[0].Number, trials[1].Number})
		require.Equal(t, 2, trials[0].Attempts)
		require.NotNil(t, trials[0].Counts)
		require.Equal(t, first.AttemptID, trials[0].Counts.ID, "a short probe does not count")
		require.Equal(t, "a", trials[0].HostName)
		require.Equal(t, int64(gib), trials[0].Counts.Demand.MemoryBytes)
		require.Equal(t, waits.TrialID, trials[1].ID)
		require.Nil(t, trials[1].Counts)

		// The oracle reads the points of each attempt separately.
		var want []berth.ExportedMetric

		for i, id := range []string{first.AttemptID, short.AttemptID} {
			list, err := b.store.ListMetrics(ctx, id, "", 100)
			require.NoError(t, err)

			for _, p := range list {
				want = append(want, berth.ExportedMetric{MetricPoint: p, TrialNumber: 1, AttemptNumber: i + 1, Counts: i == 0})
			}
		}

		require.Len(t, want, 10)
		require.Equal(t, want, points)
	}
}

// Attempts without points cost pages, and end none.
func TestExportMetrics_PassesAttemptsWithout(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.addTrials(t, pool, 2000)

	_, err := pool.Exec(t.Context(), `DELETE FROM metrics m USING attempts a JOIN trials t ON t.id = a.trial_id WHERE m.attempt_id = a.id AND t.number < 1900`)
	require.NoError(t, err)

	trials, points := b.exported(t, 300)
	require.Len(t, trials, 2000)

	var want int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM metrics`).Scan(&want))
	require.Positive(t, want)
	require.Len(t, points, want)
}

// docs/export.md: "counts marks the one" attempt "that the table of trials shows". A trial that is run again between two
// pages of an export must not have two: curves.query("counts") would draw both as one.
func TestExportMetrics_OneAttemptOfATrialCounts(t *testing.T) {
	t.Parallel()

	b, ctx := setupOn(t, pgtest.URL(t)), t.Context()
	first := b.request(t, gib)
	require.NoError(t, b.store.PutMetrics(ctx, first.AttemptID, b.place(t, first).Token, points("loss", 4)))

	page, next, err := b.store.ExportMetrics(ctx, b.sweep, berth.MetricKey{}, 2)
	require.NoError(t, err)
	require.NotNil(t, next)

	b.end(t, first) // it ran out of memory
	second := b.again(t, first, 2)
	require.NoError(t, b.store.PutMetrics(ctx, second.AttemptID, b.place(t, second).Token, points("loss", 4)))

	for next != nil {
		var more []berth.ExportedMetric

		more, next, err = b.store.ExportMetrics(ctx, b.sweep, *next, 2)
		require.NoError(t, err)

		page = append(page, more...)
	}

	counting := make(map[int]int)

	for _, p := range page {
		if p.Counts {
			counting[p.AttemptNumber]++
		}
	}

	require.Equal(t, map[int]int{1: 4}, counting, "points that count, by attempt")
	require.Len(t, page, 8)

	_, points := b.exported(t, 3)
	for _, p := range points {
		require.Equal(t, p.AttemptNumber == 2, p.Counts, "the next export shows the next attempt")
	}
}

// serveStore runs the API over a store.
func serveStore(t *testing.T, store *postgres.Store) string {
	t.Helper()

	server, err := api.New(api.Deps{Store: store, Log: slog.New(slog.DiscardHandler)}, api.Config{Address: "127.0.0.1:0"})
	require.NoError(t, err)
	require.NoError(t, server.Listen(t.Context()))

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)

	go func() { done <- server.Run(ctx) }()

	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})

	return "http://" + server.Addr()
}

// A sweep of 50,000 trials is exported without being held: the heap does not
// grow with it.
func TestExport_OfALargeSweep(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	const (
		trials = 50_000
		mostMB = 48 // what a page, a row group and the server itself take; all trials as rows are several times that
	)

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.addTrials(t, pool, trials)

	server := serveStore(t, b.store)

	var wantPoints int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM metrics`).Scan(&wantPoints))

	var heap uint64

	look := func() {
		var m runtime.MemStats

		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapInuse)
	}

	runtime.GC()
	look()

	before, began := heap, time.Now()

	for _, e := range []struct {
		what, format string
		want         int
	}{{"trials", "csv", trials}, {"trials", "parquet", 0}, {"metrics", "csv", wantPoints}, {"metrics", "parquet", 0}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/api/v1/sweeps/"+b.sweep+"/export?what="+e.what+"&format="+e.format, nil)
		require.NoError(t, err)

		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)

		if e.format == "parquet" {
			n, err := io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			require.Positive(t, n)
			look()
		} else {
			rows := csv.NewReader(bufio.NewReader(response.Body))
			rows.ReuseRecord = true

			_, err = rows.Read()
			require.NoError(t, err)

			n, last := 0, 0

			for {
				row, err := rows.Read()
				if err == io.EOF { //nolint:errorlint // io.EOF itself
					break
				}

				require.NoError(t, err)

				number, err := strconv.Atoi(row[0])
				require.NoError(t, err)
				require.GreaterOrEqual(t, number, last)

				if n, last = n+1, number; n%5000 == 0 {
					look()
				}
			}

			require.Equal(t, e.want, n)
		}

		require.NoError(t, response.Body.Close())
		t.Logf("%s as %s: heap at most %d MB above %d MB, %s", e.what, e.format, (heap-before)>>20, before>>20, time.Since(began).Round(time.Millisecond))
	}

	require.Less(t, (heap-before)>>20, uint64(mostMB))
}
