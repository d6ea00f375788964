package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
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

	b := setup(t)
	first := b.request(t, gib)
	b.reports(t, first, append(points("loss", 5), points("acc", 3)...)...)
	b.end(t, first)

	short := b.shortProbe(t, first)
	b.reports(t, short, points("loss", 2)...)

	waits := b.request(t, gib)
	b.another(t, berth.Resources{}).request(t, gib)

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
			list, err := b.store.ListMetrics(t.Context(), id, "", 100)
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

	b := setup(t)
	b.addTrials(t, 2000)
	b.exec(t, `DELETE FROM metrics m USING attempts a JOIN trials t ON t.id = a.trial_id WHERE m.attempt_id = a.id AND t.number < 1900`)

	trials, points := b.exported(t, 300)
	require.Len(t, trials, 2000)
	require.NotEmpty(t, points)
	require.Len(t, points, b.rows(t, "metrics"))
}

// docs/export.md: "counts marks the one" attempt "that the table of trials shows". A trial that is run again between two
// pages of an export must not have two: curves.query("counts") would draw both as one.
func TestExportMetrics_OneAttemptOfATrialCounts(t *testing.T) {
	t.Parallel()

	b, ctx := setup(t), t.Context()
	first := b.request(t, gib)
	b.reports(t, first, points("loss", 4)...)

	page, next, err := b.store.ExportMetrics(ctx, b.sweep, berth.MetricKey{}, 2)
	require.NoError(t, err)
	require.NotNil(t, next)

	b.end(t, first) // it ran out of memory
	b.reports(t, b.again(t, first, 2), points("loss", 4)...)

	for next != nil {
		var more []berth.ExportedMetric

		more, next, err = b.store.ExportMetrics(ctx, b.sweep, *next, 2)
		require.NoError(t, err)

		page = append(page, more...)
	}

	require.Len(t, page, 8)

	for _, p := range page {
		require.Equal(t, p.AttemptNumber == 1, p.Counts)
	}

	_, points := b.exported(t, 3)
	for _, p := range points {
		require.Equal(t, p.AttemptNumber == 2, p.Counts, "the next export shows the next attempt")
	}
}
