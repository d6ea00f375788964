package cli

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Pauses between tries while waiting for the end of a sweep.
const (
	reconnectFirst = 500 * time.Millisecond
	reconnectMost  = 10 * time.Second
	// reconnectPatience is the longest pause that a server's Retry-After makes us wait.
	reconnectPatience = time.Minute
)

// patience is how long to wait before the next try: twice as long each time,
// or as long as the server asked for.
type patience struct{ last time.Duration }

func (p *patience) pause(err error) time.Duration {
	p.last = min(max(2*p.last, reconnectFirst), reconnectMost)

	if problem, ok := errors.AsType[*problemError](err); ok {
		return min(max(p.last, problem.retryAfter), reconnectPatience)
	}

	return p.last
}

// reset begins with short pauses again, after a try that worked.
func (p *patience) reset() { p.last = 0 }

// temporary reports whether the same call may work later: the server did not
// answer, had too much to do, or failed. A refusal is not temporary.
func temporary(err error) bool {
	if problem, ok := errors.AsType[*problemError](err); ok {
		return temporaryStatus(problem.Status)
	}

	return ExitCode(err) == ExitUnreachable
}

func temporaryStatus(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// patiently asks until the server answers or refuses for good, or ctx ends. It
// calls lost for each failed try.
func patiently[T any](ctx context.Context, lost func(error), ask func() (T, error)) (T, error) {
	var p patience

	for {
		result, err := ask()
		if err == nil || ctx.Err() != nil || !temporary(err) {
			return result, err
		}

		lost(err)

		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(p.pause(err)):
		}
	}
}

// retryAfter reads the Retry-After header: seconds, or a time (RFC 9110,
// section 10.2.3). 0 = absent.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}

	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}

	return max(at.Sub(now), 0)
}
