package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/report"
)

const (
	mib  = 1 << 20
	gib  = 1 << 30
	h200 = 143_771 * mib
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func at(second int) *time.Time { return new(start.Add(time.Duration(second) * time.Second)) }

// onGPU is an attempt of sweep s that ran from one second to another.
func onGPU(id string, trial, number, from, to int) report.Attempt {
	return report.Attempt{
		ID: id, SweepID: "s", Trial: trial, Number: number, Stage: berth.StageMain, ShapeKey: "k", Purpose: berth.PurposeRun, Kind: berth.FailureOK,
		HostID: "h", HostName: "big", DeviceID: "GPU-1", Class: "NVIDIA H200 (MPS)", MemoryBytes: h200,
		ReservedBytes: 1280 * mib, PeakBytes: 960 * mib, CPUMilli: 1000, CPU: time.Second, Wall: 4 * time.Second,
		StartedAt: at(from), FinishedAt: at(to),
	}
}

func onCores(id string, trial, number, from, to int) report.Attempt {
	a := onGPU(id, trial, number, from, to)
	a.DeviceID, a.Class, a.MemoryBytes = "", berth.ClassCPU, 32*gib

	return a
}

func with(a report.Attempt, change func(*report.Attempt)) report.Attempt {
	change(&a)

	return a
}

func ended(attempts ...report.Attempt) report.Report {
	return report.Make(report.Input{SweepID: "s", State: berth.SweepSucceeded, Trials: 3, AsOf: start.Add(time.Hour), Attempts: attempts})
}

func TestDefaultModeBytes(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name      string
		card, got int64
	}{
		{"H200, as NVML measured it", 143_771, 141_450},
		{"24 GiB, at most the 22,885 measured elsewhere", 24_265, 21_944},
		{"a small one has a small reserve", 3_000, 3_000 - 618 - 524 - 225 + 621},
		{"too small", 1_300, 0},
		{"not known", 0, 0},
	} {
		require.Equal(t, test.got*mib, report.DefaultModeBytes(test.card*mib), test.name)
	}
}

func TestMake_SharedGPU(t *testing.T) {
	t.Parallel()

	r := ended(onGPU("a", 1, 1, 0, 36), onGPU("b", 2, 1, 0, 72), onGPU("c", 3, 1, 36, 72))

	require.Equal(t, 72*time.Second, r.GPU.Used)
	require.Equal(t, r.GPU.Used, r.GPU.Charged)
	require.Equal(t, 144*time.Second, r.GPU.AttemptTime)
	require.Equal(t, 144*time.Second, r.GPU.AloneTime)
	require.Equal(t, 3, r.GPU.AloneBounded)
	require.InDelta(t, 2, r.GPU.AtOnce, 1e-9)
	require.Equal(t, 2, r.GPU.MaxAtOnce, "an attempt that starts when another ends is not beside it")
	require.InDelta(t, 1280*mib*144, r.GPU.ReservedByteSeconds, 1)
	require.InDelta(t, 141_450*mib*144, r.GPU.DefaultByteSeconds, 1)
	require.InDelta(t, 25, *r.Trials[0].Attempts[0].SlackPercent, 1e-9)
	require.Len(t, r.Places, 1)
	require.Equal(t, "NVIDIA H200", r.Places[0].Class)
	require.InDelta(t, 1, r.Places[0].BusyShare, 1e-9)
	require.Zero(t, r.Cores)
	require.Equal(t, []string{
		"3 trials shared 1 GPU, 2 at once on average and 2 at most: 0.020 GPU-hours instead of 0.040, one trial per GPU.",
		"0.040 is an upper bound: 3 attempts ran beside others, which can take longer than alone; their time alone was not measured.",
		"Reserved 0.050 GiB-hours of GPU memory instead of 5.5, which TensorFlow's default mode would take with one trial per GPU: 111 times less.",
		"At their peaks, 3 measured attempts used 75 % of the GPU memory reserved for them.",
		"From the sweep's first start to its last end, 1 GPU had work of it 100 % of the time.",
		"How busy the GPUs were meanwhile was not measured.",
	}, r.Notes)
}

// Held is not busy: each attempt counts with its measured activity, over the time in
// which it held memory of its GPU.
func TestMake_Activity(t *testing.T) {
	t.Parallel()

	active := func(sm, dram, tensor int64, held time.Duration) func(a *report.Attempt) {
		return func(a *report.Attempt) {
			a.Activity, a.ActiveFor = berth.DeviceActivity{SMMilli: sm, DRAMMilli: dram, TensorMilli: tensor}, held
		}
	}
	one := with(onGPU("a", 1, 1, 0, 36), active(200, 100, 10, 18*time.Second))
	two := with(onGPU("b", 2, 1, 0, 72), active(100, 50, 0, 72*time.Second))

	r := ended(one, two)
	require.Equal(t, 108*time.Second, r.GPU.ActivityTime)
	require.Equal(t, 10800*time.Millisecond, r.GPU.SMTime, "a fifth of 18 s and a tenth of 72 s")
	require.Equal(t, 5400*time.Millisecond, r.GPU.DRAMTime)
	require.Equal(t, 180*time.Millisecond, r.GPU.TensorTime)
	require.Contains(t, r.Notes, "They were held for 0.020 GPU-hours: their SMs had work of the sweep 15 % of that time, tensor cores 0.25 %, "+
		"and it used 8 % of the bandwidth of their memory.")

	r = ended(one, two, onGPU("c", 3, 1, 36, 72)) // its activity is unknown
	require.Equal(t, 108*time.Second, r.GPU.ActivityTime)
	require.Contains(t, r.Notes, "They were held for 0.020 GPU-hours: their SMs had work of the sweep at least 15 % of that time, tensor cores at least 0.25 %, "+
		"and it used at least 8 % of the bandwidth of their memory. That is of 75 % of the attempts' time; of the rest it is not known.")

	skewed := ended(with(onGPU("a", 1, 1, 0, 10), active(1000, 0, 0, time.Minute)))
	require.Equal(t, 10*time.Second, skewed.GPU.SMTime, "no longer than it was there")
}

// A whole run alone tells how long others of its shape would have taken.
func TestMake_TimeAlone(t *testing.T) {
	t.Parallel()

	r := ended(
		onGPU("probe", 1, 1, 0, 20),
		onGPU("slowed", 2, 1, 20, 60), onGPU("fast", 3, 1, 20, 30),
		with(onGPU("other shape", 4, 1, 30, 60), func(a *report.Attempt) { a.ShapeKey = "other" }),
		with(onGPU("short", 5, 1, 60, 70), func(a *report.Attempt) { a.Short = true }),
		with(onGPU("oom", 6, 1, 70, 80), func(a *report.Attempt) { a.Kind = berth.FailureDeviceOOM }),
	)

	// The mean of whole runs does not apply to a crashed one, and skewed clocks do not change the mean.
	odd := ended(
		onGPU("probe", 1, 1, 0, 20), onGPU("skewed", 1, 2, 25, 24),
		with(onGPU("crashed", 2, 1, 30, 60), func(a *report.Attempt) { a.Kind = berth.FailureCrashed }), onGPU("beside", 3, 1, 30, 60),
	)
	require.Equal(t, (20+30+20)*time.Second, odd.GPU.AloneTime)

	require.Equal(t, (20+20+10+30)*time.Second, r.GPU.AloneTime)
	require.Equal(t, 120*time.Second, r.GPU.AttemptTime)
	require.Equal(t, []int{1, 2, 1, 2}, []int{r.GPU.AloneRan, r.GPU.AloneByShape, r.GPU.AloneBounded, r.GPU.AloneNeedless})
}

// In its first minute a sweep may have had nothing but short probes and attempts that ran out of memory.
func TestMake_NothingToCompareWith(t *testing.T) {
	t.Parallel()

	oom := func(a *report.Attempt) { a.Kind = berth.FailureHostOOM }
	r := ended(with(onCores("a", 1, 1, 0, 36), oom), with(onCores("b", 2, 1, 0, 36), oom))
	require.Equal(t, "2 trials shared 1 host's cores, 2 at once on average and 2 at most: 0.010 host-hours, "+
		"for attempts that one trial at a time would not need: short probes, out of memory, trouble with neighbours.", r.Notes[0])
	require.NotContains(t, r.Notes[1], "leaves out")
}

// An attempt of another sweep is company, too, and takes its share of the card.
func TestMake_ChargesByReservedMemory(t *testing.T) {
	t.Parallel()

	other := with(onGPU("x", 1, 1, 0, 50), func(a *report.Attempt) { a.SweepID, a.ReservedBytes = "other", 3*1280*mib })
	r := ended(onGPU("a", 1, 1, 0, 100), other)

	require.Equal(t, 100*time.Second, r.GPU.Used)
	require.Equal(t, time.Duration(62.5*float64(time.Second)), r.GPU.Charged, "50 s by a quarter, 50 s whole")
	require.False(t, r.Trials[0].Attempts[0].Alone)
	require.Equal(t, 1, r.GPU.Trials)
	require.Contains(t, r.Notes,
		"Other sweeps used the same GPUs at the same time: 0.017 of the 0.028 GPU-hours are charged to this sweep, by its share of the reserved memory.")
}

// Where all but a trace is charged to the sweep, no sentence says twice the same.
func TestMake_NoWordOfATrace(t *testing.T) {
	t.Parallel()

	trace := with(onGPU("x", 1, 1, 99, 200), func(a *report.Attempt) { a.SweepID = "other" })
	r := ended(onGPU("a", 1, 1, 0, 100), trace)

	require.Equal(t, 99500*time.Millisecond, r.GPU.Charged)

	for _, note := range r.Notes {
		require.NotContains(t, note, "charged")
	}
}

func TestMake_Losses(t *testing.T) {
	t.Parallel()

	r := ended(
		with(onCores("oom", 1, 1, 0, 30), func(a *report.Attempt) { a.Kind = berth.FailureHostOOM }), onCores("a", 1, 2, 30, 90),
		with(onCores("lost", 2, 1, 0, 0), func(a *report.Attempt) { a.Kind, a.StartedAt = berth.FailureInfra, nil }), onCores("b", 2, 2, 30, 80),
		with(onCores("probe", 3, 1, 90, 100), func(a *report.Attempt) { a.Short = true }),
		with(onCores("pruned", 3, 2, 100, 110), func(a *report.Attempt) { a.Kind = berth.FailurePruned }),
	)

	require.Equal(t, []report.Loss{
		{Cause: "host_oom", Attempts: 1, Repeated: 1, Time: 30 * time.Second},
		{Cause: "short_probe", Attempts: 1, Repeated: 1, Time: 10 * time.Second},
		{Cause: "infra", Attempts: 1, Repeated: 1},
	}, r.Losses)
	require.Contains(t, r.Notes, "1 attempt ended as host_oom and took 30 s, 19 % of the time of all attempts; 1 repeated.")
	require.Contains(t, r.Notes, "1 attempt ended as infra before a container ran; 1 repeated.")
	require.Contains(t, r.Notes, "Attempts that were measured throughout used 25 % of the cores reserved for them.")
	require.Zero(t, r.GPU)
	require.Nil(t, r.Trials[0].Attempts[0].SlackPercent, "one that ran out of memory wanted more than it had")
	require.True(t, r.Trials[0].Attempts[0].PeakPartial)
	require.Equal(t, 4, r.Cores.Measured)
	require.Zero(t, r.Trials[0].Attempts[0].DefaultBytes, "nothing is claimed of cores")
}

func TestMake_WhatIsNotThere(t *testing.T) {
	t.Parallel()

	empty := report.Make(report.Input{SweepID: "s", State: berth.SweepPending, AsOf: start})
	require.Equal(t, []string{"The sweep is pending: these are its figures so far.", "The sweep has no trials yet."}, empty.Notes)
	require.False(t, empty.Ended)

	purged := report.Make(report.Input{SweepID: "s", State: berth.SweepSucceeded, Trials: 2, Succeeded: 2, AsOf: start})
	require.Equal(t, 2, purged.Missing)
	require.Equal(t, []string{
		"No container of its 2 trials started.",
		"2 trials with a result: the attempts are not in the database any more, so what they used is missing here.",
	}, purged.Notes)

	staged := report.Make(report.Input{SweepID: "s", State: berth.SweepSucceeded, AsOf: start, Stages: []report.Stage{
		{Name: "base", Trials: 24, Runs: 3, Spent: 6 * time.Second, Alone: 48 * time.Second},
	}})
	require.Contains(t, staged.Notes, "24 trials shared stage base: 3 runs here instead of 24, 6 s of container time instead of 48 s.")

	running := with(onGPU("a", 1, 1, 0, 0), func(a *report.Attempt) { a.Kind, a.FinishedAt, a.PeakBytes, a.Wall = "", nil, 0, 0 })
	r := report.Make(report.Input{SweepID: "s", State: berth.SweepRunning, Trials: 1, AsOf: start.Add(time.Minute), Attempts: []report.Attempt{running}})
	require.Equal(t, time.Minute, r.GPU.Used)
	require.Nil(t, r.Trials[0].Attempts[0].SlackPercent)
	require.Contains(t, r.Notes, "No peak of GPU memory was measured.")
	require.Contains(t, r.Notes, "1 trial ran on 1 GPU, one at a time: 0.017 GPU-hours.")

	onlyProbed := report.Make(report.Input{SweepID: "s", State: berth.SweepSucceeded, Succeeded: 1, AsOf: start, Attempts: []report.Attempt{
		with(onGPU("a", 1, 1, 0, 10), func(a *report.Attempt) { a.Short = true }),
	}})
	require.Equal(t, 1, onlyProbed.Missing, "a short probe gave no result")

	onlyStage := report.Make(report.Input{SweepID: "s", State: berth.SweepSucceeded, Succeeded: 1, AsOf: start, Attempts: []report.Attempt{
		with(onGPU("a", 1, 1, 0, 10), func(a *report.Attempt) { a.Stage = "base" }),
	}})
	require.Equal(t, 1, onlyStage.Missing, "a stage is no trial's result")

	lowerBound := ended(onGPU("a", 1, 1, 0, 10), with(onGPU("b", 2, 1, 10, 20), func(a *report.Attempt) { a.PeakPartial = true }))
	require.Equal(t, 1, lowerBound.GPU.Measured)
	require.Equal(t, time.Second, lowerBound.GPU.CPUTime)

	backwards := ended(onGPU("a", 1, 1, 10, 5)) // clocks differ
	require.Zero(t, backwards.GPU.AttemptTime)
}
