package datadir

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// ownPatience is how long a starting worker waits for the lock of a predecessor that was
// killed: PostgreSQL notices a dead peer at once, a lost one by its keep-alives.
const ownPatience = 30 * time.Second

// Identify gives the host its id, which its data directory keeps. An emptied directory gets
// back the id of this machine's running containers, as long as the machine was not restarted.
func Identify(ctx context.Context, store *postgres.Store, dir string, host *berth.Host, log *slog.Logger) (err error) {
	if host.ID, err = readHostID(dir); err != nil || host.ID != "" {
		return err
	}

	if host.ID, err = lostID(ctx, store, *host, log); err != nil {
		return err
	}

	return writeHostID(dir, host.ID)
}

// lostID is the id that this data directory had before it was emptied, or a
// new one. The lock of a worker that was killed may last a moment longer than
// the worker.
func lostID(ctx context.Context, store *postgres.Store, host berth.Host, log *slog.Logger) (string, error) {
	host.ID = uuid.NewString()
	if host.MachineID == "" {
		return host.ID, nil
	}

	for began := time.Now(); ; {
		others, err := store.MachineHosts(ctx, host)
		if err != nil {
			return "", err
		}

		i := slices.IndexFunc(others, func(other berth.MachineHost) bool { return other.DataDir == host.DataDir })

		switch {
		case i < 0:
			return host.ID, nil
		case !others[i].Served:
			log.Warn("the data directory was emptied: taking over the host that it was of", "host_id", others[i].ID, "attempts", others[i].Attempts)

			return others[i].ID, nil
		case time.Since(began) > ownPatience:
			return "", berth.Errorf(berth.KindConflict, "host %q (%s) of this machine has a worker already, with a directory of the same name %s; "+
				"stop that worker first", others[i].Name, others[i].ID, host.DataDir)
		}

		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
