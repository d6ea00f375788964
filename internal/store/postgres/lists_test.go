package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// addSweeps writes n sweeps of six names in five states by three people, many of
// them made at the same moment.
func (b *bundle) addSweeps(t *testing.T, n int) {
	t.Helper()
	b.exec(t, `
		INSERT INTO sweeps (id, name, spec, image_digest, state, created_by, created_at, finished_at)
		SELECT gen_random_uuid(), (ARRAY['lr', 'LR wide', '50% off', 'a_b', 'aXb', 'c\d'])[1 + n % 6] || CASE WHEN n % 4 = 0 THEN '' ELSE ' ' || n / 3 END,
			json_build_object('name', 'x', 'note', repeat('x', 1500), 'labels', json_build_object('berth/try', (n % 7 = 0)::text), 'limits', json_build_object('max_trials', 1)), 'sha256:x', s.state, (ARRAY['me', 'you', 'ci'])[1 + n % 3],
			'2026-11-25T00:00:00Z'::timestamptz + n / 4 * interval '1.000001 second',
			CASE WHEN s.state IN ('succeeded', 'failed') THEN '2026-11-26T00:00:00Z'::timestamptz + n * 7919 % 97 * interval '1 minute' END
		FROM generate_series(1, $1) n, LATERAL (SELECT (ARRAY['running', 'succeeded', 'failed', 'paused', 'pending'])[1 + n * 31 % 5] AS state) s`, n)
	b.exec(t, "ANALYZE sweeps")
}

// column is the one column that a statement returns.
func column[T any](t testing.TB, pool *pgxpool.Pool, statement string) []T {
	t.Helper()

	rows, err := pool.Query(t.Context(), statement)
	require.NoError(t, err)

	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err)

	return values
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

// sweepSorts are the sorts of lists, each with its ORDER BY for one statement.
var sweepSorts = map[string]string{
	"created_at": "created_at, id", "-created_at": "created_at DESC, id DESC",
	"name": `lower(name) COLLATE "C", id`, "-name": `lower(name) COLLATE "C" DESC, id DESC`,
	"finished_at":  "finished_at NULLS LAST, CASE WHEN finished_at IS NULL THEN created_at END DESC, CASE WHEN finished_at IS NULL THEN id END DESC, id",
	"-finished_at": "finished_at DESC NULLS LAST, CASE WHEN finished_at IS NULL THEN created_at END DESC, id DESC",
}

// Pages together are what one statement returns.
func TestPageSweeps_AsOneStatement(t *testing.T) {
	t.Parallel()

	b := bare(t)
	b.addSweeps(t, 240)

	for where, q := range map[string]berth.SweepQuery{
		"true":                            {},
		"state IN ('failed', 'paused')":   {States: []berth.SweepState{berth.SweepFailed, berth.SweepPaused}},
		"created_by = 'you'":              {CreatedBy: "you"},
		"strpos(lower(name), 'lr w') > 0": {Name: "lr W"}, "strpos(name, '50%') > 0": {Name: "50%"}, "strpos(lower(name), 'a_b') > 0": {Name: "A_b"},
		`strpos(name, 'c\d') > 0`: {Name: `c\d`}, "false": {Name: "%%"},
		"strpos(lower(name), 'lr') > 0 AND created_by = 'me' AND state = 'succeeded'": {Name: "lr", CreatedBy: "me", States: []berth.SweepState{berth.SweepSucceeded}},
	} {
		for sort, order := range sweepSorts {
			q.Sort, q.Count = berth.ParseSort(sort), true
			tries := ""
			if q.Name == "" {
				tries = "(spec #>> '{labels,berth/try}' <> 'true' OR finished_at IS NULL) AND "
			}

			want := column[string](t, b.pool, "SELECT id::text FROM sweeps WHERE "+tries+where+" ORDER BY "+order)
			require.Equal(t, where == "false", len(want) == 0, where)

			for _, q.Limit = range []int{7, 500} {
				got := []string{}

				for _, sweep := range pages(t, len(want), q.Limit, func(after *berth.Position) (berth.Page[berth.Sweep], error) {
					q.After = after

					return b.store.PageSweeps(t.Context(), q)
				}) {
					got = append(got, sweep.ID)
				}

				require.Equal(t, want, got, "%s by %s, %d at once", where, sort, q.Limit)
			}
		}
	}
}

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

	for sort := range sweepSorts {
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

// Of a try that a person made a sweep of its own, the label is left.
func TestPageSweeps_ShowsWhatRunsAndWhatWasATry(t *testing.T) {
	t.Parallel()

	b := bare(t)

	for name, limits := range map[string]string{"ended try": "1", "running try": "1", "sweep of a try": "50"} {
		b.exec(t, `INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, finished_at) VALUES (gen_random_uuid(), $1,
			json_build_object('labels', json_build_object('berth/try', 'true'), 'limits', json_build_object('max_trials', $2::int)), 'sha256:x', 'me',
			CASE WHEN $1 = 'running try' THEN 'running' ELSE 'succeeded' END, CASE WHEN $1 <> 'running try' THEN now() END)`, name, limits)
	}

	page, err := b.store.PageSweeps(t.Context(), berth.SweepQuery{Sort: berth.ParseSort("name"), Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Rows, 2)
	require.Equal(t, "running try", page.Rows[0].Name)
	require.Equal(t, "sweep of a try", page.Rows[1].Name)
}

func TestNotes(t *testing.T) {
	t.Parallel()

	b := setup(t)
	named := func(text string) int {
		page, err := b.store.PageSweeps(t.Context(), berth.SweepQuery{Name: text, Sort: berth.ParseSort("-created_at"), Limit: 10})
		require.NoError(t, err)

		return len(page.Rows)
	}
	require.Zero(t, named("#baseline"))

	require.NoError(t, b.store.SetSweepNote(t.Context(), b.sweep, "the old loss #baseline", nil))
	require.Equal(t, 1, named("#BASE"))

	sweep, err := b.store.GetSweep(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, "the old loss #baseline", sweep.Note)

	b.addTrials(t, 1)
	require.NoError(t, b.store.SetTrialNote(t.Context(), b.sweep, 1, "odd curve", nil))

	trial, err := b.store.GetTrial(t.Context(), b.sweep, 1)
	require.NoError(t, err)
	require.Equal(t, "odd curve", trial.Note)

	require.Equal(t, 1, named("ODD CURVE"), "a sweep is found by the notes of its trials, too")

	seen := "odd curve"
	require.NoError(t, b.store.SetTrialNote(t.Context(), b.sweep, 1, "the colleague's", &seen))
	require.Equal(t, berth.KindConflict, berth.KindOf(b.store.SetTrialNote(t.Context(), b.sweep, 1, "mine", &seen)))
	require.Equal(t, berth.KindConflict, berth.KindOf(b.store.SetSweepNote(t.Context(), b.sweep, "mine", &seen)))

	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.SetSweepNote(t.Context(), b.host.ID, "x", nil)))
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.SetTrialNote(t.Context(), b.sweep, 99, "x", nil)))
}
