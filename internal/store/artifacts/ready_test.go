package artifacts_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
)

// noMarks knows of no store.
type noMarks struct{}

func (noMarks) StoreMarked(context.Context, string) (bool, error) { return false, nil }
func (noMarks) NoteStoreMark(context.Context, string) error       { return nil }

func (noMarks) Installation(context.Context) (berth.Installation, error) {
	return berth.Installation{ID: "one"}, nil
}

func TestOpenReady(t *testing.T) {
	// Credentials for S3, so that no other source is asked.
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")

	log := slog.New(slog.DiscardHandler)
	dir := filepath.Join(t.TempDir(), "store")

	for _, c := range []struct { //nolint:paralleltest // t.Setenv
		name, where, installation, wrong string
		none                             bool
	}{
		{name: "without", none: true},
		{name: "a directory", where: dir, installation: "one"},
		{name: "of another Berth", where: dir, installation: "two", wrong: "belongs to another Berth (one)"},
		{name: "an unknown scheme", where: "ftp://x", wrong: `has the scheme "ftp"`},
		{name: "no bucket", where: "s3:///x", wrong: "the name of a bucket"},
		{name: "does not answer yet", where: "s3://bucket?region=eu-west-1&endpoint=http://127.0.0.1:1&use_path_style=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, err := artifacts.OpenReady(t.Context(), c.where, c.installation, noMarks{}, log)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				require.Contains(t, []berth.Kind{berth.KindInvalid, berth.KindConflict}, berth.KindOf(err))

				return
			}

			require.NoError(t, err)
			require.Equal(t, c.none, store == nil)

			if store != nil {
				require.NoError(t, store.Close())
			}
		})
	}
}
