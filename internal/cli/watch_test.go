package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
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
			store.Exec("UPDATE attempts SET trial_id = $1 WHERE id = $2", apitest.TrialID(3), apitest.AttemptID(3, 2))
		})
		act("trial 3 runs again", func(id string) {
			store.Exec("UPDATE trials SET state = 'succeeded', value = 0.95, finished_at = started_at + interval '40 seconds' WHERE id = $1", apitest.TrialID(3))
			store.Exec("UPDATE sweeps SET state = 'succeeded', finished_at = now() WHERE id = $1", id)
		})
	})

	result := executeTo(t.Context(), &told, server, "sweep", "submit", "-f", "-", "--wait", "--timeout", "2m")
	acts.Wait()

	require.Zero(t, result.code, result.stderr)
	require.Contains(t, result.stderr, "submitted\n")
	require.Contains(t, result.stderr, "trial 3 runs: attempt 1, measures its shape, reserves 768 MiB; lr=0.01 width=64\n")
	require.Contains(t, result.stderr, "trial 3 runs again: attempt 2, reserves 1,280 MiB; lr=0.01 width=64\n")
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
