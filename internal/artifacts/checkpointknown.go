package artifacts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/berthml/berth"
)

// turnsKept is how long a due turn is kept for a trial without a running attempt here.
const turnsKept = time.Hour

// askedOfRunning is for how many unchanged files of a running attempt Checkpointer asks the
// store at each turn: 10,000 of them would cost a dollar a day on S3.
const askedOfRunning = 10

// errNotQuiet says that a checkpoint was not seen to be at rest.
var errNotQuiet = fmt.Errorf("it is not known to be at rest: %w", ErrChanged)

// errNothing says that a checkpoint has no files.
var errNothing = errors.New("there are no files")

// storedCheckpoint is the known state of an attempt's checkpoint.
type storedCheckpoint struct {
	items   []item          // as stored last; nil = not yet
	read    map[string]item // its files as they were read last, by path
	seen    []item          // as the last look found it, unread
	since   time.Time       // when a look found it so first
	noisy   time.Time       // since when it waits for a quiet moment; zero = not yet
	looks   int             // that found none
	vain    int             // reads and uploads in which it changed, since it was stored last
	broken  int             // looks in which the disk did not give it, since the attempt ended
	problem string          // why it cannot be stored
	ended   bool            // files read while it ran no longer count
	doubted bool            // items may be outdated, also with unchanged times
}

// dueAttempts returns the running attempts whose checkpoint is due for a look. It forgets ended
// attempts. Time counts for the trial: attempts shorter than After that follow each other
// are stored as often as one long attempt.
func (c *Checkpointer) dueAttempts(ended []berth.AttemptCheckpoint) (due []berth.AttemptCheckpoint) {
	known := make(map[string]*storedCheckpoint)

	for _, of := range ended {
		if k := c.known[of.AttemptID]; k != nil {
			known[of.AttemptID] = k
		}
	}

	running := make(map[string]bool) // trials

	for _, of := range c.Files.RunningCheckpoints() {
		known[of.AttemptID], running[of.TrialID] = c.stateOf(of.AttemptID), true

		if _, found := c.turns[of.TrialID]; !found {
			c.turn(of.TrialID)
		}

		if c.After > 0 && !time.Now().Before(c.turns[of.TrialID]) {
			due = append(due, of)
		}
	}

	c.known = known

	maps.DeleteFunc(c.turns, func(trial string, at time.Time) bool { return !running[trial] && time.Since(at) > turnsKept })

	return due
}

// turn has the trial's turn come when After is over.
func (c *Checkpointer) turn(trialID string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.turns == nil {
		c.turns = make(map[string]time.Time)
	}

	c.turns[trialID] = time.Now().Add(c.After)
}

// stateOf returns the state of an attempt's checkpoint; one call at a time uses it.
func (c *Checkpointer) stateOf(attemptID string) *storedCheckpoint {
	c.mu.Lock()
	defer c.mu.Unlock()

	k := c.known[attemptID]
	if k == nil {
		k = &storedCheckpoint{}

		if c.known == nil {
			c.known = make(map[string]*storedCheckpoint)
		}

		c.known[attemptID] = k
	}

	return k
}

// quiet notes the files that a look found, and reports whether looks have found the same
// for long. File times come from another clock than this process's: a file server's, or
// the host's before it was corrected.
func (k *storedCheckpoint) quiet(items []item, long time.Duration) bool {
	if k.seen == nil || !sameItems(items, k.seen) {
		k.seen, k.since = items, time.Now()
	}

	return time.Since(k.since) >= long
}

// read lists a checkpoint with the digests of its files. Nil = the store has
// this state. Errors: as of store.
func (c *Checkpointer) read(ctx context.Context, of berth.AttemptCheckpoint, root *os.Root, quiet time.Duration) ([]item, error) {
	limits := c.Limits.orDefault()

	items, err := snapshot(ctx, root, limits)
	if err != nil {
		return nil, asUnstorable(ctx, err)
	}

	k := c.stateOf(of.AttemptID)

	switch {
	case !hasFile(items):
		return nil, errNothing
	case k.items != nil && !k.doubted && sameItems(items, k.items):
		return c.unlessStored(ctx, k)
	case quiet > 0 && !k.quiet(items, quiet):
		return nil, errNotQuiet
	}

	if k.read == nil {
		k.read = make(map[string]item)
	}

	if err := sumDigests(ctx, root, items, k.read); err != nil {
		return nil, asUnstorable(ctx, err)
	}

	again, err := snapshot(ctx, root, limits)
	if err != nil {
		return nil, asUnstorable(ctx, err)
	}

	if !sameItems(items, again) {
		return nil, ErrChanged
	}

	there := make(map[string]item, len(items))
	for _, i := range items {
		there[i.Path] = i
	}

	k.read = there // forgets deleted files

	if k.items != nil && sameContent(items, k.items) {
		k.items, k.doubted = items, false

		return c.unlessStored(ctx, k)
	}

	return items, nil
}

// unlessStored returns the stored items that the store has lost: its disk was lost, and a
// server began with an empty one. After the attempt's end it checks all items, before that a
// few files.
func (c *Checkpointer) unlessStored(ctx context.Context, k *storedCheckpoint) ([]item, error) {
	asked := make(map[berth.Digest]bool)

	for _, i := range k.items {
		if !i.mode().IsRegular() || asked[i.Digest] {
			continue
		}

		if !k.ended && len(asked) == askedOfRunning {
			break
		}

		asked[i.Digest] = true

		there, err := c.Store.Has(ctx, i.Digest, i.Bytes)
		if err != nil {
			return nil, err
		}

		if !there {
			return k.items, nil
		}
	}

	return nil, nil
}
