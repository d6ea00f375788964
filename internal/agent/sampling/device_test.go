package sampling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A phase has what is held when it begins, and what comes until the next one.
func TestDeviceWatch_Phases(t *testing.T) {
	t.Parallel()

	start := time.Unix(0, 0)
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }
	began := []PhaseAt{{at(10), PhaseTraining}, {at(20), PhaseValidation}, {at(30), PhaseTraining}, {at(40), "other"}, {at(50), PhaseValidation}, {at(60), "other"}}

	watch := func(before berth.Usage, held ...int64) *DeviceWatch {
		w := NewDeviceWatch(Coverage{StartedAt: start, Every: 100 * time.Millisecond}, before)
		for i, bytes := range held {
			w.Add(DeviceReading{UsedBytes: bytes}, at(float64(i)+0.5))
		}

		return w
	}

	held := make([]int64, 70)
	for i := range held {
		switch {
		case i < 5:
			held[i] = 100
		case i < 25:
			held[i] = 300
		case i < 35:
			held[i] = 400
		case i < 45:
			held[i] = 500
		default:
			held[i] = 200
		}
	}

	require.Equal(t, berth.Phases{StartBytes: 300, TrainingBytes: 500, ValidationBytes: 400}, watch(berth.Usage{}, held...).Phases(began))
	require.Equal(t, berth.Phases{StartBytes: 300, TrainingBytes: 300}, watch(berth.Usage{}, held[:9]...).Phases(began[:1]), "what is held when it begins")
	require.Zero(t, watch(berth.Usage{}, held...).Phases(nil), "it said nothing")
	require.Zero(t, watch(berth.Usage{DeviceSamples: 1}, held...).Phases(began), "another worker saw a part")
}

// A program that does all its work on the GPU between two readings is not taken for one
// that never touched it.
func TestDeviceWatch_ShortOfReadings(t *testing.T) {
	t.Parallel()

	start := time.Unix(1000, 0)

	for name, c := range map[string]struct {
		readings []int // ms after the start
		used     int64
		measured bool
	}{
		"read throughout":              {[]int{100, 300, 500, 700, 900, 1100, 1300}, 0, true},
		"once, by a worker that ended": {[]int{100}, 0, false},
		"late":                         {[]int{1100, 1300}, 0, false},
		"once, and it held something":  {[]int{100}, 1 << 20, true},
	} {
		w := NewDeviceWatch(Coverage{StartedAt: start, Every: 200 * time.Millisecond}, berth.Usage{})
		for _, after := range c.readings {
			w.Add(DeviceReading{UsedBytes: c.used}, start.Add(time.Duration(after)*time.Millisecond))
		}

		u := berth.Usage{Wall: berth.Duration(1400 * time.Millisecond)}
		w.Into(&u, berth.Usage{})
		w.End(&u, start.Add(1400*time.Millisecond))
		require.Equal(t, c.measured, u.DeviceMeasured(), name)
	}
}

// A reading that several questions share counts once: copies of it say nothing new.
func TestDeviceWatch_SharedReading(t *testing.T) {
	t.Parallel()

	start := time.Unix(1000, 0)
	w := NewDeviceWatch(Coverage{StartedAt: start, Every: 200 * time.Millisecond}, berth.Usage{})

	for range 5 {
		w.Add(DeviceReading{}, start.Add(100*time.Millisecond))
	}

	u := berth.Usage{Wall: berth.Duration(time.Second)}
	w.Into(&u, berth.Usage{})
	w.End(&u, start.Add(time.Second))
	require.Equal(t, 1, u.DeviceSamples)
	require.False(t, u.DeviceMeasured(), "it may have used the GPU since")
}

// The driver lists a process that starts without what it holds. That is no gap once it
// says how much the process holds. It is a gap when it never says so, when the process
// ends first, and while nobody looks.
func TestDeviceWatch_ProcessThatStarts(t *testing.T) {
	t.Parallel()

	start := time.Unix(0, 0)
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }

	// unseen is the gap in an attempt of 20 s. The driver names an amount from second 10 on, or
	// never. Nobody looks in the seconds away. At ended its process has ended, and another starts.
	unseen := func(named bool, awayFrom, awayUntil, ended float64) time.Duration {
		w := NewDeviceWatch(Coverage{StartedAt: start, Every: 200 * time.Millisecond}, berth.Usage{})

		for i := range 100 {
			switch second := float64(i) / 5; {
			case second > awayFrom && second < awayUntil:
			case second < 1 || second == ended:
				w.Add(DeviceReading{}, at(second)) // it has no process there
			case second < 10 || !named:
				w.Unnamed(DeviceReading{}, at(second))
			default:
				w.Add(DeviceReading{UsedBytes: 900}, at(second))
			}
		}

		u := berth.Usage{Wall: berth.Duration(20 * time.Second)}
		w.Into(&u, berth.Usage{})
		w.End(&u, at(20))

		return time.Duration(u.DeviceUnseen)
	}

	require.Zero(t, unseen(true, 0, 0, 0))
	require.InDelta(t, 19, unseen(false, 0, 0, 0).Seconds(), 1, "never named")
	require.InDelta(t, 4, unseen(true, 4, 8, 0).Seconds(), 0.5, "away while it starts")
	require.InDelta(t, 4, unseen(true, 12, 16, 0).Seconds(), 0.5, "away afterwards")
	require.InDelta(t, 5, unseen(true, 0, 0, 6).Seconds(), 0.5, "the first process was never named")
}
