package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/testkit/fake"
)

// BenchmarkSilentTrials measures the part of a core that a worker uses for 100 silent
// running trials: with a metrics file, files of the image in the working directory, and
// a cgroup. Docker and the database are in memory.
func BenchmarkSilentTrials(b *testing.B) {
	b.ReportMetric(100*watchTrials(b, 100, func(p *fake.Process) int { fake.Idle(p); return 143 }), "%core")
}

// BenchmarkPrintingTrial measures the part of a core that a worker uses for one of ten
// trials that print 300 lines a second; each tenth line has metrics.
func BenchmarkPrintingTrial(b *testing.B) {
	const (
		trials = 10
		lines  = 300 // a second
	)

	b.ReportMetric(100*watchTrials(b, trials, func(p *fake.Process) int {
		for n := 0; p.Sleep(time.Second / lines * 10); n++ {
			for range 9 {
				p.Print(berth.Stdout, fmt.Sprintf("loading batch %d of the training set\n", n))
			}

			p.Print(berth.Stdout, fmt.Sprintf("epoch %d: loss=0.5312 acc=0.8125\n", n))
		}

		return 143
	})/trials, "%core")
}

// watchTrials returns the part of a core that a worker uses for trials that run the
// program.
func watchTrials(b *testing.B, trials int, program fake.Program) float64 {
	b.Helper()

	const (
		files   = 40 // of the job, in /trial/out
		seconds = 10
	)

	dir, image := b.TempDir(), "registry.example/team/quiet@sha256:x"
	docks := fake.NewDocker("boot", image, program, nil)
	b.Cleanup(docks.Close)

	ledger := fake.NewLedger(nil)
	require.NoError(b, ledger.RegisterHost(b.Context(), berth.Host{ID: "host", Name: "host", CPUMilli: 1_000_000, MemoryBytes: 1 << 40}, ""))

	kernel := quietTree(b)
	executor := runtrial.New(docks, ledger, func(berth.Container) (runtrial.Meter, error) { return kernel.Open(quietContainer, 4711) },
		runtrial.Config{
			DataDir: filepath.Join(dir, "host"), BootID: "boot", DiskHeadroom: 2 << 30,
			DiskFree:  func() (int64, int64, error) { return 1 << 40, 1 << 40, nil },
			Available: func() (int64, error) { m, err := kernel.HostMemory(); return m.AvailableBytes, err },
		}, slog.New(slog.DiscardHandler))

	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, trials)

	for n := range trials {
		trial, attempt := fmt.Sprint("trial", n), uuid.NewString()
		ledger.AddTrial(fake.Trial{
			ImageDigest: image, Trial: berth.Trial{ID: trial, SweepID: "sweep", Number: n + 1, ShapeKey: "shape"},
			Spec: berth.Spec{
				Command: []string{"train"}, Metrics: berth.MetricsSpec{Source: berth.MetricsAuto},
				Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyLast},
			},
		})

		demand := berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 1000}
		_, err := ledger.RequestPlacement(ctx, berth.PlacementRequest{
			AttemptID: attempt, SweepID: "sweep", TrialID: trial, WorkflowID: "w", Number: 1, Stage: berth.StageMain,
			Purpose: berth.PurposeRun, ShapeKey: "shape", Demand: demand,
		})
		require.NoError(b, err)

		_, err = ledger.Place(ctx, map[string]berth.Placement{attempt: {HostID: "host", Demand: demand}})
		require.NoError(b, err)

		status, err := ledger.PlacementStatus(ctx, attempt)
		require.NoError(b, err)

		go func() {
			_, err := executor.Run(ctx, berth.Order{AttemptID: attempt, Token: status.Token})
			ended <- err
		}()

		require.Eventually(b, func() bool { return docks.Process(attempt) != nil }, time.Minute, time.Millisecond)

		for _, mount := range docks.Process(attempt).Launch.Mounts {
			if mount.Target == "/trial/out" {
				for i := range files {
					require.NoError(b, os.WriteFile(filepath.Join(mount.Source, fmt.Sprint(i)), []byte("x"), 0o600))
				}

				require.NoError(b, os.WriteFile(filepath.Join(mount.Source, "metrics.jsonl"), []byte(`{"acc": 0.5}`+"\n"), 0o600))
			}
		}
	}

	time.Sleep(22 * time.Second) // the first seconds of a run are measured more often

	var used time.Duration

	for b.Loop() {
		before := processorTime(b)
		time.Sleep(seconds * time.Second)
		used += processorTime(b) - before
	}

	cancel()

	for range trials {
		if err := <-ended; !errors.Is(err, runtrial.ErrDetached) {
			require.NoError(b, err)
		}
	}

	return used.Seconds() / float64(b.N*seconds)
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()

	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))

	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

const quietContainer = "072c58f1a95f9080db4684b9f0d572b998683e389504798d2be034b084ed2620"

// quietTree is a machine with one container, which holds the same all the time.
func quietTree(b *testing.B) cgroup.FS {
	b.Helper()

	root, scope := b.TempDir(), "/system.slice/docker-"+quietContainer+".scope"
	for name, content := range map[string]string{
		"proc/4711/cgroup":                   "0::" + scope + "\n",
		"proc/self/cgroup":                   "0::" + scope + "\n",
		"proc/meminfo":                       "MemTotal: 67108864 kB\nMemAvailable: 20971520 kB\n",
		"cgroup" + scope + "/memory.stat":    "anon 104857600\nfile 52428800\nkernel 757760\nshmem 4096\n",
		"cgroup" + scope + "/memory.events":  "oom 0\noom_kill 0\n",
		"cgroup" + scope + "/memory.max":     "1073741824\n",
		"cgroup" + scope + "/memory.current": "157286400\n",
		"cgroup" + scope + "/memory.peak":    "157286400\n",
		"cgroup" + scope + "/cpu.stat":       "usage_usec 1500000\nnr_periods 70\nnr_throttled 40\n",
	} {
		path := filepath.Join(root, name)
		require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(b, os.WriteFile(path, []byte(content), 0o600))
	}

	return cgroup.FS{Proc: filepath.Join(root, "proc"), Cgroup: filepath.Join(root, "cgroup")}
}
