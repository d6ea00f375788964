package artifacts

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/berthml/berth"
)

// errNothing says that a checkpoint has no files.
var errNothing = errors.New("there are no files")

// storedCheckpoint is what is known of an attempt's checkpoint.
type storedCheckpoint struct {
	items   []item          // as stored last; nil = not yet
	read    map[string]item // its files as they were read last, by path
	next    time.Time       // when it is looked at again while the attempt runs
	noisy   time.Time       // since when it is looked for a quiet moment; zero = not yet
	looks   int             // that found none
	problem string          // why it cannot be stored
	ended   bool            // what was read while it ran counts no more
	doubted bool            // items may not be what is there, whatever the times say
}

// due are the running attempts whose checkpoint is to be looked at now. What is
// known of attempts that are over is forgotten.
func (c *Checkpointer) due(ended []berth.AttemptCheckpoint) (due []berth.AttemptCheckpoint) {
	known := make(map[string]*storedCheckpoint)

	for _, of := range ended {
		if k := c.known[of.AttemptID]; k != nil {
			known[of.AttemptID] = k
		}
	}

	for _, of := range c.Files.RunningCheckpoints() {
		k := c.known[of.AttemptID]
		if k == nil {
			k = &storedCheckpoint{next: time.Now().Add(c.After)}
		}

		known[of.AttemptID] = k

		if c.After > 0 && !time.Now().Before(k.next) {
			due = append(due, of)
		}
	}

	c.known = known

	return due
}

func (c *Checkpointer) of(attemptID string) *storedCheckpoint {
	k := c.known[attemptID]
	if k == nil {
		k = &storedCheckpoint{}
		c.known[attemptID] = k
	}

	return k
}

// read lists a checkpoint with what is in its files. Nil = it is
// stored as it is. Errors: as of store.
func (c *Checkpointer) read(ctx context.Context, of berth.AttemptCheckpoint, root *os.Root, quiet time.Duration) ([]item, error) {
	limits := c.Limits.orDefault()

	items, err := snapshot(ctx, root, limits)
	if err != nil {
		return nil, unreadable(ctx, err)
	}

	k := c.of(of.AttemptID)

	switch {
	case !hasFile(items):
		return nil, errNothing
	case k.items != nil && !k.doubted && sameItems(items, k.items):
		return nil, nil
	case quiet > 0 && time.Since(newestOf(items)) < quiet:
		return nil, ErrChanged
	}

	if k.read == nil {
		k.read = make(map[string]item)
	}

	if err := sum(ctx, root, items, k.read); err != nil {
		return nil, unreadable(ctx, err)
	}

	again, err := snapshot(ctx, root, limits)
	if err != nil {
		return nil, unreadable(ctx, err)
	}

	if !sameItems(items, again) {
		return nil, ErrChanged
	}

	there := make(map[string]item, len(items))
	for _, i := range items {
		there[i.Path] = i
	}

	k.read = there // of what is gone nothing is remembered

	if k.items != nil && sameContent(items, k.items) {
		k.items, k.doubted = items, false

		return nil, nil
	}

	return items, nil
}
