package postgres_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

// sweepRow is the sort and filter keys of a listed sweep.
type sweepRow struct {
	ID, Name, State, CreatedBy string
	CreatedAt                  time.Time
	FinishedAt                 *time.Time
}

// addSweeps writes n sweeps of six names in five states by three people, many of
// them made at the same moment.
func addSweeps(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()

	_, err := pool.Exec(t.Context(), `
		INSERT INTO sweeps (id, name, spec, image_digest, state, created_by, created_at, finished_at)
		SELECT gen_random_uuid(), (ARRAY['lr', 'LR wide', '50% off', 'a_b', 'aXb', 'c\d'])[1 + n % 6] || CASE WHEN n % 4 = 0 THEN '' ELSE ' ' || n / 3 END,
			json_build_object('name', 'x', 'note', repeat('x', 1500)), 'sha256:x', s.state, (ARRAY['me', 'you', 'ci'])[1 + n % 3],
			'2026-11-25T00:00:00Z'::timestamptz + n / 4 * interval '1.000001 second',
			CASE WHEN s.state IN ('succeeded', 'failed') THEN '2026-11-26T00:00:00Z'::timestamptz + n * 7919 % 97 * interval '1 minute' END
		FROM generate_series(1, $1) n, LATERAL (SELECT (ARRAY['running', 'succeeded', 'failed', 'paused', 'pending'])[1 + n * 31 % 5] AS state) s`, n)
	require.NoError(t, err)

	_, err = pool.Exec(t.Context(), "ANALYZE sweeps")
	require.NoError(t, err)
}

// wantSweeps is the expected list of a query, by sorting all rows here.
func wantSweeps(rows []sweepRow, q berth.SweepQuery) []string {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r sweepRow) bool {
		return len(q.States) > 0 && !slices.Contains(q.States, berth.SweepState(r.State)) || q.CreatedBy != "" && r.CreatedBy != q.CreatedBy ||
			!strings.Contains(strings.ToLower(r.Name), strings.ToLower(q.Name))
	})

	slices.SortFunc(rows, func(a, b sweepRow) int {
		var order int

		switch {
		case q.Sort.By == berth.SortName:
			order = strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		case q.Sort.By == berth.SortCreatedAt:
			order = a.CreatedAt.Compare(b.CreatedAt)
		case a.FinishedAt != nil && b.FinishedAt != nil:
			order = a.FinishedAt.Compare(*b.FinishedAt)
		case a.FinishedAt == nil && b.FinishedAt == nil:
			return -cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
		case a.FinishedAt == nil:
			return 1
		default:
			return -1
		}

		if order = cmp.Or(order, strings.Compare(a.ID, b.ID)); q.Sort.Descending {
			return -order
		}

		return order
	})

	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}

	return ids
}

func TestPageSweeps_AsSortedHere(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store, pool := open(t, url), openPool(t, url)
	addSweeps(t, pool, 240)

	all, err := pool.Query(t.Context(), "SELECT id::text, name, state, created_by, created_at, finished_at FROM sweeps")
	require.NoError(t, err)
	rows, err := pgx.CollectRows(all, pgx.RowToStructByPos[sweepRow])
	require.NoError(t, err)

	filters := map[string]berth.SweepQuery{
		"all": {}, "state": {States: []berth.SweepState{berth.SweepFailed, berth.SweepPaused}}, "person": {CreatedBy: "you"},
		"name": {Name: "lr W"}, "percent": {Name: "50%"}, "underscore": {Name: "A_b"}, "backslash": {Name: `c\d`}, "none": {Name: "%%"},
		"several": {Name: "lr", CreatedBy: "me", States: []berth.SweepState{berth.SweepSucceeded}},
	}

	for name, q := range filters {
		for _, sort := range []string{"created_at", "-created_at", "name", "-name", "finished_at", "-finished_at"} {
			q.Sort = berth.ParseSort(sort)
			want := wantSweeps(rows, q)
			require.Equal(t, name == "none", len(want) == 0)

			for _, limit := range []int{7, 500} {
				q.Limit, q.Count, q.After = limit, true, nil
				got := []string{}

				for {
					page, err := store.PageSweeps(t.Context(), q)
					require.NoError(t, err)
					require.Len(t, want, page.Total, "%s by %s", name, sort)

					for _, sweep := range page.Rows {
						got = append(got, sweep.ID)
					}

					if page.Next == nil {
						break
					}

					q.After = page.Next
				}

				require.Equal(t, want, got, "%s by %s, %d at once", name, sort, limit)
			}
		}
	}
}

func TestPageSweeps_RefusesPositionsOfOthers(t *testing.T) {
	t.Parallel()

	b := setup(t)

	for _, at := range []berth.Position{{Section: 9}, {Section: -1}, {Key: "soon", Tie: noSuchID}, {Key: "2026-11-25 00:00:00+00", Tie: "7"}, {Key: "\x00", Tie: noSuchID}} {
		_, err := b.store.PageSweeps(t.Context(), berth.SweepQuery{Sort: berth.ParseSort("-created_at"), Limit: 5, After: &at})
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), "%+v: %v", at, err)
	}
}

func TestText_WithANUL(t *testing.T) {
	t.Parallel()

	_, err := setup(t).store.GetDevice(t.Context(), "GPU\x00")
	require.Equal(t, berth.KindInvalid, berth.KindOf(err), "%v", err)
}

const noSuchID = "00000000-0000-0000-0000-000000000001"

// An installation has ten thousand sweeps after years. A page of them must not
// cost reading them all.
func TestPageSweeps_TenThousand(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool := openPool(t, url)
	addSweeps(t, pool, 10_000)

	for _, sort := range []string{"created_at", "-created_at", "name", "-name", "finished_at", "-finished_at"} {
		q := berth.SweepQuery{Sort: berth.ParseSort(sort), Limit: 100}

		read := rowsRead(t, url, pool, "sweeps", func(store *postgres.Store) {
			first, err := store.PageSweeps(t.Context(), q)
			require.NoError(t, err)

			q.After = first.Next
			began := time.Now()

			_, err = store.PageSweeps(t.Context(), q)
			require.NoError(t, err)
			t.Logf("the second page by %s: %v", sort, time.Since(began).Round(time.Microsecond))
		})
		require.Less(t, read, int64(1000), "by %s", sort)
	}

	store := open(t, url)

	for what, q := range map[string]berth.SweepQuery{"a name": {Name: "wide 3"}, "no name": {Name: "nothing"}, "a person": {CreatedBy: "ci"}, "all": {}} {
		q.Sort, q.Limit, q.Count = berth.ParseSort("-created_at"), 100, true
		began := time.Now()
		page, err := store.PageSweeps(t.Context(), q)
		require.NoError(t, err)
		t.Logf("%s, with its total of %d: %v", what, page.Total, time.Since(began).Round(time.Microsecond))
	}
}

// rowsRead is how many rows of a table a separate store reads, by any kind of
// scan.
func rowsRead(t *testing.T, url string, looker *pgxpool.Pool, table string, read func(*postgres.Store)) int64 {
	t.Helper()

	count := func() (n int64) {
		require.Eventually(t, func() bool { return alone(t, looker) }, 20*time.Second, 20*time.Millisecond)
		require.NoError(t, looker.QueryRow(t.Context(),
			"SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = $1", table).Scan(&n))

		return n
	}

	before := count()
	store := open(t, url)
	read(store)
	store.Close()

	return count() - before
}
