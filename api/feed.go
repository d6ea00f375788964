package api

import (
	"context"
	"sync"
	"time"

	"github.com/berthml/berth"
)

const (
	feedPoll  = time.Second // a notification is only a hint
	feedBatch = 500
	feedKeep  = 2000 // events in memory, so that watchers cost the database nothing
)

// feed keeps the newest published events in memory and wakes who waits for more.
type feed struct {
	store Events

	mu     sync.Mutex
	events []berth.Event // ascending
	from   int64         // everything after this sequence is in events
	last   int64
	ready  bool
	grown  chan struct{} // closed when last moves
	eras   int           // how often the database came back with less than it had published
}

func newFeed(store Events) *feed {
	return &feed{store: store, grown: make(chan struct{})}
}

// run reads what is published until ctx ends.
func (f *feed) run(ctx context.Context) error {
	err := f.store.ListenPublished(ctx, feedPoll, func() { f.read(ctx) })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to end
	}

	return err
}

// read takes over what was published since; trouble shows at the next poll.
func (f *feed) read(ctx context.Context) {
	if f.begin(ctx) != nil {
		return
	}

	for ctx.Err() == nil {
		f.mu.Lock()
		last := f.last
		f.mu.Unlock()

		events, err := f.store.ListEvents(ctx, last, "", feedBatch)
		if err != nil {
			return
		}

		if len(events) == 0 {
			f.rewind(ctx)

			return
		}

		f.add(events)
	}
}

// rewind starts over when the database was restored from an older copy: it
// gives the same sequences to other events. Streams end with their era, and
// whoever comes back is told to read everything anew.
func (f *feed) rewind(ctx context.Context) {
	_, newest, err := f.store.EventRange(ctx)
	if err != nil {
		return
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if newest >= f.last {
		return
	}

	f.events, f.from, f.last = nil, newest, newest
	f.eras++

	close(f.grown)
	f.grown = make(chan struct{})
}

// era changes when the database was restored from an older copy.
func (f *feed) era() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.eras
}

// begin starts at the newest event there is, once. Who begins before it asks
// the database for a place to read from has one of the feed's era, and hears
// when that ends.
func (f *feed) begin(ctx context.Context) error {
	f.mu.Lock()
	ready := f.ready
	f.mu.Unlock()

	if ready {
		return nil
	}

	_, last, err := f.store.EventRange(ctx)
	if err != nil {
		return err
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if !f.ready { // another may have been quicker
		f.from, f.last, f.ready = last, last, true
	}

	return nil
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

// after returns the published events after a sequence, from memory when they
// are there, and a channel that is closed when there are more.
func (f *feed) after(ctx context.Context, sequence int64, sweepID string) ([]berth.Event, <-chan struct{}, error) {
	f.mu.Lock()
	grown, inMemory := f.grown, f.ready && sequence >= f.from

	var found []berth.Event

	if inMemory {
		for _, e := range f.events {
			if e.Sequence > sequence && (sweepID == "" || e.SweepID == sweepID) {
				found = append(found, e)
			}
		}
	}
	f.mu.Unlock()

	if inMemory {
		return found, grown, nil
	}

	found, err := f.store.ListEvents(ctx, sequence, sweepID, feedBatch)

	return found, grown, err
}
