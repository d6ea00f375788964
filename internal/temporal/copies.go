package temporal

import (
	"context"
	"slices"

	"github.com/berthml/berth"
)

// Original reports whether the database is known to be the installation's own: the
// namespace is bound to it, and the database says so, or the namespace was not adopted
// for what may be a restored copy. Where Temporal has lost the namespace, the database alone says it.
func (i *Identity) Original(ctx context.Context) (bool, error) {
	there, ours, err := i.look(ctx)
	if err != nil || there == nil {
		return err == nil && ours.Own(), err
	}

	return there.id == ours.ID && !there.foreign(ours) && (!there.copied || ours.Own()), nil
}

// Moved reports whether the namespace is bound to another copy of the database.
func (i *Identity) Moved(ctx context.Context) (bool, error) {
	there, ours, err := i.look(ctx)

	return err == nil && there.another(ours), err
}

// Watch looks again and again until ctx ends whether the namespace is bound to another copy of
// the database. A worker asks: on the replaced database it would take work of the other
// copy's sweeps, whose queue has the same name, and write into its own database.
// Errors: invalid when it is.
func (i *Identity) Watch(ctx context.Context) error {
	return i.repeat(ctx, func() error {
		there, ours, err := i.look(ctx)
		if err == nil && there.another(ours) {
			err = i.refuse(ctx, there, ours)
		}

		return err
	})
}

// refuse is why the namespace is not this database's. One that was the installation's own until
// the other copy replaced it notes that: who opens it later has a copy. The namespace says whom it
// replaced. One that an earlier version bound does not; where it replaced this database, it was no copy, and
// this one did not replace it.
func (i *Identity) refuse(ctx context.Context, there *binding, ours berth.Installation) error {
	replaced := slices.Contains(there.replaced, ours.Database) ||
		!there.saysReplaced && !there.copied && !slices.Contains(ours.Replaced(), there.database)
	if there.another(ours) && replaced && ours.Own() {
		if err := i.Ledger.OwnDatabase(ctx, there.database, ""); err != nil {
			i.Log.Warn("noting that another copy of this database has replaced it", "error", err)
		}
	}

	return i.Client.refusal(there, ours)
}

// look reads what the namespace and the database say.
func (i *Identity) look(ctx context.Context) (there *binding, ours berth.Installation, err error) {
	if ours, err = i.Ledger.Installation(ctx); err != nil {
		return nil, ours, err
	}

	there, err = i.Client.binding(ctx)

	return there, ours, err
}

// another reports whether the namespace is bound to another copy of the database; nil is not.
func (b *binding) another(ours berth.Installation) bool {
	return b != nil && b.id == ours.ID && b.foreign(ours)
}

// proves reports whether the namespace was bound to this very database, and not for what may
// be a restored copy.
func (b *binding) proves(ours berth.Installation) bool {
	return b != nil && ours.Database != "" && b.database == ours.Database && !b.copied
}
