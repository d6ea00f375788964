package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/postgres"
)

// identify gives the host its machine and its id. The id is kept in the data
// directory. A directory that was emptied gets back the id under which this
// machine's containers run, as long as the machine was not restarted, and original:
// a restored copy knows the original's hosts, too.
func (m *machine) identify(ctx context.Context, store *postgres.Store, host *berth.Host, original bool, log *slog.Logger) (err error) {
	if host.MachineID, err = m.machine(ctx, log); err != nil {
		return err
	}

	known, err := readHostID(m.dataDir)
	if err != nil {
		return err
	}

	host.ID = cmp.Or(known, uuid.NewString())

	if !original {
		err = ofACopy(ctx, store, *host)
	} else if known == "" {
		host.ID, err = m.lostID(ctx, store, *host, log)
	}

	if err != nil || known != "" {
		return err
	}

	return writeHostID(m.dataDir, host.ID)
}

// owner says which containers on this machine's Docker are the worker's, but for its
// host, and claims the data directory.
func (m *machine) owner(ctx context.Context, c connections, log *slog.Logger) (owner berth.Owner, err error) {
	owner = berth.Owner{Installation: c.installation.ID, Database: c.installation.Database}
	ours := c.installation

	if err := retry(ctx, log, "Temporal", connectPatience, func() error {
		if owner.Original, err = c.identity.Original(ctx); err != nil {
			return err
		}

		ours, err = c.store.Installation(ctx) // what it has replaced may have been noted just now

		return err
	}); err != nil {
		return owner, err
	}

	owner.Replaced, err = m.claim(ours, owner.Original)

	return owner, err
}

// lostID is the id that this data directory had before it was emptied, or a
// new one. The lock of a worker that was killed may last a moment longer than
// the worker.
func (m *machine) lostID(ctx context.Context, store *postgres.Store, host berth.Host, log *slog.Logger) (string, error) {
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

// ofACopy refuses a machine that holds places in a database that may be a restored copy: the
// original's worker sells its memory, and must not be stopped for a drill. RegisterHost
// refuses it, too, and names the directory of that worker. Errors: conflict.
func ofACopy(ctx context.Context, store *postgres.Store, host berth.Host) error {
	if host.MachineID == "" {
		return nil
	}

	others, err := store.MachineHosts(ctx, host)
	if err != nil {
		return err
	}

	for _, other := range others {
		if !other.Served && other.Attempts > 0 {
			return berth.Errorf(berth.KindConflict, "this database may be a restored copy, in which host %q (%s) of this machine holds %d places for trials that the original may run here: "+
				"give the worker of a restore drill a share of the machine, --machine-id drill with --cpus and --memory; "+
				"when this database is the installation's own, run `berth adopt-temporal --replace-original` first", other.Name, other.ID, other.Attempts)
		}
	}

	return nil
}

// machine is what two workers of one machine have in common: its Docker. It is
// empty, which is compared with nothing, where no container runs.
func (m *machine) machine(ctx context.Context, log *slog.Logger) (string, error) {
	if m.machineID != "" || m.simulate > 0 {
		return m.machineID, nil
	}

	d, err := docker.New(docker.Config{Instance: m.instance})
	if err != nil {
		return "", err
	}
	defer d.Close() //nolint:errcheck // only idle connections

	info, err := askDocker(ctx, d, log)

	return info.ID, err
}
