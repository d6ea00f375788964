package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

const (
	benchStreams = 200
	benchEvents  = 200
	benchGap     = 50 * time.Millisecond // between two events: 20 a second, as a busy sweep
	streamsURL   = "BERTH_BENCH_STREAMS" // of the streams that TestStreamReaders opens
)

// BenchmarkStreams opens 200 event streams against a server with a PostgreSQL that syncs
// its commits, from another process. It measures how long after the start of its
// transaction an event reaches a stream, the server's memory for each stream, and the
// database's transactions per second without streams and with streams of an idle sweep,
// both while events of another sweep go by and on an idle server.
func BenchmarkStreams(b *testing.B) {
	w := newStreamed(b)

	for b.Loop() {
		w.publish(w.busy) // connections and plans
		base := w.publish(w.busy)
		before := memoryInUse()

		all := w.open(b, "/api/v1/events")
		perStream := float64(memoryInUse()-before) / benchStreams / 1024

		lags := all.lags(w.publish(w.busy).at)
		all.close(b)
		require.Len(b, lags, benchStreams*benchEvents, "each stream got each event")

		quiet := w.open(b, "/api/v1/events?sweep_id="+w.quiet)
		beside := w.publish(w.busy)
		rest := w.rest()
		quiet.close(b)

		slices.Sort(lags)
		b.ReportMetric(float64(lags[len(lags)/2].Microseconds())/1000, "lag-p50-ms")
		b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds())/1000, "lag-p99-ms")
		b.ReportMetric(perStream, "KiB/stream")
		b.ReportMetric(base.perSecond, "tx/s-without-streams")
		b.ReportMetric(beside.perSecond, "tx/s-with-quiet-streams")
		b.ReportMetric(rest, "tx/s-at-rest")
	}
}

// streamed is a server that publishes the events written to its database.
type streamed struct {
	url         string
	database    *pgtest.Session
	busy, quiet string // sweeps
	sent        int
}

func newStreamed(b *testing.B) *streamed {
	b.Helper()

	dir, err := os.MkdirTemp("", "berth-bench-") //nolint:usetesting // PostgreSQL's user must pass through its parents
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(b, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	database, err := devstack.StartPostgres(b.Context(), devstack.PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, database.Stop()) })
	require.NoError(b, postgres.Migrate(b.Context(), database.URL))

	store, err := postgres.Open(b.Context(), postgres.Config{URL: database.URL})
	require.NoError(b, err)
	b.Cleanup(store.Close)

	log := slog.New(slog.DiscardHandler)
	server, err := api.New(api.Deps{Store: store, Log: log}, api.Config{
		Address: "127.0.0.1:0", Limits: api.Limits{Streams: 2 * benchStreams},
	})
	require.NoError(b, err)
	require.NoError(b, server.Listen(b.Context()))

	ctx, cancel := context.WithCancel(context.Background())

	var running sync.WaitGroup

	running.Go(func() { _ = server.Run(ctx) })
	running.Go(func() { _ = (&api.Publisher{Outbox: store, Log: log}).Run(ctx) })
	b.Cleanup(func() { cancel(); running.Wait() })

	w := &streamed{url: "http://" + server.Addr(), busy: uuid.NewString(), quiet: uuid.NewString()}
	w.database = pgtest.Connect(b, database.URL)

	decoded, err := spec.Decode([]byte(apitest.SweepFile), "")
	require.NoError(b, err)

	for _, id := range []string{w.busy, w.quiet} {
		_, _, err := store.CreateSweep(b.Context(), berth.NewSweep{ID: id, Spec: decoded, ImageDigest: "x@sha256:1", CreatedBy: "bench"})
		require.NoError(b, err)
	}

	return w
}

// published is when events were written, by their payload, and the cost.
type published struct {
	at        map[int]time.Time
	perSecond float64 // transactions a second, without the events' own
}

// publish writes events of a sweep, one after the other.
func (w *streamed) publish(sweep string) published {
	p := published{at: make(map[int]time.Time, benchEvents)}
	before := w.transactions()
	begun, gap := time.Now(), time.NewTicker(benchGap)

	defer gap.Stop()

	for range benchEvents {
		<-gap.C

		w.sent++
		p.at[w.sent] = time.Now()

		w.database.Exec(`WITH e AS (INSERT INTO events (kind, sweep_id, subject, data) VALUES ('bench', $1, 'x', to_jsonb($2::int)))
			SELECT pg_notify('berth_events', '')`, sweep, w.sent)
	}

	after := w.transactions()
	p.perSecond = float64(after-before-benchEvents-2) / time.Since(begun).Seconds() // less its own

	return p
}

// rest is how many transactions a second there are while nothing happens anywhere.
func (w *streamed) rest() float64 {
	before := w.transactions()
	begun := time.Now()

	w.database.Exec("SELECT pg_sleep(5)")

	after := w.transactions()

	return float64(after-before-3) / time.Since(begun).Seconds() // less its own
}

// transactions counts the database's transactions. A connection reports its own at most a
// second late.
func (w *streamed) transactions() int64 {
	w.database.Exec("SELECT pg_sleep(1.2)")

	return w.database.Int("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")
}

// memoryInUse is the size of this process's heap and stacks after a collection.
func memoryInUse() int64 {
	var m runtime.MemStats

	runtime.GC()
	runtime.GC() // objects that the first one finalized
	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // G115: far below 2^63
}

// readers are streams that another process reads, so that its memory is not the server's.
type readers struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	mu      sync.Mutex
	got     []receipt
	done    chan struct{}
}

type receipt struct {
	event int
	at    time.Time
}

func (w *streamed) open(b *testing.B, path string) *readers {
	b.Helper()

	r := &readers{done: make(chan struct{})}
	r.command = exec.CommandContext(b.Context(), os.Args[0], "-test.run", "^TestStreamReaders$", "-test.timeout", "10m")
	r.command.Env = append(os.Environ(), streamsURL+"="+w.url+path)
	r.command.Stderr = os.Stderr

	stdout, err := r.command.StdoutPipe()
	require.NoError(b, err)
	r.stdin, err = r.command.StdinPipe()
	require.NoError(b, err)
	require.NoError(b, r.command.Start())

	lines := bufio.NewScanner(stdout)
	require.True(b, lines.Scan())
	require.Equal(b, "open", lines.Text())

	go func() {
		defer close(r.done)

		for lines.Scan() {
			event, at, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.Atoi(event)
			nanoseconds, bad := strconv.ParseInt(at, 10, 64)

			if err == nil && bad == nil {
				r.mu.Lock()
				r.got = append(r.got, receipt{n, time.Unix(0, nanoseconds)})
				r.mu.Unlock()
			}
		}
	}()

	return r
}

// lags waits for the sent events, and returns how long each receipt came after
// its event.
func (r *readers) lags(sent map[int]time.Time) (lags []time.Duration) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) { // timed anyway
		r.mu.Lock()
		n := len(r.got)
		r.mu.Unlock()

		if n >= benchStreams*len(sent) {
			break
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	for _, got := range r.got {
		if at, ours := sent[got.event]; ours {
			lags = append(lags, got.at.Sub(at))
		}
	}

	return lags
}

func (r *readers) close(b *testing.B) {
	b.Helper()
	require.NoError(b, r.stdin.Close())
	<-r.done
	require.NoError(b, r.command.Wait())
}

// TestStreamReaders is the other process of BenchmarkStreams: it says on standard output
// when each event came, until its standard input ends.
func TestStreamReaders(t *testing.T) {
	t.Parallel()

	url := os.Getenv(streamsURL)
	if url == "" {
		t.Skip("only for BenchmarkStreams")
	}

	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{ReadBufferSize: 1 << 10}}
	out := make(chan string, 1<<16)

	var reading sync.WaitGroup

	for range benchStreams {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(t, err)

		response, err := client.Do(request)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)

		reading.Go(func() {
			defer response.Body.Close() //nolint:errcheck // only read

			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				_, data, found := strings.Cut(lines.Text(), `"data":`)
				if n, _, ends := strings.Cut(data, ","); found && ends {
					out <- n + " " + strconv.FormatInt(time.Now().UnixNano(), 10)
				}
			}
		})
	}

	fmt.Println("open") //nolint:forbidigo // the other process reads it

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)

		cancel()
		reading.Wait()
		client.CloseIdleConnections()

		close(out)
	}()

	for line := range out {
		fmt.Println(line) //nolint:forbidigo // the same
	}
}
