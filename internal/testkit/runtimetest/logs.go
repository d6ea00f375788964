package runtimetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// errEnough is how a reader stops half-way.
var errEnough = errors.New("read enough")

func testLogStreams(t *testing.T, r Runtime) {
	_, out := Finish(t, r, Launch("spam", "1000"))
	require.Equal(t, 500, strings.Count(out[berth.Stdout], "\n"))
	require.Equal(t, 500, strings.Count(out[berth.Stderr], "\n"))
	require.True(t, strings.HasPrefix(out[berth.Stdout], "line 0\nline 2\n"))
	require.True(t, strings.HasSuffix(out[berth.Stderr], "line 997\nline 999\n"))

	_, out = Finish(t, r, Launch("binary"))
	require.Len(t, strings.TrimSuffix(out[berth.Stdout], "\n"), 256, "not text, and no end of line")
}

// testLogResume follows a running container and breaks off after a few chunks
// again and again. A long line in pieces, with other lines in between, is the
// hard part: its pieces share a stamp.
func testLogResume(t *testing.T, r Runtime) {
	c := Start(t, r, Launch("long", "400000"))

	const perRead = 3

	var (
		position berth.LogPosition
		out      = map[string]string{}
	)

	for {
		count := 0
		again := berth.LogResume{From: position}

		err := r.Logs(t.Context(), c.ID, position, true, func(chunk berth.LogChunk) error {
			if again.Read(chunk) {
				return nil
			}

			if count == perRead {
				return errEnough
			}

			count++
			out[chunk.Stream] += string(chunk.Data)
			position.Pass(chunk)

			return nil
		})
		if err == nil {
			break
		}

		require.ErrorIs(t, err, errEnough)
	}

	require.True(t, Output(t, r, c.ID)[berth.Stdout] == out[berth.Stdout], "the same as read at once") //nolint:testifylint // not to print it
	require.Len(t, out[berth.Stdout], 400_000+len("\nend\n"))
	require.True(t, strings.HasSuffix(out[berth.Stdout], "\nend\n"))
	require.Equal(t, 25, strings.Count(out[berth.Stderr], "\n"))
}
