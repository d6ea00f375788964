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

// patiently asks until the server answers or refuses for good, or ctx ends, but at most
// tries times; 0 = without a limit. It calls lost for each failed try.
func patiently[T any](ctx context.Context, tries int, lost func(error), ask func() (T, error)) (T, error) {
	var p patience

	for try := 1; ; try++ {
		result, err := ask()
		if err == nil || ctx.Err() != nil || !temporary(err) || try == tries {
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

// retryAfter reads the seconds of a Retry-After header; 0 = it says none.
func retryAfter(header string) time.Duration {
	seconds, _ := strconv.Atoi(header) // 0 for a time, which Berth's servers do not write

	return time.Duration(max(seconds, 0)) * time.Second
}
