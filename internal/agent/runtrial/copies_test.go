package runtrial

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// stores has the rig's attempt read an output that another host made, and the store hold it. It
// counts the objects that are fetched.
func (r *rig) stores(contents map[string]string) (fetched *int) {
	r.books.says(func(who *berth.Assignee) {
		who.Inputs = []berth.StageInput{{Name: "base", Key: "0123", AttemptID: "elsewhere", HostID: "other", Stored: true}}
	})

	objects, files := map[berth.Digest]string{}, []berth.Artifact{}

	for _, path := range []string{"deep/base.keras", metricsName} {
		d := berth.Digest(sha256.Sum256([]byte(path)))
		objects[d] = contents[path]
		files = append(files, berth.Artifact{Path: path, Bytes: int64(len(path)), Digest: d})
	}

	r.books.StoreFiles("elsewhere", files...)

	fetched = new(int)
	r.config.Fetch = func(_ context.Context, d berth.Digest, _ int64, w io.Writer) error {
		*fetched++

		content := objects[d]
		if _, err := io.WriteString(w, content); err != nil {
			return err
		}

		switch {
		case content == "":
			return berth.Errorf(berth.KindNotFound, "the store has lost it")
		case berth.Digest(sha256.Sum256([]byte(content))) != d:
			return berth.ErrDamaged
		default:
			return nil
		}
	}

	return fetched
}

var whole = map[string]string{"deep/base.keras": "deep/base.keras", metricsName: metricsName}

// An output that another host made is fetched from the store, once for all trials, and goes when
// no trial needs it.
func TestStage_InputsAreFetchedOnce(t *testing.T) {
	t.Parallel()

	r := setup(t)
	fetched := r.stores(whole)
	copied := filepath.Join(r.dir, "stages", "elsewhere", "out")
	mount := berth.Mount{Source: copied, Target: "/trial/stages/base", ReadOnly: true}

	require.Contains(t, r.launch(t).Mounts, mount)
	require.Equal(t, 1, *fetched, "metrics are no part of it")

	content, err := os.ReadFile(filepath.Join(copied, "deep", "base.keras"))
	require.NoError(t, err)
	require.Equal(t, "deep/base.keras", string(content))

	output := func() {
		who, err := r.books.Assignee(t.Context(), attemptID)
		require.NoError(t, err)

		dir, err := r.open(r.order(), who).output(t.Context(), who.Inputs[0])
		require.NoError(t, err)
		require.Equal(t, copied, dir)
	}

	output()
	require.Equal(t, 1, *fetched)

	require.NoError(t, os.Truncate(filepath.Join(copied, "deep", "base.keras"), 3))
	output()
	require.Equal(t, 2, *fetched, "a damaged copy is fetched again")

	r.books.NeedOutputs("elsewhere")
	require.NoError(t, r.RemoveCopies(t.Context()))
	require.DirExists(t, copied)

	r.books.NeedOutputs()
	require.NoError(t, r.RemoveCopies(t.Context()))
	require.NoDirExists(t, filepath.Dir(copied))
}

// A store that is away, or a full disk, loses no output; one that has lost or damaged an object does.
func TestStage_InputsThatCannotBeFetched(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		spoil   func(r *rig)
		content map[string]string
		says    string
		dropped []string
	}{
		"the store has lost it": {nil, map[string]string{}, "the output of stage base is not whole on host", []string{"elsewhere"}},
		"a byte was flipped":    {nil, map[string]string{"deep/base.keras": "Deep/base.keras"}, "the output of stage base is not whole on host", []string{"elsewhere"}},
		"the store is away": {func(r *rig) {
			r.config.Fetch = func(context.Context, berth.Digest, int64, io.Writer) error {
				return berth.Errorf(berth.KindUnavailable, "no route")
			}
		}, whole, "cannot fetch the output of stage base", nil},
		"the disk is full": {func(r *rig) {
			r.config.Fetch = func(context.Context, berth.Digest, int64, io.Writer) error {
				return errors.New("no space left on device")
			}
		}, whole, "cannot fetch the output of stage base", nil},
		"the disk has its headroom only": {func(r *rig) {
			r.config.DiskFree = func() (int64, int64, error) { return 10, 10, nil }
			r.config.DiskHeadroom = 10
		}, whole, "fetching the output of stage base takes", nil},
		"this host has no store": {func(r *rig) { r.config.Fetch = nil }, whole, "not whole on host", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			r.stores(test.content)

			if test.spoil != nil {
				test.spoil(r)
			}

			began := time.Now()
			got := came(t, r.start(t.Context(), r.order()))
			require.Equal(t, berth.FailureInfra, got.Kind, name)
			require.Contains(t, got.Message, test.says, name)
			require.Equal(t, test.dropped, r.books.Dropped(), name)
			require.True(t, r.books.result(t).InputMissing, "the host is not to blame: %s", name)
			require.Empty(t, r.docks.launches(), name)
			require.Equal(t, name == "the store is away", time.Since(began) > 14*time.Minute, name)
		})
	}
}

// A trial behind another one that fetches what both read holds its place.
func TestStage_WaitsBehindAnotherFetch(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.stores(whole)

		lock := r.copyLock("elsewhere")
		require.NoError(t, lock.Acquire(t.Context(), 1))

		outcome := r.start(t.Context(), r.order())

		synctest.Wait()
		require.Len(t, r.Waiting(), 1)
		require.NoError(t, os.MkdirAll(filepath.Join(r.dir, "stages", "elsewhere"), 0o700))
		require.NoError(t, r.RemoveCopies(t.Context()), "the removal of other files does not wait for it")
		require.DirExists(t, filepath.Join(r.dir, "stages", "elsewhere"))
		r.config.Fetch = nil
		lock.Release(1)
		came(t, outcome)
		require.Empty(t, r.Waiting())
	})
}
