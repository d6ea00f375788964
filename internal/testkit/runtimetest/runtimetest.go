// Package runtimetest is one test suite for every container runtime of Berth:
// for the Docker adapter and for any fake of it. Its launches run the program
// in busy/main.go; a fake imitates that program.
package runtimetest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Image is the image of the launches. scripts/test-image makes it.
const Image = "berth-test/busy:1"

const (
	patience = 30 * time.Second // for things that take well under a second
	tick     = 20 * time.Millisecond
)

// Runtime is the container port: more than any one user of it needs.
type Runtime interface {
	Ensure(ctx context.Context, l berth.Launch) (berth.Container, error)
	Inspect(ctx context.Context, id string) (berth.Container, error)
	List(ctx context.Context) ([]berth.Container, error)
	Wait(ctx context.Context, id string) (berth.Container, error)
	Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, fn func(berth.LogChunk) error) error
	Stop(ctx context.Context, id string, grace time.Duration) error
	Remove(ctx context.Context, id string) error
}

// Launch returns a launch of busy with these arguments, under a new attempt id.
func Launch(args ...string) berth.Launch {
	return berth.Launch{
		AttemptID: strings.ToLower(rand.Text()), SweepID: "sweep-1", TrialID: "trial-1", LeaseID: "lease-1", Token: 7,
		Image:       Image,
		Command:     append([]string{"/busy"}, args...),
		MemoryBytes: 64 << 20,
		CPUMilli:    500,
	}
}

// Start ensures a launch and removes its container when the test is over.
func Start(t *testing.T, r Runtime, l berth.Launch) berth.Container {
	t.Helper()

	c, err := r.Ensure(t.Context(), l)
	if c.ID != "" {
		Discard(t, r, c.ID)
	}

	require.NoError(t, err)

	return c
}

// Discard stops and removes a container when the test is over.
func Discard(t *testing.T, r Runtime, id string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, r.Stop(ctx, id, 0))
		require.NoError(t, r.Remove(ctx, id))
	})
}

// Finish runs a launch to its end and returns it with its output by stream.
func Finish(t *testing.T, r Runtime, l berth.Launch) (berth.Container, map[string]string) {
	t.Helper()

	c := Start(t, r, l)

	ended, err := r.Wait(t.Context(), c.ID)
	require.NoError(t, err)

	return ended, Output(t, r, c.ID)
}

// Output is a container's output so far, by stream.
func Output(t *testing.T, r Runtime, id string) map[string]string {
	t.Helper()

	var stdout, stderr strings.Builder

	require.NoError(t, r.Logs(t.Context(), id, berth.LogPosition{}, false, func(c berth.LogChunk) error {
		if c.Stream == berth.Stdout {
			stdout.Write(c.Data)
		} else {
			stderr.Write(c.Data)
		}

		return nil
	}))

	return map[string]string{berth.Stdout: stdout.String(), berth.Stderr: stderr.String()}
}

// AwaitReady returns when the program has printed "ready".
func AwaitReady(t *testing.T, r Runtime, id string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(Output(t, r, id)[berth.Stdout], "ready") }, patience, tick)
}

// Run runs the suite; open returns a runtime whose life is the test's.
func Run(t *testing.T, open func(t *testing.T) Runtime) {
	t.Helper()

	for name, test := range map[string]func(*testing.T, Runtime){
		"exit":            testExit,
		"identity":        testIdentity,
		"adopt":           testAdopt,
		"collect":         testCollect,
		"ensure at once":  testEnsureAtOnce,
		"conflict":        testConflict,
		"upgrade":         testUpgrade,
		"stop":            testStop,
		"stop ignored":    testStopIgnored,
		"stop absent":     testStopAbsent,
		"absent":          testAbsent,
		"by name":         testByName,
		"remove running":  testRemoveRunning,
		"wait canceled":   testWaitCanceled,
		"image missing":   testImageMissing,
		"bad entry point": testBadEntryPoint,
		"log streams":     testLogStreams,
		"log resume":      testLogResume,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func testExit(t *testing.T, r Runtime) {
	before := time.Now()

	c, _ := Finish(t, r, Launch("exit", "3"))
	require.Equal(t, berth.ContainerExited, c.State)
	require.Equal(t, 3, c.ExitCode)
	require.False(t, c.OOMKilled)
	require.False(t, c.DaemonLost)
	// Docker stamps the start after the process runs: a process that ends at once may end
	// "before" it.
	require.WithinRange(t, c.StartedAt, before.Add(-time.Second), c.FinishedAt.Add(time.Second))
}

func testIdentity(t *testing.T, r Runtime) {
	l := Launch("sleep")
	c := Start(t, r, l)
	require.Equal(t, berth.ContainerRunning, c.State)
	require.Positive(t, c.PID)
	require.False(t, c.Adopted)

	list, err := r.List(t.Context())
	require.NoError(t, err)

	var found *berth.Container

	for _, listed := range list {
		if listed.ID == c.ID {
			found = &listed
		}
	}

	require.NotNil(t, found)
	require.Equal(t, c.Name, found.Name)
	require.Equal(t, berth.ContainerRunning, found.State)
	require.Equal(t, l.AttemptID, found.AttemptID)
	require.Equal(t, l.Token, found.Token)
}

func testAdopt(t *testing.T, r Runtime) {
	l := Launch("sleep")
	first := Start(t, r, l)

	second, err := r.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.True(t, second.Adopted)
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, first.PID, second.PID)
}

func testCollect(t *testing.T, r Runtime) {
	l := Launch("exit", "5")
	first, _ := Finish(t, r, l)

	again, err := r.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.True(t, again.Adopted)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, berth.ContainerExited, again.State)
	require.Equal(t, 5, again.ExitCode)
}

func testEnsureAtOnce(t *testing.T, r Runtime) {
	const callers = 4

	var (
		l       = Launch("sleep")
		group   sync.WaitGroup
		results [callers]berth.Container
		errs    [callers]error
	)

	for i := range callers {
		group.Go(func() { results[i], errs[i] = r.Ensure(t.Context(), l) })
	}

	group.Wait()

	for i := range callers {
		require.NoError(t, errs[i])
		require.Equal(t, results[0].ID, results[i].ID)
	}

	Discard(t, r, results[0].ID)
}

// testUpgrade: another version of Berth injects another variable and keeps its
// data elsewhere. The attempt and its token still say that the container is its own.
func testUpgrade(t *testing.T, r Runtime) {
	before := Launch("sleep")
	first := Start(t, r, before)
	require.NotEmpty(t, first.SpecHash)

	after := before
	after.Environment = map[string]string{"NEW": "1"}

	again, err := r.Ensure(t.Context(), after)
	require.NoError(t, err)
	require.True(t, again.Adopted)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, first.SpecHash, again.SpecHash)

	after.SpecHash = first.SpecHash
	again, err = r.Ensure(t.Context(), after)
	require.NoError(t, err, "the hash that is known counts, not the one that would be computed now")
	require.Equal(t, first.ID, again.ID)
}

func testConflict(t *testing.T, r Runtime) {
	l := Launch("sleep")
	first := Start(t, r, l)

	newer := l
	newer.Token++
	_, err := r.Ensure(t.Context(), newer)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)

	foreign := l
	foreign.SpecHash = "of another container"
	_, err = r.Ensure(t.Context(), foreign)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)

	c, err := r.Inspect(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, berth.ContainerRunning, c.State, "left alone")
}

func testStop(t *testing.T, r Runtime) {
	c := Start(t, r, Launch("sleep"))
	AwaitReady(t, r, c.ID)

	require.NoError(t, r.Stop(t.Context(), c.ID, patience))

	ended, err := r.Inspect(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, berth.ContainerExited, ended.State)
	require.Equal(t, 143, ended.ExitCode)
}

func testStopIgnored(t *testing.T, r Runtime) {
	c := Start(t, r, Launch("ignore"))
	AwaitReady(t, r, c.ID)

	started := time.Now()

	require.NoError(t, r.Stop(t.Context(), c.ID, time.Second))
	require.WithinRange(t, time.Now(), started.Add(900*time.Millisecond), started.Add(patience))

	ended, err := r.Inspect(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, 137, ended.ExitCode)
	require.False(t, ended.OOMKilled, "killed by us, not by the kernel")
}

func testStopAbsent(t *testing.T, r Runtime) {
	require.NoError(t, r.Stop(t.Context(), "berth-test-no-such-container", time.Second))
	require.NoError(t, r.Remove(t.Context(), "berth-test-no-such-container"))

	_, err := r.Inspect(t.Context(), "berth-test-no-such-container")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	c, _ := Finish(t, r, Launch("exit", "0"))
	require.NoError(t, r.Stop(t.Context(), c.ID, time.Second), "twice is once")
}

func testAbsent(t *testing.T, r Runtime) {
	_, err := r.Wait(t.Context(), "berth-test-no-such-container")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "%v", err)

	err = r.Logs(t.Context(), "berth-test-no-such-container", berth.LogPosition{}, true, func(berth.LogChunk) error { return nil })
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "%v", err)
}

// testByName: a caller that has lost the id still knows the name.
func testByName(t *testing.T, r Runtime) {
	c := Start(t, r, Launch("sleep"))
	AwaitReady(t, r, c.Name)
	require.NoError(t, r.Stop(t.Context(), c.Name, patience))

	ended, err := r.Wait(t.Context(), c.Name)
	require.NoError(t, err)
	require.Equal(t, c.ID, ended.ID)
	require.NoError(t, r.Remove(t.Context(), c.Name))

	_, err = r.Inspect(t.Context(), c.ID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

func testRemoveRunning(t *testing.T, r Runtime) {
	c := Start(t, r, Launch("sleep"))
	require.Equal(t, berth.KindConflict, berth.KindOf(r.Remove(t.Context(), c.ID)))

	_, err := r.Inspect(t.Context(), c.ID)
	require.NoError(t, err)
}

func testWaitCanceled(t *testing.T, r Runtime) {
	c := Start(t, r, Launch("sleep"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := berth.Errorf(berth.KindCanceled, "shutting down")

	waited := make(chan error, 1)
	go func() {
		_, err := r.Wait(ctx, c.ID)
		waited <- err
	}()

	AwaitReady(t, r, c.ID)
	cancel(cause)
	require.ErrorIs(t, <-waited, cause)

	running, err := r.Inspect(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, berth.ContainerRunning, running.State, "a done context is no order to kill (R5)")
}

func testImageMissing(t *testing.T, r Runtime) {
	l := Launch("exit", "0")
	l.Image = "berth-test/no-such-image:1"

	_, err := r.Ensure(t.Context(), l)

	var start *berth.StartError

	require.ErrorAs(t, err, &start)
	require.Equal(t, berth.FailureImageMissing, start.Kind)
}

// testBadEntryPoint: the runtime may refuse the launch, or start it and let
// the init process end with 127. Asked again it says the same.
func testBadEntryPoint(t *testing.T, r Runtime) {
	l := Launch()
	l.Command = []string{"/no/such/program"}

	for range 2 {
		c, err := r.Ensure(t.Context(), l)
		if c.ID != "" {
			Discard(t, r, c.ID)
		}

		if err != nil {
			var start *berth.StartError

			require.ErrorAs(t, err, &start)
			require.Equal(t, berth.FailureBadCommand, start.Kind)

			continue
		}

		ended, err := r.Wait(t.Context(), c.ID)
		require.NoError(t, err)
		require.Equal(t, 127, ended.ExitCode)
	}
}
