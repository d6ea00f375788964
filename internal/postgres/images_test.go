package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
)

// A request knows which hosts lack its image, as far as they told it lately.
func TestHostImages(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()
	r := b.request(t, gib)

	lacking := func(image string) (lacking, unable []string) {
		t.Helper()

		_, err := pool.Exec(ctx, `UPDATE sweeps SET image_digest = $1`, image)
		require.NoError(t, err)

		queue, err := b.store.Queue(ctx, 10)
		require.NoError(t, err)
		require.Len(t, queue.Waiting, 1)
		require.Equal(t, r.AttemptID, queue.Waiting[0].AttemptID)

		return queue.Waiting[0].Lacking, queue.Waiting[0].Unable
	}

	const (
		pulled = "team/digits@sha256:11"
		other  = "team/digits@sha256:22"
		local  = "sha256:33"
	)

	host := []string{b.host.ID}

	for _, c := range []struct {
		name            string
		images          []string // nil = it tells nothing
		pulls           bool
		image           string
		lacking, unable []string
	}{
		{name: "it has not told", image: other},
		{name: "it has the image", images: []string{pulled, local}, pulls: true, image: pulled},
		{name: "it has the local image", images: []string{pulled, local}, pulls: true, image: local},
		{name: "it can pull", images: []string{pulled}, pulls: true, image: other, lacking: host},
		{name: "it pulls none", images: []string{pulled}, image: other, unable: host},
		{name: "no registry has it", images: []string{pulled}, pulls: true, image: local, unable: host},
		{name: "it has none", images: []string{}, pulls: true, image: pulled, lacking: host},
	} {
		if c.images != nil {
			require.NoError(t, b.store.TellHostImages(ctx, b.host.ID, c.images, c.pulls))
		}

		lacks, unable := lacking(c.image)
		require.Equal(t, c.lacking, lacks, c.name)
		require.Equal(t, c.unable, unable, c.name)
	}

	_, err := pool.Exec(ctx, `UPDATE host_images SET told_at = now() - interval '4 minutes'`)
	require.NoError(t, err)

	lacks, unable := lacking(other)
	require.Empty(t, lacks, "that was long ago")
	require.Empty(t, unable)
}

// A host without images lacks each.
func TestHostImages_NoImageAtAll(t *testing.T) {
	t.Parallel()

	at := pgtest.URL(t)
	b, pool := setupOn(t, at), openPool(t, at)
	b.request(t, gib)

	_, err := pool.Exec(t.Context(), `UPDATE sweeps SET image_digest = 'team/digits@sha256:11'`)
	require.NoError(t, err)
	require.NoError(t, b.store.TellHostImages(t.Context(), b.host.ID, nil, true))

	queue, err := b.store.Queue(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []string{b.host.ID}, queue.Waiting[0].Lacking)
}

// Image lists can be long, so a placer round reads a list only after its host reported a
// new one or after a request for a new image.
func TestHostImages_AreReadOnce(t *testing.T) {
	t.Parallel()

	at := pgtest.URL(t)
	b, pool := setupOn(t, at), openPool(t, at)
	ctx := t.Context()
	b.request(t, gib)
	require.NoError(t, b.store.TellHostImages(ctx, b.host.ID, []string{"a@sha256:1"}, true))

	for _, c := range []struct {
		change, says string
		lacking      []string
	}{
		{`UPDATE sweeps SET image_digest = 'a@sha256:1'`, "it has it", nil},
		{`UPDATE host_images SET images = '{b@sha256:2}'`, "it told nothing new", nil},
		{`UPDATE sweeps SET image_digest = 'b@sha256:2'`, "another image", nil},
		{`UPDATE sweeps SET image_digest = 'a@sha256:1'`, "the first again", []string{b.host.ID}},
		{`UPDATE host_images SET images = '{a@sha256:1}'`, "it told nothing new", []string{b.host.ID}},
		{`UPDATE host_images SET told_at = now()`, "it told it anew", nil},
	} {
		_, err := pool.Exec(ctx, c.change)
		require.NoError(t, err)

		queue, err := b.store.Queue(ctx, 10)
		require.NoError(t, err)
		require.Equal(t, c.lacking, queue.Waiting[0].Lacking, "%s: %s", c.change, c.says)
	}
}
