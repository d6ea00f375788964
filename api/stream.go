package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const (
	// streamWrite is how long one write may take: a client that does not read
	// any more is gone.
	streamWrite = 10 * time.Second
	// streamIdle is after how long without another a sign shows that the stream lives.
	streamIdle = 15 * time.Second
	// streamRetry is when a browser connects again.
	streamRetry = 3 * time.Second
)

// stream writes server-sent events by hand: gin's own helper needs an obsolete
// interface, and the server's write timeout would cut it.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newStream begins the answer, so that the caller sees at once that it is
// connected. A reconnecting caller sends the position back.
func newStream(w http.ResponseWriter, at int64) (*stream, error) {
	s := &stream{w: w, control: http.NewResponseController(w)}

	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must not collect
	w.WriteHeader(http.StatusOK)

	_ = s.control.SetReadDeadline(time.Time{}) // the request was read; a recorder has no deadlines

	return s, s.write(fmt.Sprintf("retry: %d\nid: %d\n\n", streamRetry.Milliseconds(), at))
}

// event writes one event; an empty id leaves the caller's position as it is.
func (s *stream) event(kind, id string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}

	if id != "" {
		id = "id: " + id + "\n"
	}

	return s.write("event: " + kind + "\n" + id + "data: " + string(data) + "\n\n")
}

// position is the id of an event.
func position(at int64) string { return strconv.FormatInt(at, 10) }

// sendAlive shows that the stream lives: pages see no comments, and to them a silently
// dead connection looks like an idle one. It also advances the id that a
// reconnecting caller sends back: the last id of a stream with rare events would
// otherwise be gone from memory, and then from the database.
func (s *stream) sendAlive(at int64) error { return s.event("alive", position(at), struct{}{}) }

func (s *stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) // moved with every write

	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}

	return s.control.Flush()
}
