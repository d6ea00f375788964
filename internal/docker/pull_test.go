package docker

import (
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// What Docker 20.10 says of a pull, and what people read of it.
func TestPullWatch(t *testing.T) {
	t.Parallel()

	var moved int

	told := []string{}
	w := pullWatch{total: 20 << 20, layers: make(map[string]layerPull), moved: func() { moved++ }, told: func(p berth.PullProgress) { told = append(told, p.Text()) }}
	err := w.read(strings.NewReader(`
		{"status":"Pulling from team/a","id":"sha256:1"}
		{"status":"Pulling fs layer","progressDetail":{},"id":"a"}
		{"status":"Pulling fs layer","progressDetail":{},"id":"b"}
		{"status":"Already exists","progressDetail":{},"id":"c"}
		{"status":"Waiting","progressDetail":{},"id":"b"}
		{"status":"Downloading","progressDetail":{"current":5242880,"total":10485760},"progress":"[==>  ]","id":"a"}
		{"status":"Downloading","progressDetail":{"current":10485760,"total":10485760},"id":"a"}
		{"status":"Verifying Checksum","progressDetail":{},"id":"a"}
		{"status":"Download complete","progressDetail":{},"id":"a"}
		{"status":"Downloading","progressDetail":{"current":1048576,"total":10485760},"id":"b"}
		{"status":"Retrying in 5 seconds","progressDetail":{},"id":"b"}
		{"status":"Retrying in 4 seconds","progressDetail":{},"id":"b"}
		{"status":"Downloading","progressDetail":{"current":2097152,"total":10485760},"id":"b"}
		{"status":"Download complete","progressDetail":{},"id":"b"}
		{"status":"Extracting","progressDetail":{"current":32768,"total":10485760},"id":"a"}
		{"status":"Pull complete","progressDetail":{},"id":"a"}
		{"status":"Pull complete","progressDetail":{},"id":"b"}
		{"status":"Digest: sha256:1"}`))
	require.NoError(t, err)

	again := "its registry broke off; Docker tries again"
	require.Equal(t, []string{
		"0 of 20 MiB", "0 of 20 MiB", "0 of 20 MiB", "0 of 20 MiB", "0 of 20 MiB", "5 of 20 MiB", "10 of 20 MiB", "10 of 20 MiB", "10 of 20 MiB",
		"11 of 20 MiB", again, again, "12 of 20 MiB", "unpacking", "unpacking", "unpacking", "unpacking", "unpacking",
	}, told)
	require.Equal(t, 10, moved, "new words without new bytes are no progress")

	require.EqualError(t, w.read(strings.NewReader(`{"errorDetail":{"message":"no space"},"error":"no space"}`)), "no space")
	require.ErrorContains(t, w.read(strings.NewReader(`{"status":`)), "unexpected EOF")
}

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
		"toomanyrequests: You have reached your pull rate limit":   berth.PullUnreachable,
		"received unexpected HTTP status: 503 Service Unavailable": berth.PullUnreachable,
		"filesystem layer verification failed for digest sha256:1": berth.PullFailed,
	} {
		require.Equal(t, want, pullReason(text), text)
	}
}

// An image without a registry in its name is often one that is not built yet.
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
