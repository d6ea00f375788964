package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

const (
	feedPoll  = time.Second // a notification is only a hint
	feedBatch = 500
	feedKeep  = 2000 // events in memory, so that watchers cost the database nothing
)

// feed keeps the newest published events in memory and wakes waiting readers.
type feed struct {
	store *postgres.Store

	mu     sync.Mutex
	events []berth.Event // ascending
	from   int64         // everything after this sequence is in events
	last   int64
	ready  bool
	grown  chan struct{} // closed when last moves
}

func newFeed(store *postgres.Store) *feed {
	return &feed{store: store, grown: make(chan struct{})}
}

// run reads published events until ctx ends.
func (f *feed) run(ctx context.Context) error {
	err := f.store.ListenPublished(ctx, feedPoll, func() { f.readEvents(ctx) })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to end
	}

	return err
}

// readEvents adds the events published since, at first none; an error shows at the next poll.
func (f *feed) readEvents(ctx context.Context) {
	f.mu.Lock()
	last, ready := f.last, f.ready
	f.mu.Unlock()

	if !ready {
		_, newest, err := f.store.EventRange(ctx)
		if err != nil {
			return
		}

		f.mu.Lock()
		f.from, f.last, f.ready = newest, newest, true
		close(f.grown) // a reader may wait for what is in the database now
		f.grown = make(chan struct{})
		f.mu.Unlock()

		last = newest
	}

	for ctx.Err() == nil {
		events, err := f.store.ListEvents(ctx, last, nil, feedBatch)
		if err != nil || len(events) == 0 {
			return
		}

		f.add(events)
		last = events[len(events)-1].Sequence
	}
}

func (f *feed) add(events []berth.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.events = append(f.events, events...)
	f.last = events[len(events)-1].Sequence

	if surplus := len(f.events) - feedKeep; surplus > 0 {
		f.from = f.events[surplus-1].Sequence
		f.events = append([]berth.Event(nil), f.events[surplus:]...)
	}

	close(f.grown)
	f.grown = make(chan struct{})
}

// news is the unread events of a watcher.
type news struct {
	events []berth.Event
	seen   int64           // there are no more of its sweeps up to this sequence
	grown  <-chan struct{} // closed when there are more
}

// after returns the published events of these sweeps after a sequence, from
// memory where possible; no sweeps means all events. A watcher that goes on from
// the newest sequence it has passed, rather than from its last event, stays in
// memory however rare its events are.
func (f *feed) after(ctx context.Context, sequence int64, sweepIDs []string) (news, error) {
	f.mu.Lock()
	n := news{seen: max(sequence, f.last), grown: f.grown}
	inMemory := f.ready && sequence >= f.from

	if inMemory {
		for _, e := range f.events {
			if e.Sequence > sequence && (len(sweepIDs) == 0 || slices.Contains(sweepIDs, e.SweepID)) {
				n.events = append(n.events, e)
			}
		}
	}
	f.mu.Unlock()

	if inMemory {
		return n, nil
	}

	var err error

	n.events, err = f.store.ListEvents(ctx, sequence, sweepIDs, feedBatch)
	if len(n.events) > 0 {
		last := n.events[len(n.events)-1].Sequence
		if n.seen = max(n.seen, last); len(n.events) == feedBatch {
			n.seen = last // there may be more than a batch
		}
	}

	return n, err
}
