package docker

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// TestEnsure_ADockerThatCreatesNothing: Docker's answer to a launch tells
// whether the host, the launch or neither is at fault (reliability.md, failures
// 63 and 100).
func TestEnsure_ADockerThatCreatesNothing(t *testing.T) {
	t.Parallel()

	const create, image = "/containers/create", "/images/"

	for name, tt := range map[string]struct {
		refused string // part of the path
		status  int
		words   string
		start   berth.FailureKind // of the *berth.StartError; empty = none
		kind    berth.Kind
	}{
		"no inode":  {create, http.StatusInternalServerError, "mkdir /var/lib/docker/overlay2/6b1f-init: no space left on device", berth.FailureInfra, berth.KindInvalid},
		"read-only": {create, http.StatusInternalServerError, "mkdir /var/lib/docker/overlay2/6b1f/merged/app: read-only file system", berth.FailureInfra, berth.KindInvalid},
		"unreadable image": {
			image, http.StatusInternalServerError, "open /var/lib/docker/image/overlay2/imagedb/content/sha256/0123: input/output error",
			berth.FailureInfra, berth.KindInvalid,
		},
		"bad launch":       {create, http.StatusBadRequest, "the working directory '/app' is invalid", berth.FailureBadCommand, berth.KindInvalid},
		"busy":             {create, http.StatusServiceUnavailable, "try later", "", berth.KindUnavailable},
		"image just went":  {create, http.StatusNotFound, "No such image: sha256:0123", "", berth.KindNotFound},
		"nonsense as name": {image, http.StatusBadRequest, "invalid reference format", "", berth.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := answering(t, func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, tt.refused) {
					return false
				}

				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, `{"message": "`+tt.words+`"}`)

				return true
			})

			_, err := d.Ensure(t.Context(), launch())
			require.ErrorContains(t, err, tt.words)
			require.Equal(t, tt.kind, berth.KindOf(err), "%v", err)

			var start *berth.StartError
			if tt.start == "" {
				require.NotErrorAs(t, err, &start)

				return
			}

			require.ErrorAs(t, err, &start)
			require.Equal(t, tt.start, start.Kind)
		})
	}
}

// TestEnsure_ADockerThatHasJustComeBack: its errors do not count against the
// host (reliability.md, failure 5).
func TestEnsure_ADockerThatHasJustComeBack(t *testing.T) {
	t.Parallel()

	d := answering(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}

		w.WriteHeader(http.StatusInternalServerError)

		return true
	})
	d.away.noteAbsent(time.Now())

	_, err := d.Ensure(t.Context(), launch())
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
}

// answering returns a Docker whose daemon has the image of launch and no
// container, and lets answer have each request first.
func answering(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool) *Docker {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")

		switch {
		case answer(w, r):
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case strings.Contains(r.URL.Path, "/images/"):
			_, _ = io.WriteString(w, `{"Id": "sha256:0123"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message": "No such container"}`)
		}
	}))
	t.Cleanup(server.Close)

	d := setup(t)
	d.short = daemonAt(t, server)
	d.long = daemonAt(t, server)

	return d
}

func daemonAt(t *testing.T, server *httptest.Server) *client.Client {
	t.Helper()

	c, err := client.NewClientWithOpts(client.WithHost("tcp://"+server.Listener.Addr().String()), client.WithAPIVersionNegotiation())
	require.NoError(t, err)

	return c
}
