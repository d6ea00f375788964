package gpu

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// cards is a Driver of one card whose reading the test sets.
type cards struct {
	Driver

	reading Reading
	err     error
	asked   int

	activity Activity
	measured int
}

func (c *cards) Activity(context.Context, string) (Activity, error) {
	c.measured++

	return c.activity, c.err
}

func (c *cards) Read(context.Context, string) (Reading, error) {
	c.asked++

	return c.reading, c.err
}

func id(letter string) string { return strings.Repeat(letter, 64) }

func inContainers(letters ...string) fstest.MapFS {
	proc := fstest.MapFS{}
	for i, letter := range letters {
		proc[strconv.Itoa(i+1)+"/cgroup"] = &fstest.MapFile{Data: []byte("0::/system.slice/docker-" + id(letter) + ".scope\n")}
	}

	return proc
}

// Two processes of one container, one of another, one of no container, one of a
// container that is not ours.
func TestMeter(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		driver := &cards{reading: Reading{
			TotalBytes: 1000, FreeBytes: 400, UsedBytes: 600, ProcessesKnown: true,
			Processes: []Process{{PID: 1, Bytes: 100}, {PID: 2, Bytes: 20, MPS: true}, {PID: 3, Bytes: 3}, {PID: 4, Bytes: 70}, {PID: 5, Bytes: 300}},
		}}
		m := NewMeter(driver, inContainers("a", "a", "b", "c"))
		reserved := map[string]int64{id("a"): 90, id("b"): 50, id("unused"): 40}

		use, err := m.Container(t.Context(), id("a"), "GPU-1")
		require.NoError(t, err)
		require.Equal(t, time.Now(), use.At)
		require.Equal(t, Use{At: use.At, Bytes: 120, FreeBytes: 400, PIDs: []int{1, 2}, Clients: 1, Beside: []string{id("b"), id("c"), ""}}, use)

		use, err = m.Container(t.Context(), id("d"), "GPU-1")
		require.NoError(t, err)
		require.Equal(t, Use{At: use.At, FreeBytes: 400, Beside: []string{id("a"), id("b"), id("c"), ""}}, use, "it has not touched the card")

		free, err := m.FreeBeside(t.Context(), "GPU-1", reserved)
		require.NoError(t, err)
		require.Equal(t, int64(400+90+3), free, "what the first took beyond its reservation others cannot have")
		require.Equal(t, 1, driver.asked, "all within a moment are one question")

		time.Sleep(freshFor + time.Millisecond)

		driver.reading.Processes = []Process{{PID: 3, Bytes: 0}}
		_, err = m.Container(t.Context(), id("b"), "GPU-1")
		require.ErrorIs(t, err, ErrUnsupported, "what it holds is not known, which is not nothing")
		require.Equal(t, 2, driver.asked)
	})
}

// A PID that comes again may be another container's process.
func TestMeter_ReusedPID(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		driver := &cards{reading: Reading{FreeBytes: 1, ProcessesKnown: true, Processes: []Process{{PID: 1, Bytes: 5}}}}
		proc := inContainers("a")
		m := NewMeter(driver, proc)

		look := func(letter string) int64 {
			t.Helper()
			time.Sleep(freshFor + time.Millisecond)

			use, err := m.Container(t.Context(), id(letter), "GPU-1")
			require.NoError(t, err)

			return use.Bytes
		}
		require.Equal(t, int64(5), look("a"))

		driver.reading.Processes = nil
		require.Zero(t, look("a"))

		proc["1/cgroup"] = inContainers("b")["1/cgroup"]
		driver.reading.Processes = []Process{{PID: 1, Bytes: 7}}
		require.Equal(t, int64(7), look("b"))
		require.Zero(t, look("a"))
	})
}

// An MPS server holds memory of its card and computes nothing: it is no neighbour,
// wherever its daemon runs.
func TestMeter_MPSServer(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		driver := &cards{reading: Reading{FreeBytes: 400, ProcessesKnown: true, Processes: []Process{{PID: 1, Bytes: 100, MPS: true}, {PID: 2, Bytes: 66}, {PID: 3, Bytes: 66}}}}
		proc := inContainers("a", "worker")
		proc["2/comm"] = &fstest.MapFile{Data: []byte("nvidia-cuda-mps\n")}
		proc["3/comm"] = &fstest.MapFile{Data: []byte("nvidia-cuda-mps\n")}
		m := NewMeter(driver, proc)

		for range 2 { // the second time it is known
			use, err := m.Container(t.Context(), id("a"), "GPU-1")
			require.NoError(t, err)
			require.Equal(t, Use{At: use.At, Bytes: 100, FreeBytes: 400, PIDs: []int{1}, Clients: 1}, use)
			time.Sleep(freshFor + time.Millisecond)
		}

		proc["2/comm"] = &fstest.MapFile{Data: []byte("python3\n")}
		driver.reading.Processes = driver.reading.Processes[:1]
		_, err := m.Container(t.Context(), id("a"), "GPU-1")
		require.NoError(t, err)
		time.Sleep(freshFor + time.Millisecond)

		driver.reading.Processes = []Process{{PID: 1, Bytes: 100}, {PID: 2, Bytes: 5}}
		use, err := m.Container(t.Context(), id("a"), "GPU-1")
		require.NoError(t, err)
		require.Len(t, use.Beside, 1, "the PID is another process' now")
	})
}

func TestMeter_Errors(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		driver := &cards{err: ErrLost}
		m := NewMeter(driver, inContainers())

		_, err := m.Container(t.Context(), id("a"), "GPU-1")
		require.ErrorIs(t, err, ErrLost)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(freshFor + time.Millisecond)

		_, err = m.Container(ctx, id("a"), "GPU-1")
		require.ErrorIs(t, err, context.Canceled)

		driver.err = nil
		driver.reading = Reading{FreeBytes: 9}

		free, err := m.FreeBeside(t.Context(), "GPU-1", nil)
		require.NoError(t, err, "a caller that went away is no word about the card")
		require.Equal(t, int64(9), free)

		_, err = m.Container(t.Context(), id("a"), "GPU-1")
		require.ErrorIs(t, err, ErrUnsupported, "processes are not listed here")
	})
}

// Activity is measured once a second, for any number of callers.
func TestMeter_Activity(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		driver := &cards{activity: Activity{SMActivity: 0.3}}
		m := NewMeter(driver, nil)

		for second := range 3 {
			for range 24 {
				a, err := m.Activity(t.Context(), "GPU-1")
				require.NoError(t, err)
				require.Equal(t, driver.activity, a)
			}

			require.Equal(t, second+1, driver.measured)
			time.Sleep(activityFor + time.Millisecond)
		}

		driver.err = ErrUnsupported
		_, err := m.Activity(t.Context(), "GPU-1")
		require.ErrorIs(t, err, ErrUnsupported)
	})
}

// What a process that starts in one of our containers holds is not held outside Berth; one
// of another program that starts may hold it all.
func TestMeter_FreeBesideOneThatStarts(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		processes []Process
		want      int64
	}{
		"ours alone":               {[]Process{{PID: 1}}, 1000},
		"beside another of ours":   {[]Process{{PID: 1}, {PID: 2, Bytes: 100}}, 1000},
		"less than is not known":   {[]Process{{PID: 1, Bytes: 300}, {PID: 2}}, 550 + 300 + 100},
		"beside a stranger":        {[]Process{{PID: 1}, {PID: 9, Bytes: 200}}, 550 + 250},
		"a stranger that starts":   {[]Process{{PID: 1, Bytes: 100}, {PID: 9}}, 550 + 100},
		"ours and one that is not": {[]Process{{PID: 1}, {PID: 9}}, 550},
	} {
		synctest.Test(t, func(t *testing.T) {
			driver := &cards{reading: Reading{TotalBytes: 1000, FreeBytes: 550, UsedBytes: 450, ProcessesKnown: true, Processes: tt.processes}}
			m := NewMeter(driver, inContainers("a", "b"))

			free, err := m.FreeBeside(t.Context(), "GPU-1", map[string]int64{id("a"): 500, id("b"): 100})
			require.NoError(t, err)
			require.Equal(t, tt.want, free, name)
		})
	}
}
