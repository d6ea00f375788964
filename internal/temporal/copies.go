package temporal

import (
	"context"

	"github.com/berthml/berth"
)

// Original reports whether the database is known to be the installation's own: the
// namespace is bound to it, and the database says so, or the namespace was not adopted
// for what may be a restored copy.
func (i *Identity) Original(ctx context.Context) (bool, error) {
	ours, err := i.Ledger.Installation(ctx)
	if err != nil {
		return false, err
	}

	there, err := i.Client.binding(ctx)

	return err == nil && there != nil && there.id == ours.ID && !there.foreign(ours) && (!there.copied || ours.Own()), err
}

// Moved reports whether the namespace is bound to another copy of the database.
func (i *Identity) Moved(ctx context.Context) (bool, error) {
	ours, err := i.Ledger.Installation(ctx)
	if err != nil {
		return false, err
	}

	there, err := i.Client.binding(ctx)

	return err == nil && there != nil && there.id == ours.ID && there.foreign(ours), err
}

// proves reports whether the namespace was bound to this very database, and not for what may
// be a restored copy.
func (b *binding) proves(ours berth.Installation) bool {
	return ours.Database != "" && b.database == ours.Database && !b.copied
}
