package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Docker's and registries' own words, copied from them.
func TestPullError(t *testing.T) {
	t.Parallel()

	image, err := named("registry.example/a:1")
	require.NoError(t, err)

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
		"toomanyrequests: You have reached your pull rate limit":   berth.PullUnreachable,
		"received unexpected HTTP status: 503 Service Unavailable": berth.PullUnreachable,
		"received unexpected HTTP status: 401 Unauthorized":        berth.PullUnauthorized,

		"filesystem layer verification failed for digest sha256:1": berth.PullUnreachable,
	} {
		why, ok := errors.AsType[*berth.PullError]((&Docker{}).pullError(t.Context(), image, errors.New("Error response from daemon: "+text)))
		require.True(t, ok)
		require.Equal(t, want, why.Reason, text)
		require.Equal(t, text, why.Detail, "Docker's own words")
	}
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
