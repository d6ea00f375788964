//go:build cgo && linux

package nvml

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// hurry is the patience of callers where the driver hangs.
const hurry = 300 * time.Millisecond

// requireSilence requires the error of a driver that does not answer.
func requireSilence(t *testing.T, err error, doing string) {
	t.Helper()
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "the NVIDIA driver does not answer since "+strconv.Itoa(time.Now().Year()))
	require.ErrorContains(t, err, doing)
}

// unhang lets the library's calls return when the test is over, before the
// later handles are closed.
func unhang(t *testing.T, f fake, function string) {
	t.Helper()
	t.Cleanup(func() {
		if err := os.Remove(f.dir + "/fault." + function); !os.IsNotExist(err) {
			require.NoError(t, err)
		}
	})
}

func TestHang(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, f fake) {
		d := open(t, Config{Patience: hurry})
		_, err := d.Inventory(t.Context())
		require.NoError(t, err)

		f.set(t, "fault.nvmlDeviceGetMemoryInfo_v2", "hang")
		unhang(t, f, "nvmlDeviceGetMemoryInfo_v2")

		before := f.count(t, "nvmlDeviceGetMemoryInfo_v2")
		_, err = d.Read(t.Context(), h200)
		requireSilence(t, err, `(reading GPU "`+h200)

		// A thousand further calls fail at once, and cost nothing: were each to wait
		// they would take five minutes.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()

		for range 250 {
			_, err = d.Read(ctx, h200)
			requireSilence(t, err, "reading GPU")
			_, err = d.Read(ctx, t4)
			requireSilence(t, err, "reading GPU")
			_, err = d.Activity(ctx, h200)
			requireSilence(t, err, "measuring the activity")
			_, err = d.Inventory(ctx)
			requireSilence(t, err, "listing GPUs")
		}

		require.NoError(t, ctx.Err())
		require.Equal(t, before+1, f.count(t, "nvmlDeviceGetMemoryInfo_v2"), "no call waits in the library but the first")

		// Events still arrive.
		f.send(t, 0, xid, 119)
		require.Equal(t, gpu.Event{UUID: h200, XID: 119}, wait(t, d))

		f.clear(t, "fault.nvmlDeviceGetMemoryInfo_v2")
		require.Eventually(t, func() bool {
			_, err := d.Read(t.Context(), h200)

			return err == nil
		}, patience, tick)
		require.Equal(t, healthyReading(), read(t, d, h200))
	})
}

// A caller who has less time than the patience gets its own cause, and since when.
func TestHang_ContextEnds(t *testing.T) {
	t.Parallel()
	inChild(t, nil, map[string]string{"fault.nvmlDeviceGetHandleByUUID": "hang"}, func(t *testing.T, f fake) {
		d := open(t, Config{Patience: time.Hour})
		unhang(t, f, "nvmlDeviceGetHandleByUUID")

		for _, doing := range []string{"in the call", "behind it"} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()

			_, err := d.Read(ctx, h200)
			require.ErrorIs(t, err, context.DeadlineExceeded, doing)
			require.ErrorContains(t, err, "no answer of the NVIDIA driver since ", doing)
		}
	})
}

func TestHang_Open(t *testing.T) {
	t.Parallel()
	inChild(t, nil, map[string]string{"fault.nvmlInit_v2": "hang"}, func(t *testing.T, f fake) {
		unhang(t, f, "nvmlInit_v2")

		config := Config{LibraryPath: os.Getenv(libraryEnv), Patience: hurry}

		_, err := Open(t.Context(), config)
		requireSilence(t, err, "(starting NVIDIA's library)")
		require.Equal(t, []string{"nvmlInit_v2"}, f.calls(t))

		// A late handle is closed again, and opening works.
		f.clear(t, "fault.nvmlInit_v2")
		require.Eventually(t, func() bool { return f.count(t, "nvmlShutdown") == 1 }, patience, tick)

		var d gpu.Driver

		require.Eventually(t, func() bool {
			d, err = Open(t.Context(), Config{LibraryPath: config.LibraryPath})

			return err == nil
		}, patience, tick)
		require.Equal(t, healthyReading(), read(t, d, h200))
		require.NoError(t, d.Close())
	})
}

// Close does not wait for ever, and its leftovers end by themselves.
func TestHang_Close(t *testing.T) {
	t.Parallel()

	for _, function := range []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlEventSetWait_v2", "nvmlShutdown", "nvmlGpmSampleFree"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			inChild(t, nil, nil, func(t *testing.T, f fake) {
				unhang(t, f, function)

				config := Config{LibraryPath: os.Getenv(libraryEnv), Patience: hurry}
				d, err := Open(t.Context(), config)
				require.NoError(t, err)

				_, err = d.Activity(t.Context(), h200)
				require.NoError(t, err)
				f.send(t, 0, xid, 43)
				wait(t, d)

				f.set(t, "fault."+function, "hang")

				switch function {
				case "nvmlDeviceGetMemoryInfo_v2":
					_, err = d.Read(t.Context(), h200)
					requireSilence(t, err, "reading GPU")
				case "nvmlEventSetWait_v2":
					_, err = d.WaitEvent(t.Context())
					requireSilence(t, err, "waiting for events of GPUs")
					require.Equal(t, healthyReading(), read(t, d, h200), "questions are answered meanwhile")
				}

				err = d.Close()
				require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "closing NVIDIA's library")

				f.clear(t, "fault."+function)
				require.Eventually(t, func() bool { return f.count(t, "left 0 samples 0 sets") == 1 }, patience, tick)
				require.Eventually(t, func() bool {
					d, err = Open(t.Context(), config)

					return err == nil
				}, patience, tick)
				require.Equal(t, healthyReading(), read(t, d, h200))
				require.NoError(t, d.Close())
			})
		})
	}
}
