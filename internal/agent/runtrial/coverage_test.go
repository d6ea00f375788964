package runtrial

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// dial is a meter whose reading tests turn.
type dial struct {
	mu     sync.Mutex
	sample berth.MemorySample
	err    error
}

func (d *dial) Read() (berth.MemorySample, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.sample, d.err
}

// turn sets the reading, in MiB.
func (d *dial) turn(workingSet, highWater int64) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.sample.WorkingSetBytes, d.sample.HighWaterBytes = workingSet<<20, highWater<<20
}

// fail makes readings fail with err; nil = no more.
func (d *dial) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.err = err
}

// metered is a rig with a dial that reads 155 MiB, sampled as in production.
func metered(t *testing.T) (*rig, *dial) {
	t.Helper()

	r, d := setup(t), &dial{sample: berth.MemorySample{WorkingSetBytes: 155 << 20, CPU: time.Second}}
	r.meter = func(berth.Container) (Meter, error) { return d, nil }
	r.config.SampleEvery = 200 * time.Millisecond

	return r, d
}

func TestGap_WorkerAway(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		away      time.Duration
		highWater int64 // as the kernel says after it, MiB; 0 = it does not
		later     int64 // working set after it, MiB
		unseen    time.Duration
	}{
		"for a moment":                          {away: time.Second, later: 100},
		"for a minute":                          {away: time.Minute, later: 100, unseen: time.Minute},
		"the kernel saw more":                   {away: time.Minute, later: 100, highWater: 289, unseen: time.Minute},
		"the kernel proves that it was no more": {away: time.Minute, later: 100, highWater: 160},
		"it came to as much again":              {away: time.Minute, later: 289, highWater: 300},
	} {
		bubble(t, name, func(t *testing.T) {
			r, dial := metered(t)
			b := r.readFor(t, time.Minute, func(*fake.Process) {})

			time.Sleep(test.away)

			dial.turn(test.later, test.highWater)
			ended := r.start(t.Context(), r.order())

			time.Sleep(time.Minute)
			ends(t, b, ended, "acc=1\n", 0)

			got := r.books.result(t)
			require.Equal(t, max(test.later, 155)<<20, got.Outcome.Usage.MemoryPeakBytes)
			require.InDelta(t, test.unseen, time.Duration(got.Outcome.Usage.Unseen), float64(time.Second))
			require.Zero(t, got.Outcome.Usage.SeenUntil)

			if test.unseen == 0 {
				require.Equal(t, berth.FootprintFull, got.Source)
				require.Equal(t, `finished; its value is of line 1 of its log, "acc=1"`, got.Outcome.Message)

				return
			}

			require.Equal(t, berth.FootprintPartial, got.Source)
			require.Contains(t, got.Outcome.Message, "its memory was not measured for 1m0s of 3m0s")
		})
	}
}

// The exit comes while nothing looks: what was used before it is not known.
func TestGap_ExitWhileTheWorkerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, dial := metered(t)
		dial.turn(155, 155)
		b := r.readFor(t, time.Minute, func(*fake.Process) {})

		time.Sleep(20 * time.Second)
		b.Print(berth.Stdout, "acc=1\n")
		b.Exit(0)
		time.Sleep(time.Hour)

		dial.fail(errors.New("the cgroup is gone"))

		require.NoError(t, (<-r.start(t.Context(), r.order())).err)

		got := r.books.result(t)
		require.Equal(t, berth.FootprintPartial, got.Source)
		require.InDelta(t, 20*time.Second, time.Duration(got.Outcome.Usage.Unseen), float64(time.Second), "it ran so long unseen, not an hour")
	})
}

func TestGap_SamplesMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, dial := metered(t)
		b, ended := r.begin(t)

		time.Sleep(time.Minute)

		dial.fail(errors.New("the machine is too busy"))

		time.Sleep(30 * time.Second)

		dial.fail(nil)

		time.Sleep(time.Minute)
		b.Exit(0)
		require.NoError(t, (<-ended).err)

		got := r.books.result(t)
		require.Equal(t, berth.FootprintPartial, got.Source)
		require.InDelta(t, 30*time.Second, time.Duration(got.Outcome.Usage.Unseen), float64(time.Second))
	})
}

func TestMost_KnowsTheGapsOfTheLaterReading(t *testing.T) {
	t.Parallel()

	early := berth.Usage{MemoryPeakBytes: 9, Unseen: 5, SeenUntil: noon}
	late := berth.Usage{MemoryPeakBytes: 7, SeenUntil: noon.Add(time.Second)} // the kernel closed the gap meanwhile
	want := berth.Usage{MemoryPeakBytes: 9, SeenUntil: noon.Add(time.Second)}

	require.Equal(t, want, most(early, late))
	require.Equal(t, want, most(late, early))
}

// The kernel's memory killer strikes when the machine has nothing left.
func TestRun_MachineOutOfMemory(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		left int64 // of the machine's memory, MiB
		want berth.FailureKind
	}{
		"it had less left than the limit": {50, berth.FailureInfra},
		"it had room":                     {20_000, berth.FailureHostOOM},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.config.Available = func() (int64, error) { return test.left << 20, nil }
			box, ended := r.begin(t)
			time.Sleep(time.Second) // it is measured
			r.NoteOOM(attemptID)

			got := ends(t, box, ended, "", 137)
			require.Equal(t, test.want, got.Kind, got.Message)
			require.Equal(t, 1, got.Usage.OOMKills, "the kernel's word is kept with the usage")

			_, kept := r.ooms.Load(attemptID)
			require.False(t, kept)
		})
	}
}

// An attempt that is stopped while no worker watches: what was measured is stored.
func TestMemory_OfAnAttemptThatIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := metered(t)
		r.readFor(t, 8*time.Second, func(*fake.Process) {})

		order := r.order()
		order.Stop = true
		got := came(t, r.start(t.Context(), order))
		require.Equal(t, berth.FailureCanceled, got.Kind)
		require.GreaterOrEqual(t, len(r.books.memory(t)), 7)
	})
}
