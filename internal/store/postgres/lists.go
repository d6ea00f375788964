package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// PageSweeps returns a page of the sweeps that match, with their counts. Errors:
// invalid for a key that sweeps are not sorted by, or a position of another list.
func (s *Store) PageSweeps(ctx context.Context, q berth.SweepQuery) (berth.Page[berth.Sweep], error) {
	var page berth.Page[berth.Sweep]

	list, err := sweepList(q)
	if err != nil {
		return page, err
	}

	return page, s.inSnapshot(ctx, "listing sweeps", func(tx pgx.Tx) error {
		ids, next, total, err := readPage(ctx, tx, list, q.After, q.Limit, q.Count)
		if err != nil {
			return err
		}

		rows, err := s.q.SweepsByID(ctx, tx, ids)
		if err != nil {
			return err
		}

		page.Rows, err = s.withCounts(ctx, tx, convertAll(inOrder(ids, rows, func(row dbsqlc.Sweep) string { return row.ID }), toSweep))
		page.Next, page.Total = next, total

		return err
	})
}

// inSnapshot runs several reads in one snapshot: a row that changes in between
// appears once, in its old state.
func (s *Store) inSnapshot(ctx context.Context, doing string, read func(tx pgx.Tx) error) error {
	return translate(pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read), doing)
}

// readPage reads the ids of a page, and on request counts the list.
func readPage(ctx context.Context, db dbsqlc.DBTX, list *keyset, after *berth.Position, limit int, count bool) (ids []string, next *berth.Position, total int, err error) {
	if ids, next, err = list.page(ctx, db, after, limit); err != nil || !count {
		return ids, next, 0, err
	}

	if total = len(ids); after != nil || next != nil {
		total, err = list.count(ctx, db)
	}

	return ids, next, total, err
}

func sweepList(q berth.SweepQuery) (*keyset, error) {
	k := &keyset{table: "sweeps", filters: []string{"deleted_at IS NULL"}, most: berth.MostSweepsCounted}

	if len(q.States) > 0 {
		k.filter("state = ANY (%[1]s::text[])", texts(q.States))
	}

	if q.Name != "" {
		k.filter(`(name ILIKE %[1]s::text OR note ILIKE %[1]s::text OR EXISTS (
			SELECT 1 FROM trials t WHERE t.sweep_id = sweeps.id AND t.note <> '' AND t.note ILIKE %[1]s::text))`, "%"+escapeLike.Replace(q.Name)+"%")
	} else {
		k.filters = append(k.filters, "NOT (is_try AND finished_at IS NOT NULL)") // a dozen tries would hide the sweeps; who looks for one names it
	}

	if q.CreatedBy != "" {
		k.filter("created_by = %[1]s::text", q.CreatedBy)
	}

	desc := q.Sort.Descending
	created := section{key: expr{"created_at", "timestamptz", desc}, tie: expr{"id", "uuid", desc}}

	switch q.Sort.By {
	case berth.SortCreatedAt:
		k.sections = []section{created}
	case berth.SortName:
		k.sections = []section{{key: expr{`lower(name) COLLATE "C"`, "text", desc}, tie: expr{"id", "uuid", desc}}}
	case berth.SortFinishedAt:
		created.where, created.key.desc, created.tie.desc = "finished_at IS NULL", true, true
		k.sections = []section{{
			where: "finished_at IS NOT NULL", key: expr{"finished_at", "timestamptz", desc}, tie: expr{"id", "uuid", desc},
		}, created}
	default:
		return k, berth.Errorf(berth.KindInternal, "sweeps are not sorted by %q", q.Sort.By)
	}

	return k, nil
}

// escapeLike makes LIKE take a text as it is.
var escapeLike = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = string(word)
	}

	return out
}

// PageTrials returns a page of a sweep's trials that match; of a sweep that is
// not there, none. Errors: invalid for a key that trials are not sorted by, or a
// position of another list.
func (s *Store) PageTrials(ctx context.Context, sweepID string, q berth.TrialQuery) (berth.Page[berth.ListedTrial], error) {
	var page berth.Page[berth.ListedTrial]

	list, err := trialList(sweepID, q)
	if err != nil {
		return page, err
	}

	return page, s.inSnapshot(ctx, "listing trials of sweep "+sweepID, func(tx pgx.Tx) error {
		ids, next, total, err := readPage(ctx, tx, list, q.After, q.Limit, q.Count)
		if err != nil {
			return err
		}

		metric, err := s.q.ObjectiveMetric(ctx, tx, sweepID)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}

		rows, err := s.q.ListedTrials(ctx, tx, metric, ids)
		page.Rows = convertAll(inOrder(ids, rows, func(row dbsqlc.ListedTrialsRow) string { return row.Trial.ID }), toListedTrial)
		page.Next, page.Total = next, total

		if err != nil || len(q.Metrics) == 0 {
			return err
		}

		return s.addMetrics(ctx, tx, page.Rows, q.Metrics)
	})
}

// addMetrics tells the newest points of metrics of listed trials.
func (s *Store) addMetrics(ctx context.Context, db dbsqlc.DBTX, trials []berth.ListedTrial, names []string) error {
	latest := make(map[string]*berth.LatestAttempt, len(trials))

	for _, trial := range trials {
		if trial.Latest != nil {
			latest[trial.Latest.ID] = trial.Latest
		}
	}

	rows, err := s.q.NewestMetrics(ctx, db, slices.Collect(maps.Keys(latest)), names)
	for _, row := range rows {
		attempt := latest[row.AttemptID]
		attempt.Metrics = append(attempt.Metrics, berth.MetricPoint{
			Name: row.Name, Step: row.Step, Value: row.Value, Status: row.Status, Final: row.Final, At: row.At,
		})
	}

	return err
}

func trialList(sweepID string, q berth.TrialQuery) (*keyset, error) {
	k := &keyset{table: "trials", most: berth.MostTrialsCounted}
	k.filter("sweep_id = %[1]s::uuid AND EXISTS (SELECT 1 FROM sweeps WHERE id = %[1]s::uuid AND deleted_at IS NULL)", sweepID)

	if len(q.States) > 0 {
		k.filter("state = ANY (%[1]s::text[])", texts(q.States))
	}

	if q.ValueMin != nil {
		k.filter("value >= %[1]s::double precision", *q.ValueMin)
	}

	if q.ValueMax != nil {
		k.filter("value <= %[1]s::double precision", *q.ValueMax)
	}

	if q.Stage != "" {
		k.filter("EXISTS (SELECT 1 FROM unnest(stage_keys) AS k (key) WHERE starts_with(k.key, %[1]s::text))", q.Stage)
	}

	number := expr{text: "number", kind: "integer"}
	took := expr{"(finished_at - started_at)", "interval", q.Sort.Descending}

	switch q.Sort.By {
	case berth.SortNumber:
		number.desc = q.Sort.Descending
		k.sections = []section{{tie: number}}
	case berth.SortValue:
		k.sections = []section{
			{where: "value IS NOT NULL", key: expr{"value", "double precision", q.Sort.Descending}, tie: number},
			{where: "value IS NULL", tie: number},
		}
	case berth.SortDuration:
		k.sections = []section{
			{where: "(finished_at - started_at) IS NOT NULL AND state = 'succeeded'", key: took, tie: number},
			{where: "(finished_at - started_at) IS NOT NULL AND state <> 'succeeded'", key: took, tie: number},
			{where: "(finished_at - started_at) IS NULL", tie: number},
		}
	default:
		return k, berth.Errorf(berth.KindInternal, "trials are not sorted by %q", q.Sort.By)
	}

	return k, nil
}

func toListedTrial(row dbsqlc.ListedTrialsRow) berth.ListedTrial {
	listed := berth.ListedTrial{Trial: toTrial(row.Trial)}
	listed.Attempts, listed.Waiting, listed.OutputsRemoved = row.Attempts, toReasons(row.Reasons), row.OutputsRemoved
	listed.Kept = keptHost(row.KeptHostID, row.KeptHost, row.KeptDeviceID, row.KeptSince)

	if row.Waits {
		listed.WaitingSince = &row.WaitingSince
	}

	if row.AttemptNumber == 0 {
		return listed
	}

	listed.Latest = &berth.LatestAttempt{
		ID: row.AttemptID, Number: row.AttemptNumber, Stage: row.Stage, State: berth.AttemptState(row.AttemptState), Purpose: berth.Purpose(row.Purpose),
		HostID: row.HostID, HostName: row.HostName, DeviceID: row.DeviceID, MemoryBytes: row.MemoryBytes, DeviceBytes: row.DeviceBytes,
		MemoryPeakBytes: row.MemoryPeakBytes, DevicePeakBytes: row.DevicePeakBytes,
	}

	if row.MetricStatus != "" {
		listed.Latest.Metric = &berth.MetricPoint{
			Name: row.MetricName, Step: row.MetricStep, Value: row.MetricValue, Status: berth.MetricStatus(row.MetricStatus),
			Final: row.MetricFinal, At: row.MetricAt,
		}
	}

	return listed
}
