package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// serverEvent is one server-sent event.
type serverEvent struct {
	kind string
	data string
}

// maxEventBytes is the longest line of a stream.
const maxEventBytes = 4 << 20

// errStreamEnd ends a stream from inside.
var errStreamEnd = errors.New("end of stream")

// stream is a subscription that outlives its connections.
type stream struct {
	open   func(ctx context.Context, lastID string) (*http.Response, error)
	lost   func(err error) // told once for each loss; may be nil
	lastID string
	waits  patience
}

// run hands events to handle until it returns an error, ctx ends, or the
// server refuses. A lost connection is opened again after the last event that
// was seen. errStreamEnd ends it without an error.
func (s *stream) run(ctx context.Context, handle func(serverEvent) error) error {
	for {
		var (
			problem *problemError
			stopped error // by handle, which is no loss of the connection
		)

		err := s.once(ctx, func(e serverEvent) error {
			stopped = handle(e)

			return stopped
		})

		switch {
		case errors.Is(stopped, errStreamEnd):
			return nil
		case stopped != nil:
			return stopped
		case ctx.Err() != nil:
			return unreachable(ctx.Err())
		case errors.As(err, &problem) && !temporaryStatus(problem.Status):
			return err
		}

		if s.lost != nil {
			s.lost(err)
		}

		select {
		case <-ctx.Done():
			return unreachable(ctx.Err())
		case <-time.After(s.waits.pause(err)):
		}
	}
}

func (s *stream) once(ctx context.Context, handle func(serverEvent) error) error {
	response, err := s.open(ctx, s.lastID)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()

	if response.StatusCode >= http.StatusBadRequest {
		return problemIn(response)
	}

	s.waits.reset()

	return s.read(response.Body, handle)
}

// read parses the stream as WHATWG describes it.
func (s *stream) read(body io.Reader, handle func(serverEvent) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEventBytes)

	var (
		event serverEvent
		id    string
		has   bool
	)

	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")

		switch {
		case lines.Text() == "":
			if id != "" {
				s.lastID = id
			}

			if has {
				if err := handle(event); err != nil {
					return err
				}
			}

			event, has = serverEvent{}, false
		case field == "event":
			event.kind = value
		case field == "id":
			id = value
		case field == "data":
			if has {
				event.data += "\n"
			}

			event.data += value
			has = true
		}
	}

	if err := lines.Err(); err != nil {
		return err
	}

	return io.ErrUnexpectedEOF
}
