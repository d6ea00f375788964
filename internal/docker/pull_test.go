package docker

import (
	"strings"
	"testing"

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
