package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// --keep-outputs removes a file from hosts and from the store only once it is
// stored for an hour.
func TestRetain_LeavesFilesThatWaitForTheStore(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := retainedSetup(t)
	r.end(t, 48*time.Hour)

	keep := berth.Retention{Outputs: 36 * time.Hour}
	asked := func() int {
		for range 3 {
			r.retain(t, keep)
		}

		list, err := r.store.OutputRemovals(ctx, r.host.ID, 10)
		require.NoError(t, err)

		return len(list)
	}
	set := func() berth.FileSet {
		set, err := r.store.FileSet(ctx, r.request.TrialID, 0)
		require.NoError(t, err)

		return set
	}

	require.NoError(t, r.store.SetHostStores(ctx, r.host.ID, true))
	require.Equal(t, berth.FilesPending, set().State)
	require.Zero(t, asked(), "they wait for the store")

	const many = 4_500 // three steps

	files, paths := make([]berth.Artifact, many), make([]string, many)
	for i := range files {
		paths[i] = fmt.Sprintf("file-%04d", i)
		files[i] = berth.Artifact{Path: paths[i], Bytes: 1, Digest: berth.Digest{byte(i), byte(i >> 8)}}
	}

	require.NoError(t, r.store.ClaimFiles(ctx, r.request.AttemptID, files))
	require.NoError(t, r.store.ClaimFiles(ctx, r.request.AttemptID, files), "again changes nothing")
	require.Zero(t, set().Files)
	require.NoError(t, r.store.FilesStored(ctx, r.request.AttemptID, paths))
	require.NoError(t, r.store.SettleFiles(ctx, r.request.AttemptID, berth.FileOutcome{State: berth.FilesStored}))
	require.Equal(t, many, set().Files)
	require.Zero(t, asked(), "they are there since a moment ago")

	r.exec(t, "UPDATE attempts SET files_settled_at = now() - interval '61 minutes'")
	require.Equal(t, 1, asked())
	require.Equal(t, berth.FilesRemoved, set().State)
	require.Contains(t, set().Problem, "--keep-outputs")
	require.Zero(t, r.rows(t, "artifacts"))
	require.Equal(t, 1, r.rows(t, "audit_log"))
}

// What a limit of the host's disk removes stays in the store, and goes with --keep-outputs.
func TestExpireOutputs_LeavesTheStoreAlone(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := retainedSetup(t)
	require.NoError(t, r.store.SetHostStores(ctx, r.host.ID, true))
	require.NoError(t, r.store.ClaimFiles(ctx, r.request.AttemptID, []berth.Artifact{{Path: "a"}}))
	require.NoError(t, r.store.FilesStored(ctx, r.request.AttemptID, []string{"a"}))
	require.NoError(t, r.store.SettleFiles(ctx, r.request.AttemptID, berth.FileOutcome{State: berth.FilesStored}))
	r.end(t, 48*time.Hour)
	r.exec(t, "UPDATE attempts SET files_settled_at = now() - interval '1 day'")

	require.NoError(t, r.store.ExpireOutputs(ctx, r.host.ID, []string{r.request.TrialID}, "the limit"))

	set, err := r.store.FileSet(ctx, r.request.TrialID, 1)
	require.NoError(t, err)
	require.Equal(t, berth.FilesStored, set.State)
	require.Equal(t, 1, r.rows(t, "artifacts"))

	for range 3 {
		r.retain(t, berth.Retention{Outputs: time.Hour})
	}

	require.Zero(t, r.rows(t, "artifacts"))

	attempt, err := r.store.GetAttempt(ctx, r.request.AttemptID)
	require.NoError(t, err)
	require.Equal(t, "the limit", attempt.OutputsRemovedWhy, "which removed them first")
}

// A row with an impossible state is refused.
func TestArtifacts_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	for _, path := range []string{"", ".", "..", "/a", "a/", "a//b", "a/../b", "../a", "a/..", "./a", string(make([]byte, 2000))} {
		require.Error(t, r.store.ClaimFiles(t.Context(), r.request.AttemptID, []berth.Artifact{{Path: path}}), path)
	}

	require.NoError(t, r.store.ClaimFiles(t.Context(), r.request.AttemptID, []berth.Artifact{{Path: "..."}, {Path: "a/..b"}, {Path: "a\n/.b"}}))
}
