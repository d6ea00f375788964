package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request knows which hosts lack its image, as far as they told it lately.
func TestHostImages(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.request(t, gib)

	lacking := func(image string) (lacking, unable []string) {
		t.Helper()
		b.exec(t, `UPDATE sweeps SET image_digest = $1`, image)

		waiting := b.queue(t).Waiting
		require.Len(t, waiting, 1)

		return waiting[0].Lacking, waiting[0].Unable
	}

	const (
		pulled = "team/digits@sha256:11"
		other  = "team/digits@sha256:22"
		local  = "sha256:33"
	)

	host := []string{b.host.ID}

	for _, c := range []struct {
		name            string
		images          []string
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
		{name: "it has none", pulls: true, image: pulled, lacking: host},
	} {
		if c.name != "it has not told" {
			require.NoError(t, b.store.TellHostImages(t.Context(), b.host.ID, c.images, c.pulls))
		}

		lacks, unable := lacking(c.image)
		require.Equal(t, c.lacking, lacks, c.name)
		require.Equal(t, c.unable, unable, c.name)
	}

	b.exec(t, `UPDATE host_images SET told_at = now() - interval '4 minutes'`)

	lacks, unable := lacking(other)
	require.Empty(t, lacks, "that was long ago")
	require.Empty(t, unable)
}
