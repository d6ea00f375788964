package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// WatchOOM calls note with the attempt of every out-of-memory event of this instance's
// containers until ctx is done, whose cause it returns. The kernel killed a process of the
// container for memory; the program may still end well. WatchOOM connects again when
// Docker went away, and asks for the missed events; note may see an event twice.
func (d *Docker) WatchOOM(ctx context.Context, note func(attemptID string)) error {
	since := time.Now()

	for {
		since = d.watchOnce(ctx, since, note)

		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// watchOnce reads one connection to its end and returns where the next begins.
func (d *Docker) watchOnce(ctx context.Context, since time.Time, note func(attemptID string)) time.Time {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()

	messages, failed := d.long.Events(watching, events.ListOptions{
		Since: fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()),
		Filters: filters.NewArgs(
			filters.Arg("type", string(events.ContainerEventType)),
			filters.Arg("event", string(events.ActionOOM)),
			filters.Arg("label", labelInstance+"="+d.config.Instance),
		),
	})

	for {
		select {
		case m := <-messages:
			since = time.Unix(0, m.TimeNano).UTC()
			note(m.Actor.Attributes[labelAttempt])
		case <-failed: //nolint:errcheck // whatever broke the stream, it is opened again
			return since
		}
	}
}
