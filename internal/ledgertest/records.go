package ledgertest

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func testMetrics(t *testing.T, b *bench) {
	r, _ := b.place(t, 1)
	ctx := t.Context()
	point := func(name string, step int64, value float64) berth.MetricPoint {
		return berth.MetricPoint{Name: name, Step: step, Value: value, Status: berth.MetricFinite, At: noon}
	}

	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, nil))
	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, []berth.MetricPoint{point("loss", 2, 1), point("loss", 1, 3), point("acc", 1, 0.1), point("loss", 2, 2)}))
	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, []berth.MetricPoint{point("acc", 1, 0.2)}))

	points, err := b.ListMetrics(ctx, r.AttemptID, "", 10)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricPoint{point("acc", 1, 0.2), point("loss", 1, 3), point("loss", 2, 2)}, points, "the last one stands")

	points, err = b.ListMetrics(ctx, r.AttemptID, "loss", 1)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricPoint{point("loss", 1, 3)}, points)

	require.Error(t, b.PutMetrics(ctx, uuid.NewString(), []berth.MetricPoint{point("acc", 1, 1)}), "of no attempt")
}

func testLog(t *testing.T, b *bench) {
	r, _ := b.place(t, 1)
	ctx := t.Context()
	piece := func(offset int64, stream, text string) berth.LogPiece {
		return berth.LogPiece{Offset: offset, Stream: stream, At: noon, Data: []byte(text)}
	}

	require.NoError(t, b.PutLog(ctx, r.AttemptID, piece(4, berth.Stderr, "two\x00\xff\n")))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, piece(0, berth.Stdout, "on")))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, piece(0, berth.Stdout, "one\n")), "a longer piece of the same")
	require.NoError(t, b.PutLog(ctx, r.AttemptID, piece(0, berth.Stdout, "one")), "the answer to the first was lost")
	require.NoError(t, b.PutLog(ctx, r.AttemptID, piece(0, "berth", "[no mark hides a log]")))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, piece(10, "berth", "[a mark]")))

	pieces, err := b.ReadLog(ctx, r.AttemptID, 0, 10)
	require.NoError(t, err)
	require.Equal(t, []berth.LogPiece{piece(0, berth.Stdout, "one\n"), piece(4, berth.Stderr, "two\x00\xff\n"), piece(10, "berth", "[a mark]")}, pieces)

	pieces, err = b.ReadLog(ctx, r.AttemptID, 4, 1)
	require.NoError(t, err)
	require.Equal(t, []berth.LogPiece{piece(4, berth.Stderr, "two\x00\xff\n")}, pieces)

	who, err := b.Assignee(ctx, r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, int64(10), who.LogOffset, "what Berth itself says counts in no offset")
}

// testContext: a call whose context is done is ambiguous to who called it.
func testContext(t *testing.T, b *bench) {
	r, token := b.place(t, 1)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := b.Assignee(ctx, r.AttemptID)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)

	err = b.FinishAttempt(ctx, result(r, token, 1))
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
}
