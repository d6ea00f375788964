package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// subscription reads events as "kind id data".
type subscription struct {
	t     *testing.T
	lines *bufio.Scanner
	close func() error
}

func (r *running) subscribe(path string, headers ...string) *subscription {
	r.t.Helper()

	response := r.call("GET", path, "", headers...)
	require.Equal(r.t, http.StatusOK, response.StatusCode)
	require.Equal(r.t, "text/event-stream; charset=utf-8", response.Header.Get("Content-Type"))

	return &subscription{t: r.t, lines: bufio.NewScanner(response.Body), close: response.Body.Close}
}

// block is the next lines up to an empty one; empty at the end of the stream.
func (s *subscription) block() []string {
	var block []string

	for s.lines.Scan() {
		if s.lines.Text() == "" {
			return block
		}

		block = append(block, s.lines.Text())
	}

	return nil
}

func (s *subscription) requireEvent(kind, id, data string) {
	s.t.Helper()

	block := s.block()
	require.NotEmpty(s.t, block)
	require.Contains(s.t, block, "event: "+kind)

	if id != "" {
		require.Contains(s.t, block, "id: "+id)
	}

	require.Contains(s.t, block[len(block)-1], data)
}

func TestEventsGoOnWhereTheyWereCut(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	for i := range 5 {
		store.Publish(t, "trial.state", apitest.NewID(1), apitest.NewID(i), "running")
	}

	store.AddSweep(3, "other", berth.SweepRunning)
	r := setup(t, store)

	first := r.subscribe("/api/v1/events")
	require.Equal(t, []string{"retry: 3000", "id: 5"}, first.block()) // from now on

	store.Publish(t, "trial.state", apitest.NewID(1), "a", "succeeded")
	first.requireEvent("change", "6", `"subject":"a"`)
	require.NoError(t, first.close())

	store.Publish(t, "trial.state", apitest.NewID(1), "b", "succeeded")
	store.Publish(t, "trial.state", apitest.NewID(2), "c", "succeeded")

	again := r.subscribe("/api/v1/events", "Last-Event-ID: 6")
	require.Equal(t, []string{"retry: 3000", "id: 6"}, again.block())
	again.requireEvent("change", "7", `"data":"succeeded"`)
	again.requireEvent("change", "8", `"subject":"c"`)

	only := r.subscribe("/api/v1/events?sweep_id="+apitest.NewID(1)[:6], "Last-Event-ID: 5")
	only.block()
	only.requireEvent("change", "6", `"subject":"a"`)
	only.requireEvent("change", "7", `"subject":"b"`)

	store.Publish(t, "trial.state", apitest.NewID(2), "d", "succeeded")
	store.Publish(t, "trial.state", apitest.NewID(1), "e", "succeeded")
	only.requireEvent("change", "10", `"subject":"e"`)

	both := r.subscribe("/api/v1/events?after=7&sweep_id=" + apitest.NewID(1)[:6] + "&sweep_id=" + apitest.NewID(3))
	require.Equal(t, []string{"retry: 3000", "id: 7"}, both.block())
	both.requireEvent("change", "10", `"subject":"e"`)

	store.Publish(t, "trial.state", apitest.NewID(2), "f", "succeeded")
	store.Publish(t, "trial.state", apitest.NewID(3), "g", "succeeded")
	both.requireEvent("change", "12", `"subject":"g"`)

	wins := r.subscribe("/api/v1/events?after=0", "Last-Event-ID: 11")
	require.Equal(t, []string{"retry: 3000", "id: 11"}, wins.block())

	// One that is gone ends no stream of others.
	rest := r.subscribe("/api/v1/events?after=7&sweep_id=" + apitest.NewID(77) + "&sweep_id=" + apitest.NewID(3))
	require.Equal(t, []string{"retry: 3000", "id: 7"}, rest.block())

	for _, query := range []string{"?after=x", "?after=-1", "?sweep_id=", "?sweep_id=" + apitest.NewID(77)} {
		status, _ := r.text("GET", "/api/v1/events"+query, "")
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, status, query)
	}
}

func TestEventsThatAreNotKept(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.Exec("SELECT setval('event_sequence', 100)")
	store.Publish(t, "trial.state", apitest.NewID(1), "a", "running")

	r := setup(t, store)

	for _, id := range []string{"7", "99", "5000", "nonsense"} {
		s := r.subscribe("/api/v1/events", "Last-Event-ID: "+id)
		s.block()
		s.requireEvent("reset", "101", "read everything anew")
		require.NoError(t, s.close())
	}

	s := r.subscribe("/api/v1/events", "Last-Event-ID: 100")
	s.block()
	s.requireEvent("change", "101", `"subject":"a"`)
}

// Failure 9: the database was restored from an older copy.
func TestEventsOfAnOlderDatabase(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	for range 5 {
		store.Publish(t, "trial.state", apitest.NewID(1), "a", "running")
	}

	store.Exec("DELETE FROM events WHERE sequence > 2; SELECT setval('event_sequence', 2)")
	store.Publish(t, "trial.state", apitest.NewID(1), "b", "running")

	r := setup(t, store) // a restore asks to start the server again

	s := r.subscribe("/api/v1/events", "Last-Event-ID: 5")
	s.block()
	s.requireEvent("reset", "3", "read everything anew")
	store.Publish(t, "trial.state", apitest.NewID(1), "c", "running")
	s.requireEvent("change", "4", `"subject":"c"`)
}

func TestStopEndsStreams(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.AttemptRuns(apitest.AttemptID(1, 1))
	r := setup(t, store)

	events := r.subscribe("/api/v1/events")
	log := r.subscribe("/api/v1/attempts/" + apitest.AttemptID(1, 1) + "/log?follow=true")
	events.block()
	log.block()

	begin := time.Now()
	require.NoError(t, r.stop())
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Empty(t, events.block())
	require.Empty(t, log.block())
}

// written has an attempt that runs, and has printed a line.
func written(t *testing.T) (store *apitest.Store, id string) {
	t.Helper()

	store, id = apitest.Sample(t), apitest.AttemptID(1, 1)
	store.AttemptRuns(id)
	store.Write(id, "one\n")

	return store, id
}

// Keras draws its bars with characters of three bytes: a page that ends within one leaves it for the next.
func TestLogPages_KeepCharacters(t *testing.T) {
	t.Parallel()

	store, id := written(t)
	want := "one\n" + strings.Repeat("━━━━━\n", 3) + "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"

	for line := range strings.Lines(strings.TrimPrefix(want, "one\n")) {
		store.Write(id, line)
	}

	r := setup(t, store)

	for _, limit := range []int{1, 4, 5, 6, 7, 8, 9, 64, 65} {
		got := ""

		for offset := int64(0); ; {
			_, body := r.text("GET", fmt.Sprintf("/api/v1/attempts/%s/log?limit=%d&offset=%d", id, limit, offset), "", "Accept: application/json")

			var page openapi.LogPage
			require.NoError(t, json.Unmarshal([]byte(body), &page))

			for _, piece := range page.Data {
				got += piece.Text
			}

			if page.NextOffset <= offset {
				break
			}

			offset = page.NextOffset
		}

		if limit > 3 {
			require.Contains(t, got, "one\n━━━━━\n━━━━━\n━━━━━\n", "limit %d", limit)
		}

		_, bytes := r.text("GET", fmt.Sprintf("/api/v1/attempts/%s/log?limit=%d", id, limit), "")
		require.Len(t, bytes, min(limit, len(want)), "clients go by the length of bytes")
	}
}

func TestFollowLog(t *testing.T) {
	t.Parallel()

	store, id := written(t)
	r := setup(t, store)

	s := r.subscribe("/api/v1/attempts/" + id + "/log?follow=true")
	require.Equal(t, []string{"retry: 3000", "id: 0"}, s.block())
	s.requireEvent("piece", "4", `"text":"one\n"`)
	store.Write(id, "two\n")
	s.requireEvent("piece", "8", `"text":"two\n"`)
	require.NoError(t, s.close())

	store.Write(id, "three\n")

	s = r.subscribe("/api/v1/attempts/"+id+"/log?follow=true", "Last-Event-ID: 6") // in the middle of a piece
	s.block()
	s.requireEvent("piece", "8", `"text":"o\n"`)
	s.requireEvent("piece", "14", `"text":"three\n"`)
	store.AttemptEnds(id)
	s.requireEvent("end", "", `{"failure_kind":"ok","state":"finished"}`)
	require.Empty(t, s.block())
}

// A page that follows a log sees no comments either: without an event, a connection
// that died looks like a program that writes nothing.
func TestFollowLog_SaysThatItLives(t *testing.T) {
	t.Parallel()

	store, id := written(t)
	r := setup(t, store)
	api.SetIdle(r.server, 10*time.Millisecond)

	s := r.subscribe("/api/v1/attempts/" + id + "/log?follow=true")
	s.block()
	s.requireEvent("piece", "4", `"text":"one\n"`)
	s.requireEvent("alive", "4", "{}")
	store.Write(id, "two\n")

	for block := s.block(); !slices.Contains(block, "event: piece"); block = s.block() {
		require.Contains(t, block, "event: alive")
	}

	s.requireEvent("alive", "8", "{}")
}

// A token that is revoked ends its streams, also that of a log that grows all the
// time.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.AttemptRuns(apitest.AttemptID(1, 1))
	id := apitest.AttemptID(1, 1)
	viewer := token(t, store, "viewer")
	r := setup(t, store)
	api.SetRecheck(r.server, 50*time.Millisecond)

	events := r.subscribe("/api/v1/events", viewer)
	log := r.subscribe("/api/v1/attempts/"+id+"/log?follow=true", viewer)

	events.block()
	log.block()
	require.NoError(t, store.RevokeToken(t.Context(), tokenID(store, "viewer")))
	require.Empty(t, events.block())

	for begin := time.Now(); log.block() != nil; {
		require.Less(t, time.Since(begin), 10*time.Second)
		store.Write(id, "more\n")
	}
}

func TestDocs_AreTheDescription(t *testing.T) {
	t.Parallel()

	_, r := sampled(t)
	require.Equal(t, r.want(http.StatusOK, "GET", "/api/v1/openapi.yaml", ""), r.want(http.StatusOK, "GET", "/api/docs", ""))
}

// Pages see no comments: an event shows them that a connection lives, past the
// events of other sweeps.
func TestEvents_SayThatTheyLive(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	api.SetIdle(r.server, 10*time.Millisecond)

	only := r.subscribe("/api/v1/events?sweep_id=" + apitest.NewID(1))
	require.Equal(t, []string{"retry: 3000", "id: 0"}, only.block())
	only.requireEvent("alive", "0", "{}")

	store.Publish(t, "trial.state", apitest.NewID(2), "a", "running")

	for block := only.block(); !slices.Contains(block, "id: 1"); block = only.block() {
		require.Contains(t, block, "event: alive")
	}
}
