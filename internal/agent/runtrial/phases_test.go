package runtrial

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

// A phase has what is held when it begins, and what comes until the next one.
func TestDeviceWatch_Phases(t *testing.T) {
	t.Parallel()

	start := time.Unix(0, 0)
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }
	began := []phaseAt{{at(10), phaseTraining}, {at(20), phaseValidation}, {at(30), phaseTraining}, {at(40), "other"}, {at(50), phaseValidation}, {at(60), "other"}}

	watch := func(before berth.Usage, held ...int64) *deviceWatch {
		w := newDeviceWatch(coverage{startedAt: start, every: 100 * time.Millisecond}, before)
		for i, bytes := range held {
			w.add(DeviceReading{UsedBytes: bytes}, at(float64(i)+0.5))
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

	require.Equal(t, berth.Phases{StartBytes: 300, TrainingBytes: 500, ValidationBytes: 400}, watch(berth.Usage{}, held...).phases(began))
	require.Equal(t, berth.Phases{StartBytes: 300, TrainingBytes: 300}, watch(berth.Usage{}, held[:9]...).phases(began[:1]), "what is held when it begins")
	require.Zero(t, watch(berth.Usage{}, held...).phases(nil), "it said nothing")
	require.Zero(t, watch(berth.Usage{DeviceSamples: 1}, held...).phases(began), "another worker saw a part")
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
		w := newDeviceWatch(coverage{startedAt: start, every: 200 * time.Millisecond}, berth.Usage{})
		for _, after := range c.readings {
			w.add(DeviceReading{UsedBytes: c.used}, start.Add(time.Duration(after)*time.Millisecond))
		}

		u := berth.Usage{Wall: berth.Duration(1400 * time.Millisecond)}
		w.into(&u, berth.Usage{})
		w.end(&u, start.Add(1400*time.Millisecond))
		require.Equal(t, c.measured, u.DeviceMeasured(), name)
	}
}

// A reading that several questions share counts once: copies of it say nothing new.
func TestDeviceWatch_SharedReading(t *testing.T) {
	t.Parallel()

	start := time.Unix(1000, 0)
	w := newDeviceWatch(coverage{startedAt: start, every: 200 * time.Millisecond}, berth.Usage{})

	for range 5 {
		w.add(DeviceReading{}, start.Add(100*time.Millisecond))
	}

	u := berth.Usage{Wall: berth.Duration(time.Second)}
	w.into(&u, berth.Usage{})
	w.end(&u, start.Add(time.Second))
	require.Equal(t, 1, u.DeviceSamples)
	require.False(t, u.DeviceMeasured(), "it may have used the GPU since")
}

// What the shim says of steps is in the attempt's usage, whatever else it says.
func TestShim_Steps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })

		box, ended := r.begin(t)
		appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), epochs+`{"type":"phase","phase":"training","at":10.5}
{"type":"steps","count":3,"seconds":0.06}
{"type":"steps","count":-3,"seconds":6}
{"type":"steps","count":1,"seconds":0.1}
`)
		got := ends(t, box, ended, "", 0)
		require.EqualValues(t, 4, got.Usage.Steps)
		require.Equal(t, berth.Duration(40*time.Millisecond), got.Usage.StepTime)
		require.Zero(t, got.Usage.DevicePhases, "it has no GPU")
	})
}

// When the shim has told all that it tells, what came later belongs to no phase: so none
// is told apart.
func TestShim_MostPhases(t *testing.T) {
	t.Parallel()

	for records, told := range map[int]bool{mostPhases - 1: true, mostPhases: false} {
		s := &shimReport{metrics: metrics.NewSeries(nil, nil, "", berth.MetricsShim)}
		for i := range records {
			s.take([]byte([]string{`{"type":"phase","phase":"training","at":1}`, `{"type":"steps","count":2,"seconds":1}`}[i%2]))
		}

		steps, mean, phases := s.timed()
		require.Equal(t, told, len(phases) > 0, records)
		require.EqualValues(t, records/2*2, steps)
		require.Equal(t, time.Second/2, mean)
	}
}
