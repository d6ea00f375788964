package docker

import (
	"context"
	"sync"
	"time"

	"github.com/docker/docker/client"
)

// absenceGap is how far apart two failures to reach the daemon may be and still
// be one absence of it: the reconciler asks every 15 s, retries sooner.
const absenceGap = time.Minute

// absence remembers when the daemon was unreachable last. A Wait that begins
// after the daemon is back has seen nothing itself, and a container killed by
// the daemon's own end must not count against the program.
type absence struct {
	mu          sync.Mutex
	since, last time.Time // zero = never
}

// noteAbsent says that the daemon could not be reached at this moment.
func (a *absence) noteAbsent(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if at.Sub(a.last) > absenceGap {
		a.since = at
	}

	a.last = at
}

// covers reports whether something that ended then ended during the last
// absence, or at most daemonLostWindow before or after it.
func (a *absence) covers(ended time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	return !a.last.IsZero() && ended.After(a.since.Add(-daemonLostWindow)) && ended.Before(a.last.Add(daemonLostWindow))
}

// mayHaveKilled reports whether the daemon's end may have killed a container that ran
// from started (zero = not known) to ended: a container that began when the
// daemon was back ended by itself.
func (a *absence) mayHaveKilled(started, ended time.Time) bool {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()

	return !started.After(last) && a.covers(ended)
}

// isStopping reports whether the daemon takes no new connection. A stopping daemon
// closes its socket first, then stops the containers, and answers over the
// existing connections until the last of them has ended.
func (d *Docker) isStopping(ctx context.Context) bool {
	fresh, err := client.NewClientWithOpts(client.FromEnv, client.WithHost(d.short.DaemonHost()), client.WithTimeout(d.config.APITimeout))
	if err != nil {
		return false // New has made two of them
	}
	defer fresh.Close() //nolint:errcheck // only an idle connection

	_, err = fresh.Ping(ctx)

	return err != nil && ctx.Err() == nil && client.IsErrConnectionFailed(err)
}
