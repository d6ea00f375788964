package runtrial

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// readings answers each question with the same reading, and closes the channel once
// there were several.
func readings(reading DeviceReading) (ReadDevice, <-chan struct{}) {
	var n atomic.Int32

	enough := make(chan struct{})

	return func(context.Context, berth.Container, string) (DeviceReading, error) {
		i := n.Add(1)
		if i == 4 {
			close(enough)
		}

		reading := reading
		if !reading.Activity.At.IsZero() {
			reading.Activity.At = reading.Activity.At.Add(time.Duration(i) * time.Second)
		}

		return reading, nil
	}, enough
}

// What a GPU does while a program outside Berth is on it is not the attempt's.
func TestRun_BesideAProgramOutsideBerth(t *testing.T) {
	t.Parallel()

	for name, beside := range map[string][]string{"alone": nil, "beside it": {""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			read, enough := readings(DeviceReading{
				UsedBytes: 1 << 30, FreeBytes: 8 << 30, Beside: beside, Activity: GPUActivity{At: time.Unix(1, 0), SM: 0.8},
			})
			r.onGPU(t, read)

			ended := r.start(t.Context(), r.order())
			box := r.docks.started(t)
			<-enough
			box.Print(berth.Stdout, "acc=0.5\n")
			box.Exit(0)

			u := await(t, ended).outcome.Usage
			if beside == nil {
				require.Equal(t, int64(800), u.DeviceActivity.SMMilli)

				return
			}

			require.Zero(t, u.DeviceActivity)
			require.Zero(t, u.DeviceActive)
			require.Positive(t, u.DeviceUnknown)
		})
	}
}
