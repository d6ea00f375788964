package artifacts

import (
	"context"
	"errors"
	"log/slog"

	"github.com/berthml/berth"
)

// OpenReady is Open for a process that goes on without an answer: later calls wait for
// it. nil = no store is named. Errors: of a store that a person must change.
func OpenReady(ctx context.Context, where, installation string, marks Marks, log *slog.Logger) (*Store, error) {
	if where == "" {
		return nil, nil //nolint:nilnil // none is no error
	}

	store, err := Open(ctx, where, installation, marks)
	if err != nil {
		return nil, err
	}

	err = store.Ready(ctx)
	if kind := berth.KindOf(err); err != nil && kind != berth.KindUnavailable {
		return nil, errors.Join(err, store.Close())
	}

	if err != nil {
		log.Warn("the store of artifacts does not answer; files wait for it", "error", err)
	}

	return store, nil
}
