package postgres_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// sweepRow is the sort and filter keys of a listed sweep.
type sweepRow struct {
	ID, Name, State, CreatedBy string
	CreatedAt                  time.Time
	FinishedAt                 *time.Time
}

// addSweeps writes n sweeps of six names in five states by three people, many of
// them made at the same moment.
func (b *bundle) addSweeps(t *testing.T, n int) {
	t.Helper()
	b.exec(t, `
		INSERT INTO sweeps (id, name, spec, image_digest, state, created_by, created_at, finished_at)
		SELECT gen_random_uuid(), (ARRAY['lr', 'LR wide', '50% off', 'a_b', 'aXb', 'c\d'])[1 + n % 6] || CASE WHEN n % 4 = 0 THEN '' ELSE ' ' || n / 3 END,
			json_build_object('name', 'x', 'note', repeat('x', 1500)), 'sha256:x', s.state, (ARRAY['me', 'you', 'ci'])[1 + n % 3],
			'2026-11-25T00:00:00Z'::timestamptz + n / 4 * interval '1.000001 second',
			CASE WHEN s.state IN ('succeeded', 'failed') THEN '2026-11-26T00:00:00Z'::timestamptz + n * 7919 % 97 * interval '1 minute' END
		FROM generate_series(1, $1) n, LATERAL (SELECT (ARRAY['running', 'succeeded', 'failed', 'paused', 'pending'])[1 + n * 31 % 5] AS state) s`, n)
	b.exec(t, "ANALYZE sweeps")
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

// pages reads a list to its end, limit at once.
func pages[T any](t *testing.T, total, limit int, read func(after *berth.Position) (berth.Page[T], error)) (all []T) {
	t.Helper()

	var after *berth.Position

	for {
		page, err := read(after)
		require.NoError(t, err)
		require.Equal(t, total, page.Total)
		require.LessOrEqual(t, len(page.Rows), limit)

		all = append(all, page.Rows...)

		if after = page.Next; after == nil {
			return all
		}
	}
}

func TestPageSweeps_AsSortedHere(t *testing.T) {
	t.Parallel()

	b := bare(t)
	b.addSweeps(t, 240)

	all, err := b.pool.Query(t.Context(), "SELECT id::text, name, state, created_by, created_at, finished_at FROM sweeps")
	require.NoError(t, err)
	rows, err := pgx.CollectRows(all, pgx.RowToStructByPos[sweepRow])
	require.NoError(t, err)

	for name, q := range map[string]berth.SweepQuery{
		"all": {}, "state": {States: []berth.SweepState{berth.SweepFailed, berth.SweepPaused}}, "person": {CreatedBy: "you"},
		"name": {Name: "lr W"}, "percent": {Name: "50%"}, "underscore": {Name: "A_b"}, "backslash": {Name: `c\d`}, "none": {Name: "%%"},
		"several": {Name: "lr", CreatedBy: "me", States: []berth.SweepState{berth.SweepSucceeded}},
	} {
		for _, sort := range sweepSorts {
			q.Sort, q.Count = berth.ParseSort(sort), true
			want := wantSweeps(rows, q)
			require.Equal(t, name == "none", len(want) == 0)

			for _, q.Limit = range []int{7, 500} {
				got := []string{}

				for _, sweep := range pages(t, len(want), q.Limit, func(after *berth.Position) (berth.Page[berth.Sweep], error) {
					q.After = after

					return b.store.PageSweeps(t.Context(), q)
				}) {
					got = append(got, sweep.ID)
				}

				require.Equal(t, want, got, "%s by %s, %d at once", name, sort, q.Limit)
			}
		}
	}
}

var sweepSorts = []string{"created_at", "-created_at", "name", "-name", "finished_at", "-finished_at"}

func TestPageSweeps_RefusesPositionsOfOthers(t *testing.T) {
	t.Parallel()

	b := bare(t)

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

	b := bare(t)
	b.addSweeps(t, 10_000)
	b.store.Close()

	for _, sort := range sweepSorts {
		q := berth.SweepQuery{Sort: berth.ParseSort(sort), Limit: 100}
		read := b.rowsRead(t, "sweeps", func(store *postgres.Store) {
			first, err := store.PageSweeps(t.Context(), q)
			require.NoError(t, err)

			q.After = first.Next

			_, err = store.PageSweeps(t.Context(), q)
			require.NoError(t, err)
		})
		require.Less(t, read, 1000, "by %s", sort)
	}
}
