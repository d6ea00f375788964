package api

import (
	"bytes"
	"fmt"
	"net/http"
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
// connected. id, unless empty, is the value that a reconnecting caller sends
// back.
func newStream(w http.ResponseWriter, id string) (*stream, error) {
	s := &stream{w: w, control: http.NewResponseController(w)}

	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must not collect
	w.WriteHeader(http.StatusOK)

	_ = s.control.SetReadDeadline(time.Time{}) // the request was read; a recorder has no deadlines

	text := fmt.Sprintf("retry: %d\n", streamRetry.Milliseconds())
	if id != "" {
		text += "id: " + id + "\n"
	}

	return s, s.write([]byte(text + "\n"))
}

// event writes one event; data must not hold a line end, as JSON does not.
func (s *stream) event(kind, id string, data []byte) error {
	var b bytes.Buffer

	fmt.Fprintf(&b, "event: %s\n", kind)

	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}

	fmt.Fprintf(&b, "data: %s\n\n", data)

	return s.write(b.Bytes())
}

// sendAlive shows that the stream lives: pages see no comments, and to them a silently
// dead connection looks like an idle one. It also advances the id that a
// reconnecting caller sends back: the last id of a stream with rare events would
// otherwise be gone from memory, and then from the database.
func (s *stream) sendAlive(id string) error { return s.event("alive", id, []byte("{}")) }

func (s *stream) write(data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) // moved with every write

	if _, err := s.w.Write(data); err != nil {
		return err
	}

	return s.control.Flush()
}
