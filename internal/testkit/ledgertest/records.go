package ledgertest

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

func testMetrics(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()
	point := func(name string, step int64, value float64) berth.MetricPoint {
		return berth.MetricPoint{Name: name, Step: step, Value: value, Status: berth.MetricFinite, At: noon}
	}

	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, token, nil))
	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, token, []berth.MetricPoint{point("loss", 2, 1), point("loss", 1, 3), point("acc", 1, 0.1), point("loss", 2, 2)}))
	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, token, []berth.MetricPoint{point("acc", 1, 0.2)}))

	points, err := b.ListMetrics(ctx, r.AttemptID, "", 10)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricPoint{point("acc", 1, 0.2), point("loss", 1, 3), point("loss", 2, 2)}, points, "the last one stands")

	points, err = b.ListMetrics(ctx, r.AttemptID, "loss", 1)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricPoint{point("loss", 1, 3)}, points)

	requireFenced(t, b.PutMetrics(ctx, uuid.NewString(), token, []berth.MetricPoint{point("acc", 1, 1)}))

	requireFenced(t, b.DropMetrics(ctx, r.AttemptID, token-1, []string{"loss"}))
	require.NoError(t, b.DropMetrics(ctx, r.AttemptID, token, []string{"loss", "never reported"}))
	require.NoError(t, b.DropMetrics(ctx, r.AttemptID, token, []string{"loss"}), "the answer to the first was lost")

	points, err = b.ListMetrics(ctx, r.AttemptID, "", 10)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricPoint{point("acc", 1, 0.2)}, points)
}

// A trial is judged at a rung once, against what the others reported there: a repeated
// report, and one of a later attempt, get the stored answer.
func testRungs(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	other, otherToken := b.place(t, 1)
	ctx := t.Context()
	asked := 0

	judge := func(r berth.PlacementRequest, token, rung int64, value *float64, want ...berth.RungValue) (berth.StopDecision, error) {
		return b.JudgeRung(ctx, r.AttemptID, token, berth.RungReport{Rung: rung, Step: 3, Value: value}, func(others []berth.RungValue) berth.StopDecision {
			asked++

			require.ElementsMatch(t, want, others)

			return berth.StopDecision{Stop: rung == 1, Why: fmt.Sprintf("number %d", asked)}
		})
	}
	judged := func(want, got berth.StopDecision, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	_, err := judge(r, token-1, 0, new(0.5))
	requireFenced(t, err)

	decision, err := judge(r, token, 0, new(0.5))
	judged(berth.StopDecision{Why: "number 1"}, decision, err)

	decision, err = judge(r, token, 0, new(0.7)) // the answer was lost, or it is read again
	judged(berth.StopDecision{Why: "number 1"}, decision, err)

	decision, err = judge(r, token, 1, nil)
	judged(berth.StopDecision{Stop: true, Why: "number 2"}, decision, err)

	decision, err = judge(other, otherToken, 0, new(0.25), berth.RungValue{Value: new(0.5)})
	judged(berth.StopDecision{Why: "number 3"}, decision, err)

	decision, err = judge(other, otherToken, 1, new(0.25), berth.RungValue{})
	judged(berth.StopDecision{Stop: true, Why: "number 4"}, decision, err)
	require.Equal(t, 4, asked)
}

// The reason why an attempt waits is shown until its container runs.
func testNoteWait(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()
	said := func() string {
		a, err := b.GetAttempt(ctx, r.AttemptID)
		require.NoError(t, err)

		return a.Message
	}

	requireFenced(t, b.NoteWait(ctx, r.AttemptID, token-1, "pulling"))
	requireFenced(t, b.NoteWait(ctx, uuid.NewString(), token, "pulling"))
	require.NoError(t, b.NoteWait(ctx, r.AttemptID, token, "pulling: 1 of 2 MiB"))
	require.Equal(t, "pulling: 1 of 2 MiB", said())
	require.NoError(t, b.NoteWait(ctx, r.AttemptID, token, ""))
	require.Empty(t, said())
	require.NoError(t, b.NoteWait(ctx, r.AttemptID, token, "pulling: 2 of 2 MiB"))
	require.NoError(t, b.AttemptRunning(ctx, r.AttemptID, token, "container", noon))
	require.Empty(t, said(), "its container runs")
	require.NoError(t, b.NoteWait(ctx, r.AttemptID, token, "late"))
	require.Empty(t, said())
}

// A later attempt finds the checkpoints of earlier ones, and says which one it
// goes on from.
func testCheckpoints(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()
	earlier, err := b.EarlierCheckpoints(ctx, r.AttemptID)
	require.NoError(t, err)
	require.Empty(t, earlier)

	require.NoError(t, b.AttemptRunning(ctx, r.AttemptID, token, "container", noon))
	require.NoError(t, b.FinishAttempt(ctx, berth.Result{
		AttemptID: r.AttemptID, TrialID: r.TrialID, SweepID: r.SweepID, ShapeKey: r.ShapeKey, Token: token, Reserved: r.Demand, Source: berth.FootprintFull,
		Proof: "container exited", Checkpoint: true, Outcome: berth.Outcome{Kind: berth.FailureHostOOM, Message: "oom", StartedAt: noon, FinishedAt: noon},
	}))

	next := r
	next.AttemptID, next.Number = uuid.NewString(), r.Number+1
	_, err = b.RequestPlacement(ctx, next)
	require.NoError(t, err)

	token = b.put(t, next)
	earlier, err = b.EarlierCheckpoints(ctx, next.AttemptID)
	require.NoError(t, err)
	require.Len(t, earlier, 1)

	got := earlier[0]
	require.Equal(t, r.AttemptID, got.AttemptID)
	require.Equal(t, r.Number, got.Number)
	require.NotEmpty(t, got.HostID)
	require.NotEmpty(t, got.Host)
	require.True(t, got.Ran)
	require.True(t, got.Left)
	require.False(t, got.Coming, "its host stores nothing")
	require.Nil(t, got.Stored)

	requireFenced(t, b.NoteResumed(ctx, next.AttemptID, token-1, "from nothing"))
	require.NoError(t, b.NoteResumed(ctx, next.AttemptID, token, "from attempt 1"))

	a, err := b.GetAttempt(ctx, next.AttemptID)
	require.NoError(t, err)
	require.Equal(t, "from attempt 1", a.Resumed)

	// The next one does not start: the first one's files are still on its host.
	require.NoError(t, b.FinishAttempt(ctx, berth.Result{
		AttemptID: next.AttemptID, TrialID: next.TrialID, SweepID: next.SweepID, ShapeKey: next.ShapeKey, Token: token, Reserved: next.Demand, Source: berth.FootprintFull,
		Proof: "never started", Outcome: berth.Outcome{Kind: berth.FailureInfra, Message: "no room", StartedAt: noon, FinishedAt: noon},
	}))

	third := next
	third.AttemptID, third.Number = uuid.NewString(), next.Number+1
	_, err = b.RequestPlacement(ctx, third)
	require.NoError(t, err)
	b.put(t, third)

	earlier, err = b.EarlierCheckpoints(ctx, third.AttemptID)
	require.NoError(t, err)
	require.Len(t, earlier, 2)
	require.False(t, earlier[0].Ran)
	require.True(t, earlier[1].Ran)
}

func testLog(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()
	piece := func(offset int64, stream, text string) berth.LogPiece {
		return berth.LogPiece{Offset: offset, Stream: stream, At: noon, Data: []byte(text)}
	}

	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece(4, berth.Stderr, "two\x00\xff\n")))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece(0, berth.Stdout, "on")))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece(0, berth.Stdout, "one\n")), "a longer piece of the same")
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece(0, berth.Stdout, "one")), "the answer to the first was lost")
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece(0, "berth", "[no mark hides a log]")))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece(10, "berth", "[a mark]")))

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

// What an attempt held over time is thinned as it lives on, by any worker, and keeps its peaks.
func testMemory(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()
	point := func(second int, host int64) berth.MemoryPoint {
		return berth.MemoryPoint{Second: second, HostBytes: &host, DeviceBytes: new(host / 2), SMMilli: new(int64(second % 1000))}
	}

	require.NoError(t, b.PutMemory(ctx, r.AttemptID, token, nil))

	var told []berth.MemoryPoint

	for second := range 1300 { // as a worker does: every ten seconds, and the last interval again
		told = append(told, point(second, int64(second*7919%1009)))

		if second%10 == 9 {
			batch := timeline.ThinMemory(told[max(second-11, 0):], timeline.MemoryInterval(second))
			require.NoError(t, b.PutMemory(ctx, r.AttemptID, token, batch))
		}
	}

	require.NoError(t, b.PutMemory(ctx, r.AttemptID, token, told[len(told)-1:]), "the answer to the first was lost")

	onlyHost := berth.MemoryPoint{Second: 1300, HostBytes: new(int64(1))}
	require.NoError(t, b.PutMemory(ctx, r.AttemptID, token, []berth.MemoryPoint{onlyHost}))

	stored, err := b.ListMemory(ctx, r.AttemptID)
	require.NoError(t, err)
	require.LessOrEqual(t, len(stored), berth.MaxMemoryPoints)

	attempt, err := b.GetAttempt(ctx, r.AttemptID)
	require.NoError(t, err)

	for i := range stored {
		require.Equal(t, attempt.PlacedAt.Add(time.Duration(stored[i].Second)*time.Second), stored[i].At, "no container of it has started")
		stored[i].At = time.Time{}
	}

	require.Equal(t, timeline.ThinMemory(append(told, onlyHost), 4), stored)
	require.Nil(t, stored[len(stored)-1].DeviceBytes)

	requireFenced(t, b.PutMemory(ctx, r.AttemptID, token-1, told[:1]))
	requireFenced(t, b.PutMemory(ctx, uuid.NewString(), token, told[:1]))
}

// A worker whose clock was set back takes over an attempt and reports seconds that are long
// past. The points stay as few as allowed, so no point, and no peak, is cut off.
func testMemoryOfTheClockSetBack(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()
	put := func(from, to int, bytes int64) {
		for ; from < to; from += 10 {
			var batch []berth.MemoryPoint
			for second := from; second < from+10; second++ {
				batch = append(batch, berth.MemoryPoint{Second: second, HostBytes: &bytes})
			}

			batch = timeline.ThinMemory(batch, timeline.MemoryInterval(from+9))
			require.NoError(t, b.PutMemory(ctx, r.AttemptID, token, batch))
		}
	}

	put(0, 900, 100)
	put(900, 990, 900) // its peak
	put(90, 490, 100)  // by a clock that was set back by 15 min

	points, err := b.ListMemory(ctx, r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, 495, len(points), "an interval is 2 s long") //nolint:testifylint // Len prints all of them
	require.Equal(t, 988, points[494].Second)
	require.Equal(t, int64(900), *points[494].HostBytes)

	for _, newest := range []int{999, 1999, 500<<10 - 1, math.MaxInt32} { // the last second of its interval
		require.NoError(t, b.PutMemory(ctx, r.AttemptID, token, []berth.MemoryPoint{{Second: newest, HostBytes: new(int64(1))}}))

		points, err = b.ListMemory(ctx, r.AttemptID)
		require.NoError(t, err)
		require.Equal(t, newest+1-timeline.MemoryInterval(newest), points[len(points)-1].Second)
	}
}

// A worker whose attempt went to another one writes nothing more about it,
// until the attempt comes back.
func testFencedWriter(t *testing.T, b *bench) {
	r, token := b.place(t, 2)
	ctx := t.Context()
	points := []berth.MetricPoint{{Name: "acc", Step: 1, Value: 1, Status: berth.MetricFinite, At: noon}}
	piece := berth.LogPiece{Stream: berth.Stdout, At: noon, Data: []byte("one\n")}

	requireFenced(t, b.PutMetrics(ctx, r.AttemptID, token-1, points))
	requireFenced(t, b.PutLog(ctx, r.AttemptID, token-1, piece))

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "host lost"))
	requireFenced(t, b.PutMetrics(ctx, r.AttemptID, token, points))
	requireFenced(t, b.PutLog(ctx, r.AttemptID, token, piece))
	requireFenced(t, b.PutMemory(ctx, r.AttemptID, token, []berth.MemoryPoint{{HostBytes: new(int64(1))}}))

	stored, err := b.ListMetrics(ctx, r.AttemptID, "", 10)
	require.NoError(t, err)
	require.Empty(t, stored)

	pieces, err := b.ReadLog(ctx, r.AttemptID, 0, 10)
	require.NoError(t, err)
	require.Empty(t, pieces)

	second := again(r)
	_, err = b.RequestPlacement(ctx, second)
	require.NoError(t, err)
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen(r, token)))
	b.requireRevived(t, second, r, token)
	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, token, points))
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece))
	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 1)))
	require.NoError(t, b.PutMetrics(ctx, r.AttemptID, token, points), "the answer to the result was lost, and all is told again")
	require.NoError(t, b.PutLog(ctx, r.AttemptID, token, piece))
}

// seen is an attempt whose container carries this token.
func seen(r berth.PlacementRequest, token int64) []berth.SeenAttempt {
	return []berth.SeenAttempt{{AttemptID: r.AttemptID, Token: token}}
}

// testContext: a call whose context is done is ambiguous to its caller.
func testContext(t *testing.T, b *bench) {
	r, token := b.place(t, 1)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := b.Assignee(ctx, r.AttemptID)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)

	err = b.FinishAttempt(ctx, result(r, token, 1))
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
}
