package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/apitest"
)

// A log beyond its limit keeps a mark and its end: the bytes between are missing.
func TestLogs_BeyondTheirLimit(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	beginning, mark, end := strings.Repeat("0123456789abcde\n", 1<<17), "\n[berth: the log limit is reached]\n", "the reason\n"
	store.Write(apitest.AttemptID(1, 1), beginning)
	store.Exec(`INSERT INTO log_chunks (attempt_id, "offset", stream, at, data) VALUES ($1, $2, 'berth', now(), $3), ($1, 40 << 20, 'stdout', now(), $4)`,
		apitest.AttemptID(1, 1), len(beginning), []byte(mark), []byte(end))

	got := succeed(t, serve(t, store), "trial", "logs", apitest.NewID(1), "1")
	require.Equal(t, beginning+mark+end, got.stdout)
}
