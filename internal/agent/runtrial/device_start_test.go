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
