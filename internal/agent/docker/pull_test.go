package docker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Docker 20.10 says of a pull, and what people read of it.
func TestReadPull(t *testing.T) {
	t.Parallel()

	told := []string{}
	moved := func(progress string) { told = append(told, progress) }
	err := readPull(strings.NewReader(`
		{"status":"Pulling from team/a","id":"sha256:1"}
		{"status":"Already exists","progressDetail":{},"id":"c"}
		{"status":"Downloading","progressDetail":{"current":5242880,"total":10485760},"progress":"[==>  ]","id":"a"}
		{"status":"Downloading","progressDetail":{"current":5242880,"total":10485760},"progress":"[==>  ]","id":"a"}
		{"status":"Download complete","progressDetail":{},"id":"a"}
		{"status":"Downloading","progressDetail":{"current":1048576,"total":10485760},"id":"b"}
		{"status":"Retrying in 5 seconds","progressDetail":{},"id":"b"}
		{"status":"Retrying in 4 seconds","progressDetail":{},"id":"b"}
		{"status":"Downloading","progressDetail":{"current":2097152,"total":10485760},"id":"b"}
		{"status":"Extracting","progressDetail":{"current":32768,"total":10485760},"id":"a"}
		{"status":"Pull complete","progressDetail":{},"id":"b"}`), moved)
	require.NoError(t, err)
	require.Equal(t, []string{
		"asking the registry", "asking the registry", "5 MiB of 10 MiB", "10 MiB of 10 MiB", "11 MiB of 20 MiB", "12 MiB of 20 MiB", "12 MiB of 20 MiB", "20 MiB of 20 MiB",
	}, told, "a repeated line and a retry are no progress")

	require.EqualError(t, readPull(strings.NewReader(`{"errorDetail":{"message":"no space"},"error":"no space"}`), moved), "no space")
	require.ErrorIs(t, readPull(strings.NewReader(`{"status":`), moved), errStream)
}
