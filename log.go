package berth

import (
	"time"
)

// LogPiece is a stored piece of an attempt's log, Offset bytes from its start.
type LogPiece struct {
	Offset int64     `json:"offset"`
	Stream string    `json:"stream"`
	At     time.Time `json:"at"`
	Data   []byte    `json:"data"`
}

// resumeSlack is how much earlier than the last chunk a log is read again. Docker
// stamps the lines of the two streams separately, so the log is not sorted: a
// line may be a few milliseconds older than the one before it, more on a disk
// that stalls.
const resumeSlack = 10 * time.Second

// LogPosition is how far a reader came in a container's log; zero = it has read
// nothing. The order of the log counts, not its stamps: they come from the
// host's clock, which may be set back.
type LogPosition struct {
	Stream string    `json:"stream"` // of the chunk that was read last
	At     time.Time `json:"at"`     // its stamp
	Stdout LogStream `json:"stdout"`
	Stderr LogStream `json:"stderr"`
}

// LogStream is how far a reader came in one stream of a log.
type LogStream struct {
	Newest time.Time `json:"newest"`        // stamp so far
	Open   time.Time `json:"open,omitzero"` // stamp of the last line while it is open: its continuation has the same
}

// Pass moves the position behind a chunk.
func (p *LogPosition) Pass(c LogChunk) {
	p.Stream, p.At = c.Stream, c.At

	s := p.of(c.Stream)
	if c.At.After(s.Newest) {
		s.Newest = c.At
	}

	s.Open = time.Time{}
	if n := len(c.Data); n == 0 || c.Data[n-1] != '\n' {
		s.Open = c.At
	}
}

// Since is the oldest stamp possible after the position; zero = any. A silent
// stream does not make the other one be read again from its start.
func (p *LogPosition) Since(now time.Time) time.Time {
	if p.Stream == "" {
		return time.Time{}
	}

	oldest := p.At
	for _, at := range []time.Time{now, p.Stdout.Open, p.Stderr.Open} {
		if !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}

	return oldest.Add(-resumeSlack)
}

func (p *LogPosition) of(stream string) *LogStream {
	if stream == Stdout {
		return &p.Stdout
	}

	return &p.Stderr
}

// LogResume finds the chunks of a log, read again, that lie before a position.
type LogResume struct {
	From LogPosition
	Lost bool // the log went on without the chunk that was read last: Docker had dropped it

	past bool
}

// Read reports whether a chunk was read before. It must be called for all
// chunks, in the order of the log.
func (r *LogResume) Read(c LogChunk) bool {
	switch {
	case r.past:
		return false
	case c.Stream == r.From.Stream && c.At.Equal(r.From.At):
		r.past = true

		return true
	case !c.At.After(r.From.of(c.Stream).Newest):
		return true
	default:
		r.past, r.Lost = true, r.From.Stream != ""

		return false
	}
}
