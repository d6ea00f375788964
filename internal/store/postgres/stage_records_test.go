package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// listed are the keys of all stages, or of a sweep's.
func (b *bundle) listed(t *testing.T, sweepID string) (keys []string) {
	t.Helper()

	for after := (berth.StagePosition{}); ; {
		page, err := b.store.ListStages(t.Context(), sweepID, after, 2)
		require.NoError(t, err)

		if len(page) == 0 {
			return keys
		}

		for _, stage := range page {
			keys = append(keys, stage.Key)
		}

		after = page[len(page)-1].Position()
	}
}

// A key is found by its beginning: with an output, while a trial waits for it, when a trial failed in it.
func TestStageRecords_AreFoundByABeginning(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	made := b.makes(t, "base", "aaaa1", "aaaa1", "bbbb1")
	waits := b.staged(t, "base", "aaaa2", "cccc1")

	require.Equal(t, []string{"aaaa1"}, b.listed(t, ""))
	require.Equal(t, []string{"cccc1", "bbbb1", "aaaa2", "aaaa1"}, b.listed(t, b.sweep))

	is, err := b.store.FindStage(t.Context(), "aaaa1")
	require.NoError(t, err)
	require.Equal(t, made.AttemptID, is.Output.AttemptID)
	require.Equal(t, "base", is.Stage)

	is, err = b.store.FindStage(t.Context(), "cc")
	require.NoError(t, err)
	require.Nil(t, is.Output)
	require.Equal(t, []any{"features", 2, 1, true}, []any{is.Stage, is.Trial, is.OpenTrials, is.Held})

	_, err = b.store.FindStage(t.Context(), "aaaa")
	require.Equal(t, berth.KindConflict, berth.KindOf(err))

	_, err = b.store.SetTrialState(t.Context(), berth.TrialUpdate{
		TrialID: waits.TrialID, SweepID: b.sweep, Number: 2, State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "broken", FailedStage: "aaaa2",
	})
	require.NoError(t, err)

	is, err = b.store.FindStage(t.Context(), "aaaa2")
	require.NoError(t, err)
	require.Equal(t, []any{0, 1, false}, []any{is.OpenTrials, is.EndedTrials, is.Held})

	_, err = b.store.FindStage(t.Context(), "cc")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "no trial waits for it any more")

	is, err = b.store.FindStage(t.Context(), "cccc1")
	require.NoError(t, err, "by the whole key")
	require.Equal(t, "features", is.Stage)

	b.exec(t, "UPDATE sweeps SET state = 'canceled', finished_at = now(), deleted_at = now() WHERE id = $1", b.sweep)
	require.Empty(t, b.listed(t, ""), "its sweep is deleted")
}

// An output is forgotten once no trial and no container needs it.
func TestForgetStage(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	made := b.makes(t, "base", "k1", "k1", "k2")
	b.settle(t, berth.PlacementRequest{TrialID: trialOf(t, b)}, berth.TrialCanceled, berth.FailureCanceled, nil)

	reads := b.staged(t, "features", "k1", "k3")
	require.ErrorContains(t, b.store.ForgetStage(t.Context(), "k1"), "that have not ended need it")

	_, err := b.store.RequestPlacement(t.Context(), reads)
	require.NoError(t, err)
	b.place(t, reads)
	b.exec(t, "UPDATE trials SET state = 'canceled', finished_at = now() WHERE id = $1", reads.TrialID)

	err = b.store.ForgetStage(t.Context(), "k1")
	require.ErrorContains(t, err, "are still being removed")
	require.Equal(t, berth.KindConflict, berth.KindOf(err))

	b.exec(t, "UPDATE leases SET state = 'released', released_at = now(), proof = 'x'")
	require.NoError(t, b.store.ForgetStage(t.Context(), "k1"))

	removals, err := b.store.OutputRemovals(t.Context(), b.host.ID, 10)
	require.NoError(t, err)
	require.Equal(t, []berth.OutputRemoval{{AttemptID: made.AttemptID, TrialID: made.TrialID}}, removals)
	require.Equal(t, "its stage was forgotten", b.attempt(t, made.AttemptID).OutputsRemovedWhy)
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.ForgetStage(t.Context(), "k1")))

	b.staged(t, "base", "k1", "k2")
	require.Equal(t, []bool{false, false}, b.known(t), "the next trial runs it again")
}
