package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

const (
	// hintsEvery is how often the database is asked what is fresh while a stream wants to
	// know: no two hints of a kind and subject are closer.
	hintsEvery = 2 * time.Second
	// hintsAtOnce is how many hints are given in that time at most, hosts aside: more running
	// attempts than that take turns. 1,000 are 200 to 500 KiB, for each stream.
	hintsAtOnce = 1000
	// hintsKept is how many batches wait for a stream that writes slowly: 16 s, as a write
	// takes 10 s at most.
	hintsKept = 8
)

// hints asks the database what is fresh of all that streams watch, once for all of them,
// and not at all while no stream asks for hints. What was fresh before the first stream
// began is no news: whoever opens a stream reads the thing itself.
type hints struct {
	store Hints
	log   *slog.Logger
	every time.Duration

	mu      sync.Mutex
	watched map[*watcher]struct{}
	asked   chan struct{} // has an element when the first watcher came
	batches []batch       // ascending; the last hintsKept
	grown   chan struct{} // closed when there is another batch

	known  map[hintKey]known // only run uses it and what follows
	scope  []string          // the sweeps that known is of; empty = all
	rounds int
}

// watcher is a stream that asks for hints of some sweeps; none means all.
type watcher struct{ sweepIDs []string }

type hintKey struct {
	kind    berth.HintKind
	subject string
}

// known is a mark, and in which round it was hinted at.
type known struct {
	value  int64
	hinted int
}

// batch is what one look at the database found.
type batch struct {
	number int
	hints  []encodedHint
}

// encodedHint is a hint as all streams send it.
type encodedHint struct {
	key     hintKey
	sweepID string
	text    []byte // of the event
}

func newHints(store Hints, log *slog.Logger) *hints {
	return &hints{
		store: store, log: log, every: hintsEvery,
		watched: make(map[*watcher]struct{}), asked: make(chan struct{}, 1), grown: make(chan struct{}),
	}
}

// watch begins to look for hints of these sweeps, none given means all; done ends that.
// number is the last batch before: the place to read from.
func (h *hints) watch(sweepIDs []string) (number int, done func()) {
	w := &watcher{sweepIDs: sweepIDs}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.watched[w] = struct{}{}

	select {
	case h.asked <- struct{}{}:
	default: // it will look anyway
	}

	return h.last(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()

		delete(h.watched, w)
	}
}

func (h *hints) last() int {
	if len(h.batches) == 0 {
		return 0
	}

	return h.batches[len(h.batches)-1].number
}

// run looks for what is fresh until ctx ends, while there are watchers.
func (h *hints) run(ctx context.Context) {
	failing := false

	for ctx.Err() == nil {
		sweepIDs, watching := h.watching()
		if !watching {
			h.known = nil

			select {
			case <-ctx.Done():
				return
			case <-h.asked:
			}

			continue
		}

		pause := time.NewTimer(h.every) // a ticker's look may come at once after a late one

		err := h.look(ctx, sweepIDs)
		if err != nil && !failing && ctx.Err() == nil {
			h.log.Warn("event streams cannot say what is fresh", "error", err)
		}

		failing = err != nil

		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// watching returns the sweeps that are watched, none when all are, and whether any are.
func (h *hints) watching() (sweepIDs []string, some bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for w := range h.watched {
		if len(w.sweepIDs) == 0 {
			return nil, true
		}

		sweepIDs = append(sweepIDs, w.sweepIDs...)
	}

	slices.Sort(sweepIDs)

	return slices.Compact(sweepIDs), len(sweepIDs) > 0
}

// look reads all marks, and gives hints of those that have changed.
func (h *hints) look(ctx context.Context, sweepIDs []string) error {
	marks, err := h.store.ListMarks(ctx, sweepIDs)
	if err != nil {
		return err
	}

	h.rounds++

	changed := h.compare(marks, sweepIDs)
	if len(changed) == 0 {
		return nil
	}

	found, err := h.store.ListHints(ctx, changed)
	if err != nil {
		return err
	}

	for _, m := range changed {
		h.known[keyOf(m)] = known{value: m.Value, hinted: h.rounds}
	}

	return h.give(found)
}

// compare replaces what is known by what there is, and returns the marks that have changed:
// at most hintsAtOnce beside those of hosts, those first that were not hinted at for the
// longest. What is left over counts as changed the next time, too. What was not looked at
// before has not changed.
func (h *hints) compare(marks []berth.Mark, sweepIDs []string) (changed []berth.Mark) {
	before, scope := h.known, h.scope
	h.known, h.scope = make(map[hintKey]known, len(marks)), sweepIDs

	var hosts []berth.Mark

	for _, m := range marks {
		key := keyOf(m)
		old, there := before[key]

		switch {
		case before == nil || !there && (m.Kind == berth.HintHostSilent || !covers(scope, m.SweepID)):
			h.known[key] = known{value: m.Value}
		case there && old.value == m.Value:
			h.known[key] = old
		default:
			if !there {
				old.value = ^m.Value // any other
			}

			h.known[key] = old

			if m.Kind == berth.HintHostSilent {
				hosts = append(hosts, m)
			} else {
				changed = append(changed, m)
			}
		}
	}

	slices.SortStableFunc(changed, func(a, b berth.Mark) int { return h.known[keyOf(a)].hinted - h.known[keyOf(b)].hinted })

	return append(hosts, changed[:min(len(changed), hintsAtOnce)]...)
}

// covers reports whether a sweep is one of these; none means all.
func covers(sweepIDs []string, id string) bool {
	return len(sweepIDs) == 0 || slices.Contains(sweepIDs, id)
}

func keyOf(m berth.Mark) hintKey { return hintKey{m.Kind, m.Subject} }

// give makes a batch of hints and wakes the streams.
func (h *hints) give(found []berth.Hint) error {
	encoded := make([]encodedHint, len(found))

	for i, hint := range found {
		data, err := json.Marshal(toHint(hint))
		if err != nil {
			return err
		}

		key := hintKey{hint.Kind, hint.Subject}
		if hint.Kind == berth.HintHostBack {
			key.kind = berth.HintHostSilent // the one takes back the other
		}

		encoded[i] = encodedHint{key: key, sweepID: hint.SweepID, text: eventText("fresh", "", data)}
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.batches = append(h.batches, batch{number: h.last() + 1, hints: encoded})
	h.batches = slices.Clone(h.batches[max(0, len(h.batches)-hintsKept):])

	close(h.grown)
	h.grown = make(chan struct{})

	return nil
}

// after returns the hints of these sweeps, and of hosts, after a batch, oldest first: of
// several of one kind and subject the newest. last is the last batch, and grown is closed
// when there is another.
func (h *hints) after(number int, sweepIDs []string) (found []encodedHint, last int, grown <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()

	newer := h.batches
	for len(newer) > 0 && newer[0].number <= number {
		newer = newer[1:]
	}

	if len(newer) == 0 {
		return nil, h.last(), h.grown
	}

	seen := make(map[hintKey]bool)

	for i, b := range slices.Backward(newer) {
		for _, hint := range slices.Backward(b.hints) {
			if hint.sweepID != "" && !covers(sweepIDs, hint.sweepID) || seen[hint.key] {
				continue
			}

			if i > 0 {
				seen[hint.key] = true
			}

			found = append(found, hint)
		}
	}

	slices.Reverse(found)

	return found, h.last(), h.grown
}
