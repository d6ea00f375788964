package docker

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The end of a long stream is kept, too.
func TestCapture(t *testing.T) {
	t.Parallel()

	c := &capture{since: time.Now()}
	for _, part := range [][]byte{[]byte("begin"), bytes.Repeat([]byte("x"), berth.MaxLookBytes+7), bytes.Repeat([]byte("y"), berth.MaxLookBytes), []byte("end")} {
		n, err := c.Write(part)
		require.NoError(t, err)
		require.Len(t, part, n)
	}

	kept, first := c.read()
	require.Len(t, kept, berth.MaxLookBytes)
	require.True(t, bytes.HasPrefix(kept, []byte("beginx")))
	require.True(t, bytes.HasSuffix(kept, []byte("yend")))
	require.Positive(t, first)

	c = &capture{since: time.Now()}
	_, _ = c.Write([]byte("short"))
	kept, _ = c.read()
	require.Equal(t, "short", string(kept))
}
