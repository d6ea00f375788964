package worker

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

const (
	// askEvery is how often the worker checks Temporal and the database.
	askEvery = 2 * time.Second
	// askTimeout bounds one question. A connection that swallows everything answers nothing.
	askTimeout = 5 * time.Second
	// databasePatience is how long a worker takes workflow tasks without the
	// database: longer than a restart of PostgreSQL, as tasks that wait for it
	// then lose nothing, and shorter than a person waits for a pause.
	databasePatience = 10 * time.Second
	// temporalPatience is how long a host is ready without Temporal: longer
	// than a restart of Temporal, shorter than an attempt waits for its host.
	temporalPatience = 20 * time.Second
)

// Trouble says why this host should take no attempts: its worker does not reach
// Temporal, and would not get them. Empty = it does.
func (w *Worker) Trouble() string {
	last := w.answered.Load()
	if last == 0 || time.Since(time.Unix(0, last)) < temporalPatience {
		return ""
	}

	return "its worker does not reach Temporal"
}

// watchTemporal keeps when Temporal answered last.
func (w *Worker) watchTemporal(ctx context.Context) {
	w.answered.Store(time.Now().UnixNano())

	everySo(ctx, func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()

		if _, err := w.Client.CheckHealth(ctx, &client.CheckHealthRequest{}); err == nil {
			w.answered.Store(time.Now().UnixNano())
		}
	})
}

// keepShared serves the shared queue while the database answers, until ctx
// ends. Without the database every step of a workflow fails here; the workers
// of other hosts can take it, once this one does not poll.
func (w *Worker) keepShared(ctx context.Context, shared worker.Worker) {
	defer func() {
		if shared != nil {
			shared.Stop()
		}
	}()

	if w.Database == nil {
		<-ctx.Done()

		return
	}

	answered := time.Now()

	everySo(ctx, func() {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()

		err := w.Database(asking)

		switch {
		case err == nil && shared == nil:
			if shared, err = w.startShared(); err != nil {
				w.Log.Warn("serving workflows again", "error", err)

				return
			}

			w.Log.Info("the database answers again: serving workflows")

			fallthrough
		case err == nil:
			answered = time.Now()
		case shared != nil && ctx.Err() == nil && time.Since(answered) > databasePatience:
			w.Log.Warn("the database does not answer: leaving workflows to the workers of other hosts", "error", err)
			shared.Stop()

			shared = nil
		}
	})
}

// everySo calls do every askEvery until ctx ends.
func everySo(ctx context.Context, do func()) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}
