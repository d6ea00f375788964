package artifacts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// Names is the database for a Cleaner.
type Names interface {
	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
	// LongUnnamed notes digests that no row names, and returns those noted for longer than the grace.
	LongUnnamed(ctx context.Context, digests []berth.Digest, grace time.Duration) ([]berth.Digest, error)

	unnamed
}

const (
	defaultCleanEvery = time.Hour
	// defaultGrace leaves time to notice that a restored database lacks rows.
	defaultGrace = 7 * 24 * time.Hour
	// removedAtOnce is how many objects are removed while no writer can name one, and
	// removeTimeout is the limit for it: the database ends a transaction that idles for
	// 10 s.
	removedAtOnce = 50
	removeTimeout = 5 * time.Second
)

// Cleaner removes objects that no row names any more. One server leads at a time.
type Cleaner struct {
	Names Names
	Store *Store
	Grace time.Duration // how long an object stays that no row names; default 7 days
	Every time.Duration // between two looks; default 1 hour
	Log   *slog.Logger
}

// Run looks while it leads, until ctx ends. What fails is logged and tried again.
func (c *Cleaner) Run(ctx context.Context) error {
	every := cmp.Or(c.Every, defaultCleanEvery)

	return c.Names.Lead(ctx, "cleaning the store of artifacts", func(ctx context.Context) error {
		return keepLooking(ctx, every, every, func(ctx context.Context) error {
			removed, err := c.Look(ctx)
			if removed > 0 {
				c.Log.Info("removed objects that no row names", "objects", removed)
			}

			return err
		}, func(err error, _ time.Duration) { c.Log.Warn("removing objects that no row names", "error", err) })
	})
}

// Look removes objects that no row names at this moment, and returns how many.
// Errors: conflict for a store of another installation; unavailable.
func (c *Cleaner) Look(ctx context.Context) (removed int, err error) {
	if err := c.Store.Ready(ctx); err != nil {
		return 0, err
	}

	grace := cmp.Or(c.Grace, defaultGrace)

	for first := range math.MaxUint8 + 1 {
		err := c.Store.list(ctx, byte(first), func(page []object) error {
			var whole []berth.Digest

			for _, o := range page {
				switch {
				case o.whole:
					whole = append(whole, o.digest)
				case o.age >= grace: // half of an upload that was killed, in a directory
					if err := c.Store.remove(ctx, o.key); err != nil {
						return err
					}

					removed++
				}
			}

			old, err := c.Names.LongUnnamed(ctx, whole, grace)
			if err != nil {
				return err
			}

			gone, err := removeUnnamed(ctx, c.Names, c.Store, old)
			removed += gone

			return err
		})
		if err != nil {
			return removed, err
		}
	}

	return removed, nil
}

// unnamed is the database for removeUnnamed.
type unnamed interface {
	// RemoveObjects calls remove with the digests that no row names; until it returns no writer can
	// name one.
	RemoveObjects(ctx context.Context, digests []berth.Digest, remove func(unnamed []berth.Digest) error) error
}

// removeUnnamed removes the objects that no row names, and returns how many.
func removeUnnamed(ctx context.Context, names unnamed, store *Store, digests []berth.Digest) (removed int, err error) {
	for some := range slices.Chunk(digests, removedAtOnce) {
		err := names.RemoveObjects(ctx, some, func(unnamed []berth.Digest) error {
			ctx, cancel := context.WithTimeout(ctx, removeTimeout)
			defer cancel()

			for _, d := range unnamed {
				if err := store.remove(ctx, key(d)); err != nil {
					return fmt.Errorf("object %s: %w", d, err)
				}

				removed++
			}

			return nil
		})
		if err != nil {
			return removed, err
		}
	}

	return removed, nil
}
