package docker

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"
)

// The digest is that of the repository that the sweep names, however it is written:
// other machines have the login of that one.
func TestDigest_HoweverItIsWritten(t *testing.T) {
	t.Parallel()

	short, err := reference.ParseNormalizedNamed("python")
	require.NoError(t, err)

	hub := reference.Domain(short) // Docker's own registry, which short names leave out
	have := []string{"aaa.example/mirror/python@sha256:1", "python@sha256:2"}

	for ref, want := range map[string]string{
		"python": "python@sha256:2", "python:3.11": "python@sha256:2", "library/python:3.11": "python@sha256:2",
		hub + "/library/python:3.11": "python@sha256:2", hub + "/python:3.11": "python@sha256:2", hub + "/python@" + someDigest: "python@sha256:2",
		"aaa.example/mirror/python:3": "aaa.example/mirror/python@sha256:1",
		"python-slim:3":               "aaa.example/mirror/python@sha256:1", // of neither: the first
		someDigest:                    "aaa.example/mirror/python@sha256:1", // an ID
	} {
		require.Equal(t, want, digest(ref, "sha256:0", have), ref)
	}

	require.Equal(t, "sha256:id", digest("team/image:1", "sha256:id", nil))
}

// A machine that is new has no image: that is a list, too.
func TestListImages_None(t *testing.T) {
	t.Parallel()

	d := answering(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/images/json") {
			return false
		}

		_, _ = io.WriteString(w, `[]`)

		return true
	})

	names, err := d.ListImages(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{}, names, "PostgreSQL stores nil as NULL")
}
