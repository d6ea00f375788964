package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// OOMEvent says that the kernel killed a process of a container for memory.
// The program may still end well; and the container's own OOMKilled flag and
// the cgroup's counter are further evidence, each lost in other circumstances.
type OOMEvent struct {
	ContainerID string
	AttemptID   string
	At          time.Time
}

// WatchOOM calls fn for every out-of-memory event of this instance's containers
// until ctx is done, whose cause it returns. It connects again when Docker went
// away, and asks for the missed events; fn may see an event twice.
func (d *Docker) WatchOOM(ctx context.Context, fn func(OOMEvent)) error {
	since := time.Now()

	for {
		since = d.watchOnce(ctx, since, fn)

		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// watchOnce reads one connection to its end and returns where the next begins.
func (d *Docker) watchOnce(ctx context.Context, since time.Time, fn func(OOMEvent)) time.Time {
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
			fn(OOMEvent{ContainerID: m.Actor.ID, AttemptID: m.Actor.Attributes[labelAttempt], At: since})
		case <-failed: //nolint:errcheck // whatever broke the stream, it is opened again
			return since
		}
	}
}
