package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/apitest"
)

// A log beyond its limit keeps a mark and its end: the bytes between are missing.
func TestLogs_BeyondTheirLimit(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	beginning, mark, end := strings.Repeat("0123456789abcde\n", 1<<17), "\n[berth: the log limit is reached]\n", "the reason\n"
	store.Logs = map[string][]berth.LogPiece{store.Attempts[0].ID: {
		{Stream: berth.Stdout, Data: []byte(beginning)},
		{Offset: int64(len(beginning)), Stream: "berth", Data: []byte(mark)},
		{Offset: 40 << 20, Stream: berth.Stdout, Data: []byte(end)},
	}}

	got := execute(t.Context(), serve(t, store), "trial", "logs", apitest.NewID(1), "1")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, beginning+mark+end, got.stdout)
}
