//go:build gpu && cgo && linux

package nvml_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/nvml"
)

// holds is a program that holds memory of the GPU until its input ends; faults uses an
// address that is not its own, and says when it starts to.
const (
	holds  = "import cupy, sys; x = cupy.zeros(1 << 20); cupy.cuda.Device().synchronize(); print('ready', flush=True); sys.stdin.read()"
	faults = `
import cupy, time
bad = cupy.RawKernel('extern "C" __global__ void bad(long *p) { *p = 1; }', 'bad')
cupy.cuda.Device().synchronize()
bad.compile()
print(time.time_ns(), flush=True)
bad((1,), (1,), (8,))
cupy.cuda.Device().synchronize()
`
)

// The cost of measuring a GPU with this many programs, as a worker does for its trials:
// the memory ten times a second, the activity once, and the events. And the delay until
// an error of the GPU is reported.
//
//	go test -tags gpu -run TestCost -v ./internal/agent/nvml
//
// It needs a python3 with CuPy, and prints its figures.
func TestCost(t *testing.T) { //nolint:paralleltest // it measures this process
	d, err := nvml.Open(t.Context(), nvml.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	inventory, err := d.Inventory(t.Context())
	require.NoError(t, err)

	card := inventory.Cards[0]
	t.Logf("%s, driver %s", card.Model, inventory.DriverVersion)

	events := make(chan gpu.Event, 64)

	go func() {
		for t.Context().Err() == nil {
			if e, err := d.WaitEvent(t.Context()); err == nil {
				events <- e
			}
		}
	}()

	for _, programs := range []int{0, 8, 24} {
		for range programs - running {
			hold(t)
		}

		running = max(running, programs)
		t.Logf("%d programs: %s", programs, cost(t, d, card.UUID))
	}

	for range 5 {
		t.Logf("heard of XID %s", fault(t, events))
	}
}

var running int

// hold starts a program on the GPU, and ends it with the test.
func hold(t *testing.T) {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "python3", "-c", holds)
	_, err := cmd.StdinPipe()
	require.NoError(t, err)

	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) //nolint:nlreturn // one line

	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err)
}

// cost measures for ten seconds, as 24 trials do that each ask five times a second.
func cost(t *testing.T, d gpu.Driver, uuid string) string {
	t.Helper()

	const lasts, trials = 10 * time.Second, 24

	m, before, readings := gpu.NewMeter(d, os.DirFS("/proc")), processorTime(t), 0

	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()

	for began := time.Now(); time.Since(began) < lasts; <-ticker.C {
		for range trials {
			_, _ = m.Container(t.Context(), strings.Repeat("a", 64), uuid) // its processes are in no container
			_, _ = m.Activity(t.Context(), uuid)
			readings++
		}
	}

	used := processorTime(t) - before

	return fmt.Sprintf("%.2f %% of a core (%d questions of trials in %s)", 100*float64(used)/float64(lasts), readings, lasts)
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()

	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))

	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// fault lets a program fault, and returns how long after the start of its kernel
// the worker gets the event.
func fault(t *testing.T, events <-chan gpu.Event) string {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	out, _ := exec.CommandContext(ctx, "python3", "-c", faults).Output() // it fails

	var nanoseconds int64

	_, err := fmt.Sscan(string(out), &nanoseconds)
	require.NoError(t, err, "%s", out)

	select {
	case e := <-events:
		return fmt.Sprintf("%d %s after the program used the address", e.XID, e.At.Sub(time.Unix(0, nanoseconds)).Round(time.Millisecond))
	case <-time.After(10 * time.Second):
		t.Fatal("nobody heard of it")

		return ""
	}
}
