// Package ledgertest is what every ledger of Berth must do: one suite for the
// database and for any fake of it. It holds the rules that hosts rely on: a
// place is booked once and freed once, on proof (R3); a write needs the current
// token (R4); what was done may be done again (R8).
package ledgertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/reconcile"
	"github.com/berthml/berth/internal/runtrial"
)

const gib = 1 << 30

// Ledger is the port: what a host's executor and reconciler, the placer and a
// trial's workflow need of it, and what the suite looks at.
type Ledger interface {
	runtrial.Records
	reconcile.Ledger

	RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error)
	PlacementStatus(ctx context.Context, attemptID string) (berth.PlacementStatus, error)
	Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error)
	AbandonAttempt(ctx context.Context, attemptID, message string) error
	SuspectLeases(ctx context.Context) ([]string, error)

	GetAttempt(ctx context.Context, id string) (berth.Attempt, error)
	ListHosts(ctx context.Context) ([]berth.Host, error)
	ListMetrics(ctx context.Context, attemptID, name string, limit int) ([]berth.MetricPoint, error)
	ReadLog(ctx context.Context, attemptID string, offset int64, limit int) ([]berth.LogPiece, error)
}

// Bench is a ledger of one test's own, and what only its maker can do.
type Bench struct {
	Ledger Ledger
	// Trial makes a trial and returns its first request, which is not made yet.
	Trial func(t *testing.T) berth.PlacementRequest
	// Pass lets so much time pass for leases and hosts.
	Pass func(t *testing.T, d time.Duration)
}

// Run runs the suite; open returns a bench whose life is the test's.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()

	for name, test := range map[string]func(*testing.T, *bench){
		"request":         testRequest,
		"book":            testBook,
		"over capacity":   testOverCapacity,
		"all or nothing":  testAllOrNothing,
		"one live":        testOneLive,
		"assignee":        testAssignee,
		"running":         testRunning,
		"finish":          testFinish,
		"abandon":         testAbandon,
		"release":         testRelease,
		"leases expire":   testLeasesExpire,
		"host leases":     testHostLeases,
		"host comes back": testHostComesBack,
		"metrics":         testMetrics,
		"log":             testLog,
		"context":         testContext,
		"placed at once":  testPlacedAtOnce,
		"finished twice":  testFinishedAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, open(t)))
		})
	}
}

// bench is a Bench with a host of 4 cores and 8 GiB.
type bench struct {
	Bench
	Ledger

	host berth.Host
}

func setup(t *testing.T, made Bench) *bench {
	t.Helper()

	b := &bench{Bench: made, Ledger: made.Ledger, host: berth.Host{
		ID: uuid.NewString(), Name: "a", BootID: "boot-1", CPUMilli: 4000, MemoryBytes: 9 * gib, MemoryHeadroomBytes: gib, MemoryFreeBytes: 8 * gib,
	}}
	require.NoError(t, b.RegisterHost(t.Context(), b.host, "test"))

	return b
}

// ask makes a trial and asks for a place of so many gibibytes and one core.
func (b *bench) ask(t *testing.T, memory int64) berth.PlacementRequest {
	t.Helper()

	r := b.Trial(t)
	r.Demand = berth.Demand{MemoryBytes: memory * gib, CPUMilli: 1000}

	status, err := b.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)

	return r
}

// here places requests on the bench's host.
func (b *bench) here(requests ...berth.PlacementRequest) map[string]berth.Placement {
	decisions := make(map[string]berth.Placement, len(requests))
	for _, r := range requests {
		decisions[r.AttemptID] = berth.Placement{HostID: b.host.ID}
	}

	return decisions
}

// place asks for a place and gives it.
func (b *bench) place(t *testing.T, memory int64) (berth.PlacementRequest, int64) {
	t.Helper()

	r := b.ask(t, memory)

	return r, b.put(t, r)
}

// put gives a request its place and returns the token.
func (b *bench) put(t *testing.T, r berth.PlacementRequest) int64 {
	t.Helper()

	placed, err := b.Place(t.Context(), b.here(r))
	require.NoError(t, err)
	require.Equal(t, []string{r.AttemptID}, placed)

	status, err := b.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestPlaced, status.State)
	require.Equal(t, b.host.ID, status.HostID)

	return status.Token
}

// reserved is what the host has handed out, in gibibytes and attempts.
func (b *bench) reserved(t *testing.T) (memory int64, attempts int) {
	t.Helper()

	hosts, err := b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Len(t, hosts, 1)
	require.Equal(t, int64(1000*hosts[0].Attempts), hosts[0].CPUMilliReserved)

	return hosts[0].MemoryReservedBytes / gib, hosts[0].Attempts
}

func (b *bench) requireReserved(t *testing.T, memory int64, attempts int) {
	t.Helper()

	gotMemory, gotAttempts := b.reserved(t)
	require.Equal(t, memory, gotMemory)
	require.Equal(t, attempts, gotAttempts)
}

func (b *bench) attempt(t *testing.T, id string) berth.Attempt {
	t.Helper()

	a, err := b.GetAttempt(t.Context(), id)
	require.NoError(t, err)

	return a
}

// noon is a moment that a timestamptz keeps exactly.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func result(r berth.PlacementRequest, token int64, value float64) berth.Result {
	code := 0

	return berth.Result{
		AttemptID: r.AttemptID, TrialID: r.TrialID, SweepID: r.SweepID, ShapeKey: r.ShapeKey, Token: token,
		Reserved: r.Demand, Source: berth.FootprintFull, Proof: "container exited",
		Outcome: berth.Outcome{
			Kind: berth.FailureOK, Message: "finished", ExitCode: &code, Value: &value, StartedAt: noon, FinishedAt: noon.Add(time.Minute),
			Usage: berth.Usage{MemoryPeakBytes: gib, CPU: berth.Duration(time.Second), Wall: berth.Duration(time.Minute), Samples: 5},
		},
	}
}

func requireFenced(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, berth.KindFenced, berth.KindOf(err), "%v", err)
}

func testRequest(t *testing.T, b *bench) {
	r := b.ask(t, 1)

	r.Demand.MemoryBytes *= 2
	again, err := b.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, again.State, "asking twice is asking once")

	token := b.put(t, r)
	b.requireReserved(t, 1, 1)

	again, err = b.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestPlaced, again.State)
	require.Equal(t, token, again.Token)

	_, err = b.PlacementStatus(t.Context(), uuid.NewString())
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

func testBook(t *testing.T, b *bench) {
	first, firstToken := b.place(t, 2)
	_, secondToken := b.place(t, 3)
	require.Greater(t, secondToken, firstToken)
	b.requireReserved(t, 5, 2)

	placed, err := b.Place(t.Context(), b.here(first))
	require.NoError(t, err)
	require.Empty(t, placed, "it does not wait any more")
	b.requireReserved(t, 5, 2)

	a := b.attempt(t, first.AttemptID)
	require.Equal(t, berth.AttemptPlaced, a.State)
	require.Equal(t, firstToken, a.Token)
	require.Equal(t, first.Demand, a.Demand)
}

func testOverCapacity(t *testing.T, b *bench) {
	b.place(t, 6)

	second := b.ask(t, 3)
	_, err := b.Place(t.Context(), b.here(second))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)

	status, err := b.PlacementStatus(t.Context(), second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)
	b.requireReserved(t, 6, 1)
	b.place(t, 2)
	b.requireReserved(t, 8, 2)
}

func testAllOrNothing(t *testing.T, b *bench) {
	small, large := b.ask(t, 1), b.ask(t, 8)

	_, err := b.Place(t.Context(), b.here(small, large))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)
	b.requireReserved(t, 0, 0)

	_, err = b.GetAttempt(t.Context(), small.AttemptID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	placed, err := b.Place(t.Context(), b.here(small))
	require.NoError(t, err)
	require.Equal(t, []string{small.AttemptID}, placed)
}

func testOneLive(t *testing.T, b *bench) {
	first, token := b.place(t, 1)

	second := first
	second.AttemptID, second.Number = uuid.NewString(), 2
	_, err := b.RequestPlacement(t.Context(), second)
	require.NoError(t, err)

	_, err = b.Place(t.Context(), b.here(second))
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
	b.requireReserved(t, 1, 1)

	require.NoError(t, b.FinishAttempt(t.Context(), result(first, token, 1)))
	require.Greater(t, b.put(t, second), token)
	b.requireReserved(t, 1, 1)
}

func testAssignee(t *testing.T, b *bench) {
	_, err := b.Assignee(t.Context(), uuid.NewString())
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	first, token := b.place(t, 1)

	who, err := b.Assignee(t.Context(), first.AttemptID)
	require.NoError(t, err)
	require.Equal(t, first.AttemptID, who.Attempt.ID)
	require.Equal(t, token, who.Attempt.Token)
	require.Equal(t, first.Demand, who.Attempt.Demand)
	require.Equal(t, first.TrialID, who.Trial.ID)
	require.Equal(t, first.ShapeKey, who.Trial.ShapeKey)
	require.Equal(t, first.SweepID, who.SweepID)
	require.NotEmpty(t, who.LeaseID)
	require.NotEmpty(t, who.ImageDigest)
	require.Zero(t, who.LogOffset)
	require.False(t, who.Resume)

	require.NoError(t, b.AttemptRunning(t.Context(), first.AttemptID, token, "c", noon))
	require.NoError(t, b.AbandonAttempt(t.Context(), first.AttemptID, "host lost"))

	second := first
	second.AttemptID, second.Number = uuid.NewString(), 2
	_, err = b.RequestPlacement(t.Context(), second)
	require.NoError(t, err)
	b.put(t, second)

	who, err = b.Assignee(t.Context(), second.AttemptID)
	require.NoError(t, err)
	require.True(t, who.Resume, "an earlier attempt ran")
}

func testRunning(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()

	requireFenced(t, b.AttemptRunning(ctx, r.AttemptID, token-1, "c", noon))
	requireFenced(t, b.AttemptRunning(ctx, uuid.NewString(), token, "c", noon))
	require.Equal(t, berth.AttemptPlaced, b.attempt(t, r.AttemptID).State)

	require.NoError(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon))
	require.NoError(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon.Add(time.Hour)))

	a := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptRunning, a.State)
	require.Equal(t, "c", a.ContainerID)
	require.True(t, noon.Equal(*a.StartedAt), "the first start stands")

	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 1)))
	requireFenced(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon))
}

func testFinish(t *testing.T, b *bench) {
	r, token := b.place(t, 2)
	ctx := t.Context()

	requireFenced(t, b.FinishAttempt(ctx, result(r, token-1, 0.5)))
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 0.5)))
	b.requireReserved(t, 0, 0)
	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 0.7)), "a repeated commit is harmless")
	requireFenced(t, b.FinishAttempt(ctx, result(r, token+1, 0.7)))
	b.requireReserved(t, 0, 0)

	a := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptFinished, a.State)
	require.Equal(t, berth.FailureOK, a.Kind)
	require.InDelta(t, 0.5, *a.Value, 0, "the first result stands")
	require.Zero(t, *a.ExitCode)
	require.Equal(t, result(r, token, 0).Outcome.Usage, a.Usage)
	require.True(t, noon.Equal(*a.StartedAt))
	require.True(t, noon.Add(time.Minute).Equal(*a.FinishedAt))

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "too late"))
	require.Equal(t, token, b.attempt(t, r.AttemptID).Token, "what has ended is not fenced")
}

func testAbandon(t *testing.T, b *bench) {
	r, token := b.place(t, 2)
	ctx := t.Context()

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "host lost"))

	a := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptAbandoned, a.State)
	require.Equal(t, berth.FailureInfra, a.Kind)
	require.Greater(t, a.Token, token)
	require.NotNil(t, a.FinishedAt)
	b.requireReserved(t, 2, 1)

	requireFenced(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon))
	requireFenced(t, b.FinishAttempt(ctx, result(r, token, 1)))
	requireFenced(t, b.FinishAttempt(ctx, result(r, a.Token, 1)))
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "again"))
	require.Equal(t, a.Token, b.attempt(t, r.AttemptID).Token)
	require.NoError(t, b.AbandonAttempt(ctx, uuid.NewString(), "unknown"))
}

func testRelease(t *testing.T, b *bench) {
	r, _ := b.place(t, 2)
	ctx := t.Context()

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "host lost"))
	require.Error(t, b.ReleaseLease(ctx, r.AttemptID, ""), "only with proof")
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.ReleaseLease(ctx, r.AttemptID, "no container"))
	require.NoError(t, b.ReleaseLease(ctx, r.AttemptID, "no container"))
	require.NoError(t, b.ReleaseLease(ctx, uuid.NewString(), "no container"))
	b.requireReserved(t, 0, 0)

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.Empty(t, leases)
}

func testLeasesExpire(t *testing.T, b *bench) {
	renewed, _ := b.place(t, 1)
	silent, _ := b.place(t, 1)
	ctx := t.Context()

	suspects, err := b.SuspectLeases(ctx)
	require.NoError(t, err)
	require.Empty(t, suspects)

	b.Pass(t, berth.LeaseTerm-time.Second)
	require.NoError(t, b.TouchHost(ctx, b.host.ID, gib, []string{renewed.AttemptID, uuid.NewString()}))
	b.Pass(t, 2*time.Second)

	suspects, err = b.SuspectLeases(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{silent.AttemptID}, suspects)
	b.requireReserved(t, 2, 2)

	suspects, err = b.SuspectLeases(ctx)
	require.NoError(t, err)
	require.Empty(t, suspects, "once is enough")

	require.NoError(t, b.TouchHost(ctx, b.host.ID, gib, []string{silent.AttemptID}))

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)

	for _, l := range leases {
		require.Equal(t, berth.LeaseHeld, l.State, "seen again")
	}

	require.Equal(t, berth.KindNotFound, berth.KindOf(b.TouchHost(ctx, uuid.NewString(), gib, nil)))
}

func testHostLeases(t *testing.T, b *bench) {
	first, firstToken := b.place(t, 1)
	ctx := t.Context()

	b.Pass(t, time.Minute)

	second, secondToken := b.place(t, 1)
	require.NoError(t, b.AttemptRunning(ctx, first.AttemptID, firstToken, "c", noon))
	require.NoError(t, b.AbandonAttempt(ctx, second.AttemptID, "host lost"))

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.Len(t, leases, 2)

	require.GreaterOrEqual(t, leases[0].Age, time.Minute)
	require.Less(t, leases[1].Age, time.Minute)

	leases[0].Age, leases[1].Age = 0, 0
	require.Equal(t, []berth.HostLease{
		{
			AttemptID: first.AttemptID, State: berth.LeaseHeld, Token: firstToken, Current: firstToken,
			AttemptState: berth.AttemptRunning, ContainerID: "c",
		},
		{
			AttemptID: second.AttemptID, State: berth.LeaseHeld, Token: secondToken, Current: b.attempt(t, second.AttemptID).Token,
			AttemptState: berth.AttemptAbandoned,
		},
	}, leases)

	leases, err = b.HostLeases(ctx, uuid.NewString())
	require.NoError(t, err)
	require.Empty(t, leases)
}

func testHostComesBack(t *testing.T, b *bench) {
	b.place(t, 3)

	b.host.BootID, b.host.MemoryBytes, b.host.CPUMilli = "boot-2", 2*gib, 500
	require.NoError(t, b.RegisterHost(t.Context(), b.host, "test"))

	hosts, err := b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, "boot-2", hosts[0].BootID)
	require.Equal(t, int64(4*gib), hosts[0].MemoryBytes, "what leases hold, and the headroom")
	require.Equal(t, int64(1000), hosts[0].CPUMilli)
	b.requireReserved(t, 3, 1)

	b.Pass(t, berth.HostLostAfter+time.Second)

	hosts, err = b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, berth.HostLost, hosts[0].State)
}

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

func testPlacedAtOnce(t *testing.T, b *bench) {
	const callers = 12

	var (
		group    sync.WaitGroup
		requests [callers]berth.PlacementRequest
		errs     [callers]error
	)

	for i := range callers {
		requests[i] = b.ask(t, 3)
	}

	for i := range callers {
		group.Go(func() { _, errs[i] = b.Place(t.Context(), b.here(requests[i])) })
	}

	group.Wait()
	b.requireReserved(t, 6, 2)

	for _, err := range errs {
		if err != nil {
			require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)
		}
	}
}

func testFinishedAtOnce(t *testing.T, b *bench) {
	r, token := b.place(t, 2)

	const callers = 4

	var (
		group sync.WaitGroup
		errs  [callers]error
	)

	for i := range callers {
		group.Go(func() { errs[i] = b.FinishAttempt(t.Context(), result(r, token, float64(i))) })
	}

	group.Wait()

	for _, err := range errs {
		require.NoError(t, err)
	}

	b.requireReserved(t, 0, 0)
}
