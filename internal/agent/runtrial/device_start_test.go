package runtrial

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/scheduler/memory"
)

// scene is what an attempt's GPU shows until so long after the start.
type scene struct {
	until   time.Duration
	reading sampling.DeviceReading
	err     error
}

// plays shows one scene after the other.
func plays(start time.Time, scenes ...scene) ReadDevice {
	return func(context.Context, berth.Container, string) (sampling.DeviceReading, error) {
		for _, s := range scenes {
			if time.Since(start) < s.until {
				return s.reading, s.err
			}
		}

		last := scenes[len(scenes)-1]

		return last.reading, last.err
	}
}

var errUnnamed = errors.New("the driver does not say what each process holds")

// Processes of one container that start and end beside each other: a start is made good
// when each of them was named.
func TestRun_SeveralProcessesOnItsGPU(t *testing.T) {
	t.Parallel()

	// shows has processes until a second, and what the driver names of them in MiB; unnamed says
	// that it does not name all.
	shows := func(until int, bytes int64, unnamed bool, pids ...int) scene {
		reading := sampling.DeviceReading{UsedBytes: bytes << 20, FreeBytes: 8 << 30, PIDs: pids, Unnamed: unnamed}
		if unnamed {
			return scene{time.Duration(until) * time.Second, reading, errUnnamed}
		}

		return scene{time.Duration(until) * time.Second, reading, nil}
	}

	for name, c := range map[string]struct {
		scenes []scene
		peak   int64 // that the driver named, at least; MiB
		unseen bool  // something was never named
	}{
		"the first ends while the second has no amount": {
			[]scene{shows(2, 0, false), shows(4, 0, true, 1, 2), shows(7, 900, true, 1, 2), shows(9, 0, true, 2), shows(20, 300, false, 2)}, 900, true,
		},
		"the first is never named": {[]scene{shows(2, 0, false), shows(7, 0, true, 1), shows(9, 0, true, 2), shows(20, 300, false, 2)}, 300, true},
		"all are named in the end": {
			[]scene{shows(2, 0, false), shows(5, 0, true, 1), shows(10, 300, false, 1), shows(13, 300, true, 1, 2), shows(20, 600, false, 1, 2)}, 600, false,
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r, _ := metered(t)
			r.onGPU(t, plays(time.Now(), c.scenes...))
			box, ended := r.begin(t)
			time.Sleep(19900 * time.Millisecond)

			u := ends(t, box, ended, "acc=0.5\n", 0).Usage
			_, device := mostOf(r.books.memory(t))
			require.Equal(t, c.peak, u.DevicePeakBytes>>20, "what the driver named, at least")
			require.Equal(t, c.peak, device>>20, "the curve has the attempt's peak")
			require.Equal(t, !c.unseen, u.DeviceMeasured())
		})
	}
}

// The framework's own word is more than any reading showed.
func TestRun_FrameworkSaysMoreThanAnyReading(t *testing.T) {
	t.Parallel()

	for name, named := range map[string]int64{"grew in its last second": 300 << 20, "came and went between two readings": 0} {
		bubble(t, name, func(t *testing.T) {
			r, _ := metered(t)
			r.wants(berth.DeviceGPU)
			r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })
			r.onGPU(t, plays(time.Now(), scene{4 * time.Second, sampling.DeviceReading{FreeBytes: 8 << 30}, nil}, scene{time.Hour, sampling.DeviceReading{UsedBytes: named, FreeBytes: 8 << 30}, nil}))

			box, ended := r.begin(t)
			appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), epochs+`{"type":"memory","device_peak_bytes":1572864000,"frameworks":{"tensorflow":1572864000}}`+"\n")
			time.Sleep(6 * time.Second)
			got := ends(t, box, ended, "", 0)

			u := got.Usage
			f, _ := memory.Observe(&berth.Footprint{}, "key", berth.FootprintFull, got.Kind, u, berth.Demand{MemoryBytes: 1, DeviceBytes: 2 << 30})
			require.Equal(t, berth.FailureOK, got.Kind, got.Message)
			require.False(t, memory.Known(&f) && memory.ReserveDevice(f) < u.FrameworkPeakBytes)
		})
	}
}
