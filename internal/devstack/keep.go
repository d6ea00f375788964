package devstack

import (
	"context"
	"log/slog"
	"time"
)

// restartPause is between the end of a child and its restart: a child that ends at once,
// as a database does on a full disk, must not fill the log.
const restartPause = 2 * time.Second

// keep restarts a child whenever it has ended by itself, until ctx ends, and
// logs the file with its output. It replaces the child by the result of again.
func keep(ctx context.Context, log *slog.Logger, child **process, again func() (*process, error)) {
	for {
		p := *child

		select {
		case <-p.done:
		case <-ctx.Done():
			return
		}

		log.Error(p.name+" ended; Berth starts it again", "ended", p.cmd.ProcessState.String(), "output", p.logFile)

		select {
		case <-time.After(restartPause):
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
