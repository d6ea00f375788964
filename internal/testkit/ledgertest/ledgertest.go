// Package ledgertest is one test suite for every ledger of Berth: the database
// and any fake of it. It checks the rules that hosts rely on: a place is booked
// once and freed once, on proof (R3); a write needs the current token (R4); a
// repeated write changes nothing (R8).
//
//	ledgertest.go  the port and what the tests share
//	booking.go     requests and places
//	attempts.go    from assignment to result
//	leases.go      leases and hosts
//	records.go     metrics and logs
package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
)

const gib = 1 << 30

// Ledger is the port: the methods that a host's executor and reconciler, the
// placer, a trial's workflow and a person use, and the suite's own reads.
type Ledger interface {
	runtrial.Records
	reconcile.Ledger

	RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error)
	PlacementStatus(ctx context.Context, attemptID string) (berth.PlacementStatus, error)
	Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error)
	AbandonAttempt(ctx context.Context, attemptID, message string) error
	RefuseAttempt(ctx context.Context, attemptID, message string) error
	SuspectLeases(ctx context.Context) ([]string, error)

	GetAttempt(ctx context.Context, id string) (berth.Attempt, error)
	ListHosts(ctx context.Context) ([]berth.Host, error)
	ListMetrics(ctx context.Context, attemptID, name string, limit int) ([]berth.MetricPoint, error)
	ReadLog(ctx context.Context, attemptID string, offset int64, limit int) ([]berth.LogPiece, error)
	ListMemory(ctx context.Context, attemptID string) ([]berth.MemoryPoint, error)
}

// Bench is a ledger for one test, with the methods that only its maker can
// provide.
type Bench struct {
	Ledger Ledger
	// Trial makes a trial and returns its first request, which is not made yet.
	Trial func(t *testing.T) berth.PlacementRequest
	// Pass lets d pass for leases and hosts.
	Pass func(t *testing.T, d time.Duration)
}

// Run runs the suite; open returns a bench whose life is the test's.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()

	for name, test := range map[string]func(*testing.T, *bench){
		"request":         testRequest,
		"book":            testBook,
		"book as decided": testBookDecided,
		"over capacity":   testOverCapacity,
		"all or nothing":  testAllOrNothing,
		"one live":        testOneLive,
		"assignee":        testAssignee,
		"running":         testRunning,
		"finish":          testFinish,
		"abandon":         testAbandon,
		"release":         testRelease,
		"revived at once": testRevivedAtOnce,
		"refused":         testRefused,
		"fenced writer":   testFencedWriter,
		"memory":          testMemory,
		"memory set back": testMemoryOfTheClockSetBack,
		"revived late":    testRevivedLate,
		"not revived":     testNotRevived,
		"problem":         testProblem,
		"leases expire":   testLeasesExpire,
		"host leases":     testHostLeases,
		"host comes back": testHostComesBack,
		"metrics":         testMetrics,
		"rungs":           testRungs,
		"log":             testLog,
		"note wait":       testNoteWait,
		"checkpoints":     testCheckpoints,
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
		DiskFreeBytes: 8 * gib, DiskHeadroomBytes: gib,
	}}
	require.NoError(t, b.RegisterHost(t.Context(), b.host, "test"))

	return b
}

// ask makes a trial and asks for a place with this many GiB and one core.
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
		decisions[r.AttemptID] = berth.Placement{HostID: b.host.ID, Class: berth.ClassCPU, Demand: r.Demand}
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

// reserved is the host's booked memory, in gibibytes, and attempts.
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
		Reserved: r.Demand, Source: berth.FootprintFull, Proof: "container exited", ContainerID: "c",
		Outcome: berth.Outcome{
			Kind: berth.FailureOK, Message: "finished", ExitCode: &code, Value: &value, StartedAt: noon, FinishedAt: noon.Add(time.Minute),
			Usage: berth.Usage{
				MemoryPeakBytes: gib, FrameworkPeakBytes: 300, CPU: berth.Duration(time.Second), Wall: berth.Duration(time.Minute), Samples: 5,
				Unseen: berth.Duration(time.Second), Steps: 7, StepTime: 9, DevicePhases: berth.Phases{StartBytes: 1, TrainingBytes: 2, ValidationBytes: 3},
			},
		},
	}
}

func requireFenced(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, berth.KindFenced, berth.KindOf(err), "%v", err)
}
