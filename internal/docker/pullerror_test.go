package docker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Docker's and registries' own words, copied from them.
func TestPullReason(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]berth.PullReason{
		"pull access denied for team/a, repository does not exist or may require 'docker login': denied: requested access to the resource is denied":     berth.PullUnauthorized,
		"Head \"http://127.0.0.1:5000/v2/a/manifests/1\": no basic auth credentials":                                                                     berth.PullUnauthorized,
		"Get \"https://registry.example/v2/a/manifests/1\": unauthorized: incorrect username or password":                                                berth.PullUnauthorized,
		"manifest for registry.example/a:2 not found: manifest unknown: manifest unknown":                                                                berth.PullUnknown,
		"no matching manifest for linux/arm64/v8 in the manifest list entries":                                                                           berth.PullPlatform,
		"write /var/lib/docker/tmp/GetImageBlob1: no space left on device":                                                                               berth.PullDiskFull,
		"Get \"https://registry.example/v2/\": dial tcp: lookup registry.example on 127.0.0.53:53: no such host":                                         berth.PullUnreachable,
		"Get \"https://registry.example/v2/\": dial tcp 192.0.2.1:443: connect: connection refused":                                                      berth.PullUnreachable,
		"Get \"https://registry.example/v2/\": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)": berth.PullUnreachable,
		"Get \"https://registry.example/v2/\": x509: certificate signed by unknown authority":                                                            berth.PullUnreachable,
		"unexpected EOF": berth.PullUnreachable,
		"toomanyrequests: You have reached your pull rate limit":      berth.PullLimited,
		"received unexpected HTTP status: 503 Service Unavailable":    berth.PullUnreachable,
		"error parsing HTTP 401 response body: invalid character '<'": berth.PullUnauthorized,
		"received unexpected HTTP status: 401 Unauthorized":           berth.PullUnauthorized,

		// Names have these words, too.
		"manifest for registry.example/team/a@sha256:11e4d401aa0123456789abcdef0123456789abcdef0123456789abcdef0123ab not found: manifest unknown: manifest unknown":                        berth.PullUnknown,
		"Get \"https://registry.example/v2/team/a/manifests/sha256:11e4d401aa0123456789abcdef0123456789abcdef0123456789abcdef0123ab\": dial tcp 192.0.2.1:443: connect: connection refused": berth.PullUnreachable,
		"Get \"http://10.0.0.7:5401/v2/\": dial tcp 10.0.0.7:5401: connect: connection refused":                                                                                             berth.PullUnreachable,
		"Get \"http://10.0.0.7:401/v2/\": dial tcp 10.0.0.7:401: connect: connection refused":                                                                                               berth.PullUnreachable,
		"Get \"https://registry.example/v2/permission-denied/manifests/1\": EOF":                                                                                                            berth.PullUnreachable,
		"filesystem layer verification failed for digest sha256:1":                                                                                                                          berth.PullFailed,
	} {
		require.Equal(t, want, pullReason(text), text)
	}
}

// The name of an image, and that of its registry, say nothing about what is wrong.
func TestPullError_Names(t *testing.T) {
	t.Parallel()

	for ref, c := range map[string]struct {
		said string
		want berth.PullReason
	}{
		"denied.example/a:1": {"Get \"https://denied.example/v2/\": dial tcp: lookup denied.example on 127.0.0.53:53: no such host", berth.PullUnreachable},
		"unauthorized:2":     {"manifest for unauthorized:2 not found: manifest unknown: manifest unknown", berth.PullUnknown},
	} {
		image, err := named(ref)
		require.NoError(t, err)

		why, ok := errors.AsType[*berth.PullError](setup(t).pullError(context.Background(), image, errors.New(c.said)))
		require.True(t, ok)
		require.Equal(t, c.want, why.Reason, c.said)
	}
}

// An image without a registry in its name is often one that is not built yet.
// Docker Hub answers, and a login helps.
func TestPullError_Limited(t *testing.T) {
	t.Parallel()

	image, err := reference.ParseNormalizedNamed("team/pytorch:2.1")
	require.NoError(t, err)

	refused := (&Docker{}).pullError(t.Context(), image, errors.New("Error response from daemon: toomanyrequests: You have reached your unauthenticated pull rate limit"))
	require.ErrorContains(t, refused, "lets this machine pull no more for now (toomanyrequests: You have reached your unauthenticated pull rate limit)")
	require.ErrorContains(t, refused, "docker login "+reference.Domain(image))
}

func TestPullError_SaysHowToBuild(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]bool{"mnist-train:1": true, "team/mnist:1": true, "registry.example/mnist:1": false} {
		image, err := reference.ParseNormalizedNamed(name)
		require.NoError(t, err)

		for _, reason := range []berth.PullReason{berth.PullUnknown, berth.PullUnauthorized, berth.PullUnreachable} {
			fix := pullErrorOf(image, reason, "it said so").Fix
			require.Equal(t, want, strings.Contains(fix, "docker build -t "+name+" ."), fix)
		}

		require.NotContains(t, pullErrorOf(image, berth.PullDiskFull, "full").Fix, "docker build")
	}
}
