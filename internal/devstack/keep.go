package devstack

import (
	"context"
	"log/slog"
	"time"
)

const (
	// firstPause is the back-off before an ended child is restarted. For one
	// that ends at once, as a database does on a full disk, it doubles each
	// time, up to longestPause.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// steady is how long a child must have run for its end to be the first again.
	steady = time.Minute
)

// keep restarts a child whenever it has ended by itself, until ctx ends, and
// logs the file with its output. It replaces the child by the result of again.
func keep(ctx context.Context, log *slog.Logger, child **process, again func() (*process, error)) {
	for pause := time.Duration(0); ; {
		began, p := time.Now(), *child

		select {
		case <-p.done:
		case <-ctx.Done():
			return
		}

		pause = nextPause(pause, time.Since(began))
		log.Error(p.name+" ended; Berth starts it again", "ended", p.cmd.ProcessState.String(), "output", p.logFile, "in", pause)

		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}

		next, err := again()
		if err != nil {
			log.Error("starting "+p.name+" again", "error", err)

			continue
		}

		*child = next
	}
}

// nextPause is before the next start of a child that ran for ran since its last
// start; last is the pause before that.
func nextPause(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= steady {
		return firstPause
	}

	return min(2*last, longestPause)
}
