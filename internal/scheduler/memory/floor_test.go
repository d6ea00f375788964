package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

// ladder is the history of one trial: the reservation of each attempt, and
// whether the last one succeeded.
type ladder struct {
	reserved []int64 // MiB
	ok       bool
}

// play runs trials of one shape one after the other. needs is the need of each
// one, in MiB; the kernel kills an attempt with less at its limit.
func play(prior *berth.Footprint, r berth.Resources, capacity int64, needs ...int64) (*berth.Footprint, []ladder) {
	const attempts = 3

	room := memory.Room{CapacityBytes: capacity * mib, FreeBytes: capacity * mib}
	all := make([]ladder, 0, len(needs))

	for _, need := range needs {
		var l ladder

		demand, fits := memory.Demand(r, prior, room), true

		for ooms := 0; fits && !l.ok; {
			l.reserved = append(l.reserved, demand.MemoryBytes/mib)
			l.ok = demand.MemoryBytes >= need*mib
			u, kind := usage(min(need*mib, demand.MemoryBytes), time.Minute, 500), berth.FailureOK

			if !l.ok {
				kind, u.OOMKills = berth.FailureHostOOM, 1
				ooms++
			}

			if f, known := memory.Observe(prior, "key", berth.FootprintFull, kind, u, demand); known {
				prior = &f
			}

			if !l.ok {
				demand, fits = memory.AfterOOM(demand, u.MemoryPeakBytes, ooms, attempts, room)
			}
		}

		all = append(all, l)
	}

	return prior, all
}

func fine(reserved int64) ladder { return ladder{[]int64{reserved}, true} }

// TestFloor_Stories shows how an out-of-memory changes the other trials of a
// shape, all sizes in MiB.
func TestFloor_Stories(t *testing.T) {
	t.Parallel()

	const host = 24 << 10

	short := func(peak int64) *berth.Footprint {
		return &berth.Footprint{Source: berth.FootprintShort, Samples: 1, MemoryPeakBytes: peak * mib}
	}

	for name, test := range map[string]struct {
		prior     *berth.Footprint
		resources berth.Resources
		needs     []int64
		want      []ladder
	}{
		// An unmarked parameter decides: one trial can never fit.
		"one of many needs more than there is": {
			needs: []int64{175, 175, 30720, 175, 175, 175, 175},
			want: []ladder{
				fine(4096), fine(224),
				{[]int64{224, 768, host}, false},
				fine(896), fine(896), fine(896), // four times their need, for three runs
				fine(224),
			},
		},
		"it comes first": {
			needs: []int64{30720, 175, 175, 175, 175},
			want: []ladder{
				{[]int64{4096, 6144, host}, false},
				fine(9216), // nothing is measured yet; not the whole host
				fine(896), fine(896), fine(224),
			},
		},
		"it comes again and again": {
			needs: []int64{175, 30720, 30720, 30720, 175},
			want: []ladder{
				fine(4096),
				{[]int64{224, 768, host}, false},
				{[]int64{896, 1408, host}, false},
				{[]int64{896, 1408, host}, false},
				fine(896),
			},
		},
		// The memory peaks after the part that the probe measured.
		"every trial needs more than the probe measured": {
			prior: short(1024),
			needs: []int64{3072, 3072, 3072, 3072},
			want: []ladder{
				{[]int64{1232, 1856, host}, true},
				fine(3392), fine(3232), fine(3232),
			},
		},
		"twice as much": {
			prior: short(1024),
			needs: []int64{1800, 1800, 1800},
			want:  []ladder{{[]int64{1232, 1856}, true}, fine(1984), fine(1904)},
		},
		"ten times as much": {
			prior: short(256),
			needs: []int64{2560, 2560},
			want:  []ladder{{[]int64{320, 832, host}, true}, fine(2816)},
		},
		"several sizes in one shape": {
			prior: &berth.Footprint{Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 299 * mib},
			needs: []int64{640, 885, 299, 885},
			want:  []ladder{{[]int64{352, 896}, true}, fine(896), fine(944), fine(944)},
		},
		// What the user writes stands.
		"a size in the file": {
			prior:     &berth.Footprint{Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 175 * mib, MemoryFloorBytes: host * mib},
			resources: berth.Resources{Memory: 512 * mib},
			needs:     []int64{175, 1000, 175},
			want:      []ladder{fine(512), {[]int64{512, 1024}, true}, fine(512)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, got := play(test.prior, test.resources, host, test.needs...)
			require.Equal(t, test.want, got)
		})
	}
}

func TestObserve_WhatSetsTheFloor(t *testing.T) {
	t.Parallel()

	measured := berth.Footprint{ShapeKey: "key", Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 500 * mib}

	for name, test := range map[string]struct {
		peak  int64 // MiB
		kills int
		had   berth.Demand
		want  int64 // MiB
	}{
		"killed at its limit":       {1000, 1, berth.Demand{MemoryBytes: 1024 * mib}, 1024},
		"killed between two looks":  {6, 1, berth.Demand{MemoryBytes: 1024 * mib}, 1024},
		"no kill seen, but full":    {1000, 0, berth.Demand{MemoryBytes: 1024 * mib}, 1024},
		"the program's word alone":  {6, 0, berth.Demand{MemoryBytes: 1024 * mib}, 0},
		"nothing measured":          {0, 0, berth.Demand{MemoryBytes: 1024 * mib}, 0},
		"alone on a machine":        {1000, 1, berth.Demand{MemoryBytes: 1024 * mib, Exclusive: true}, 0},
		"a run succeeded with more": {400, 1, berth.Demand{MemoryBytes: 448 * mib}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			u := usage(test.peak*mib, time.Minute, 100)
			u.OOMKills = test.kills

			f, ok := memory.Observe(&measured, "key", berth.FootprintFull, berth.FailureHostOOM, u, test.had)
			require.True(t, ok)
			require.Equal(t, test.want*mib, f.MemoryFloorBytes)
			require.Equal(t, measured.MemoryPeakBytes, f.MemoryPeakBytes, "the peak is of runs that ended well")
		})
	}
}

// A run that was measured in part gives a lower bound of a shape's need.
func TestObserve_RunWithAGap(t *testing.T) {
	t.Parallel()

	gap := seen{berth.FootprintPartial, berth.FailureOK, usage(155*mib, time.Minute, 500), 4096 * mib}
	gap.usage.Unseen = berth.Duration(time.Minute)

	f := observe(nil, gap)
	require.Equal(t, &berth.Footprint{ShapeKey: "key", Source: berth.FootprintPartial, MemoryPeakBytes: 155 * mib}, f)
	require.False(t, memory.Known(f), "the next run of the shape completes it")
	require.Equal(t, int64(4096*mib), memory.Demand(berth.Resources{}, f, memory.Room{CapacityBytes: 32 << 30}).MemoryBytes, "with as much as an unmeasured shape")

	full := seen{berth.FootprintFull, berth.FailureOK, usage(140*mib, time.Minute, 500), 4096 * mib}
	f = observe(f, full)
	require.True(t, memory.Known(f))
	require.Equal(t, berth.FootprintFull, f.Source)
	require.Equal(t, int64(155*mib), f.MemoryPeakBytes)

	gap.usage.MemoryPeakBytes = 400 * mib
	require.Equal(t, &berth.Footprint{
		ShapeKey: "key", Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 400 * mib, CPUMilli: 500, Duration: berth.Duration(time.Minute),
	}, observe(f, gap), "it raises the peak of what is known, and nothing else")
}

func TestFloor_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(64*mib, 1<<36).Draw(t, "capacity")
		f := observe(nil, rapid.SliceOfN(drawSeen(), 0, 8).Draw(t, "attempts")...)

		demand := func(f *berth.Footprint) int64 {
			return memory.Demand(berth.Resources{}, f, memory.Room{CapacityBytes: capacity}).MemoryBytes
		}
		require.LessOrEqual(t, demand(f), capacity, "never more than a host has")
		require.Positive(t, demand(f))

		oom := drawSeen().Draw(t, "out of memory")
		oom.kind, oom.usage.OOMKills = berth.FailureHostOOM, 1

		raised := observe(f, oom)
		require.GreaterOrEqual(t, demand(raised), demand(f), "an out-of-memory lowers nothing")

		more := oom
		more.reserved += rapid.Int64Range(0, 1<<36).Draw(t, "more")
		require.GreaterOrEqual(t, demand(observe(f, more)), demand(raised), "one with more does not teach less")

		small := seen{source: berth.FootprintFull, kind: berth.FailureOK, usage: usage(mib, time.Minute, 100)}
		recovered := observe(raised, small, small, small)
		require.Zero(t, recovered.MemoryFloorBytes, "three runs that need less make up for it")
		require.Zero(t, recovered.FloorPassed)

		calm := observe(f, small, small, small)
		require.LessOrEqual(t, demand(recovered), demand(calm), "and nothing of it is left")
	})
}
