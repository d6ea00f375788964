package artifacts_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
)

// A process starts without a store, and while its store does not answer; not with another
// Berth's.
func TestOpenReady(t *testing.T) {
	// Credentials for S3, so that no other source is asked.
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")

	open := func(where, installation string) (*artifacts.Store, error) {
		store, err := artifacts.OpenReady(t.Context(), where, installation, marks{}, slog.New(slog.DiscardHandler))
		if store != nil {
			require.NoError(t, store.Close())
		}

		return store, err
	}

	none, err := open("", "one")
	require.NoError(t, err)
	require.Nil(t, none)

	away, err := open("s3://bucket?region=eu-west-1&endpoint=http://127.0.0.1:1&use_path_style=true", "one")
	require.NoError(t, err)
	require.NotNil(t, away)

	dir := t.TempDir()
	_, err = open(dir, "one")
	require.NoError(t, err)
	_, err = open(dir, "two")
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
}
