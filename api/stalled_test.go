package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// stalled is a client of the event stream that does not read.
type stalled struct {
	t    *testing.T
	conn *net.TCPConn
	text *bufio.Scanner
}

// stall connects and reads the beginning, so that the server is at the events.
func (r *running) stall(after string) *stalled {
	r.t.Helper()

	var dialer net.Dialer

	dialed, err := dialer.DialContext(r.t.Context(), "tcp", r.server.Addr())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = dialed.Close() })

	conn := dialed.(*net.TCPConn) //nolint:forcetypeassert // it was dialed as one
	require.NoError(r.t, conn.SetReadBuffer(4<<10))
	require.NoError(r.t, conn.SetReadDeadline(time.Now().Add(time.Minute)))

	if after != "" {
		after = "Last-Event-ID: " + after + "\r\n"
	}

	_, err = fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n%s\r\n", after)
	require.NoError(r.t, err)

	s := &stalled{t: r.t, conn: conn, text: bufio.NewScanner(conn)}
	_, err = s.until("id: ") // where it begins
	require.NoError(r.t, err)

	return s
}

// until reads to the next line that begins so, and returns the rest of it; an
// error when the stream ended before.
func (s *stalled) until(begins string) (string, error) {
	for s.text.Scan() {
		if rest, ok := strings.CutPrefix(s.text.Text(), begins); ok {
			return strings.TrimSpace(rest), nil
		}
	}

	return "", berth.Errorf(berth.KindUnavailable, "the stream ended")
}

// publishMany publishes events of about 2 KB, which together are far more than
// the buffers between two ends of a connection hold.
func publishMany(t *testing.T, store *apitest.Store, n int) {
	t.Helper()
	store.PublishMany(t, n, "trial.state", apitest.NewID(1), "x", `"`+strings.Repeat("x", 2000)+`"`)
}

// Failure 36: a reader that stalls is cut off and delays no other reader. It
// misses nothing: it gets the unread events when it comes back.
func TestStalledReader_LosesNothing(t *testing.T) {
	t.Parallel()

	const events = 6000

	store := apitest.Sample(t)
	r := setup(t, store, func(c *api.Config) { c.Limits.Streams = 2 })

	s := r.stall("")
	well := r.subscribe("/api/v1/events")
	well.block()

	published := time.Now()

	publishMany(t, store, events)

	for i := range events {
		well.requireEvent("change", strconv.Itoa(i+1), "")
	}

	require.Less(t, time.Since(published), 8*time.Second, "the other reader was kept waiting")
	require.NoError(t, well.close())

	// The two places are free again once the server has cut the stalled one.
	require.Eventually(t, func() bool {
		first := r.call("GET", "/api/v1/events", "")
		second := r.call("GET", "/api/v1/events", "")

		defer first.Body.Close()  //nolint:errcheck // only read
		defer second.Body.Close() //nolint:errcheck // the same

		return first.StatusCode == http.StatusOK && second.StatusCode == http.StatusOK
	}, 30*time.Second, 100*time.Millisecond)

	require.NoError(t, s.conn.SetReadBuffer(4<<20)) // from here on it reads normally

	last := 0

	for {
		id, err := s.until("id: ")
		if err != nil {
			break
		}

		got, err := strconv.Atoi(id)
		require.NoError(t, err)
		require.Equal(t, last+1, got, "without a gap")

		last = got
	}

	require.Less(t, last, events, "it was not cut off: make the events larger")

	last-- // the last one may be half of one
	s = r.stall(strconv.Itoa(last))
	require.NoError(t, s.conn.SetReadBuffer(4<<20))

	for want := last + 1; want <= events; want++ {
		id, err := s.until("id: ")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(want), id, "it goes on where it was cut")
	}
}

// Fifty stalled readers cost the server no more than their places.
func TestStalledReader_CostsLittle(t *testing.T) { //nolint:paralleltest // it measures memory
	const readers, events = 50, 6000

	store := apitest.Sample(t)
	r := setup(t, store, func(c *api.Config) { c.Limits.Streams = readers + 1 })
	well := r.subscribe("/api/v1/events")
	well.block()

	for range readers {
		r.stall("")
	}

	before := heap()

	publishMany(t, store, events)

	for i := range events {
		well.requireEvent("change", strconv.Itoa(i+1), "")
	}

	grown := heap() - before
	t.Logf("%d stalled readers: %d KiB", readers, grown>>10)
	require.Less(t, grown, int64(readers<<21), "2 MiB for each, where 0.2 to 1.2 were seen: at most feedKeep events are at hand, whose texts of 4 MiB they share")
}

func heap() int64 {
	var m runtime.MemStats

	runtime.GC()
	runtime.GC() // what pools kept goes with the second
	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc) //nolint:gosec // G115: far below 2^63
}
