package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// TestSubmitAndWait plays a sweep while the command watches it.
func TestSubmitAndWait(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.Exec("UPDATE attempts SET trial_id = $1, number = 2 WHERE id = $2", apitest.TrialID(4), apitest.AttemptID(3, 2)) // until it is played
	server := serve(t, store)

	var (
		acts sync.WaitGroup
		told page
	)

	acts.Go(func() {
		// act changes the store once the command has shown the state before.
		act := func(before string, change func(id string)) {
			for deadline := time.Now().Add(time.Minute); !strings.Contains(told.String(), before); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					return // the command's own deadline ends the test
				}
			}

			id := store.Text("SELECT id::text FROM sweeps WHERE id <> $1", apitest.SweepID)
			change(id)
		}

		act("0/4 done", func(id string) {
			store.Exec("UPDATE sweeps SET state = 'running', started_at = $2 WHERE id = $1", id, apitest.Start)
			store.TrialIs(3, berth.TrialRunning)
			store.Exec("UPDATE trials SET sweep_id = $1 WHERE id = $2", id, apitest.TrialID(3))
		})
		act("trial 3 runs: attempt 1", func(string) {
			store.Exec("UPDATE attempts SET trial_id = $1, stage = 'base' WHERE id = $2", apitest.TrialID(3), apitest.AttemptID(3, 2))
		})
		act("trial 3 runs stage base: attempt 2", func(id string) {
			store.Exec("UPDATE trials SET state = 'succeeded', value = 0.95, finished_at = started_at + interval '40 seconds' WHERE id = $1", apitest.TrialID(3))
			store.Exec("UPDATE sweeps SET state = 'succeeded', finished_at = now() WHERE id = $1", id)
		})
	})

	result := executeTo(t.Context(), &told, server, "sweep", "submit", "-f", "-", "--wait", "--timeout", "2m")
	acts.Wait()

	require.Zero(t, result.code, result.stderr)
	require.Contains(t, result.stderr, "submitted\n")
	require.Contains(t, result.stderr, "trial 3 runs: attempt 1, measures its shape, reserves 768 MiB; lr=0.01 width=64\n")
	require.Contains(t, result.stderr, "trial 3 runs stage base: attempt 2, reserves 1,280 MiB; lr=0.01 width=64\n")
	require.Contains(t, result.stderr, "trial 3 succeeded: val_accuracy 0.95, 40 s, peak 900 MiB of 1,280 MiB; 1/4 done\n")
	require.Contains(t, result.stdout, "best: trial 3, val_accuracy 0.95: lr=0.01 width=64\n")
	require.Contains(t, result.stdout, "\n1 attempt ended as host_oom")
	require.Regexp(t, `\nnext: berth sweep best [0-9a-f]{8} --download   \(the files of trial 3\)\n$`, result.stdout)
}

// TestStreamsGoOn cuts a stream after every event.
func TestStreamsGoOn(t *testing.T) {
	t.Parallel()

	var asked []string

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))

		if len(asked) == 2 { // a proxy without a server behind it
			w.WriteHeader(http.StatusBadGateway)

			return
		}

		fmt.Fprintf(w, "retry: 1\nid: 0\n\n:\n\nevent: change\nid: %d\ndata: {\ndata: }\n\nevent: change\nid: 99\ndata: cut", len(asked))
	}))
	defer server.Close()

	losses := 0
	s := &stream{
		lost: func(error) { losses++ },
		open: func(ctx context.Context, lastID string) (*http.Response, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			request.Header.Set("Last-Event-ID", lastID)

			return server.Client().Do(request)
		},
	}

	var events []serverEvent

	require.NoError(t, s.run(t.Context(), func(e serverEvent) error {
		events = append(events, e)
		if len(events) == 3 {
			return errStreamEnd
		}

		return nil
	}))

	require.Equal(t, []serverEvent{{"change", "{\n}"}, {"change", "{\n}"}, {"change", "{\n}"}}, events)
	require.Equal(t, []string{"", "1", "1", "3"}, asked)
	require.Equal(t, 3, losses)
}

func TestStreamsEndWhenRefused(t *testing.T) {
	t.Parallel()

	server := serve(t, apitest.Sample(t))
	o := &options{server: server, getenv: func(string) string { return "" }, token: "wrong", now: time.Now}
	to, err := o.connect()
	require.NoError(t, err)
	require.Equal(t, ExitAuth, ExitCode(to.events("").run(t.Context(), func(serverEvent) error { return nil })))
}

// doer answers calls without a network, so that time may be faked.
type doer func(path string) (status int, body string)

func (d doer) Do(request *http.Request) (*http.Response, error) {
	status, body := d(request.URL.Path)

	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// After an outage of ten minutes a watcher looks as often as before it: an outage is no
// load that its next look has to spare.
func TestWatch_GoesOnSoonAfterAnOutage(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const outage = 10 * time.Minute

		began, looks := time.Now(), 0
		calls, err := client.NewClient("http://berth", client.WithHTTPClient(doer(func(path string) (int, string) {
			if !strings.HasSuffix(path, "/sweeps/x") {
				return http.StatusOK, `{"data": []}`
			}

			looks++

			switch away := time.Since(began); {
			case looks > 1 && away < outage:
				return http.StatusServiceUnavailable, ""
			case looks > 1 && away > outage+time.Minute:
				return http.StatusOK, `{"id": "x", "state": "succeeded"}`
			default:
				return http.StatusOK, `{"id": "x", "state": "running"}`
			}
		})))
		require.NoError(t, err)

		_, err = (&remote{Client: calls}).watch(t.Context(), "x", func(board) {}, func(error) {})
		require.NoError(t, err)
		require.Less(t, time.Since(began), outage+2*time.Minute)
	})
}

// The result of a sweep is known without its report.
func TestWatch_NeedsNoReport(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.SweepIs(berth.SweepSucceeded)

	server := troubled(t, serve(t, store), func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasSuffix(r.URL.Path, "/report") {
			return false
		}

		w.WriteHeader(http.StatusConflict)

		return true
	})

	result := succeed(t, server, "sweep", "watch", apitest.NewID(1))
	require.Contains(t, result.stdout, "best: trial 2")
	require.Contains(t, result.stdout, "what packing saved is not known")
}
