package artifacts

import (
	"cmp"
	"context"
	"time"
)

// keepLooking looks every so often (0 = defaultEvery) until ctx ends. After a look that
// failed, which it tells, it waits for longer each time, up to longest. Error: ctx's cause.
func keepLooking(ctx context.Context, every, longest time.Duration, look func(context.Context) error, failed func(err error, again time.Duration)) error {
	every = cmp.Or(every, defaultEvery)

	var pause time.Duration

	for {
		if err := look(ctx); err != nil && ctx.Err() == nil {
			pause = min(max(2*pause, every), longest)
			failed(err, pause)
		} else {
			pause = 0
		}

		select {
		case <-time.After(max(pause, every)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
