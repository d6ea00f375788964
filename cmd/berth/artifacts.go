package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

// bindArtifacts adds the flag that says where the files of trials are stored.
func bindArtifacts(flags *pflag.FlagSet, where *string, fallback string) {
	flags.StringVar(where, "artifacts", "", "where files that trials write to /trial/out are stored: a directory, or a URL such as s3://bucket?region=eu-west-1; "+
		"the same for server and workers; default: "+fallback)
}

// devArtifacts is where `berth dev` stores files.
func devArtifacts(dataDir string) string { return filepath.Join(dataDir, "artifacts") }

const (
	defaultCheckpoints = 5 * time.Minute
	// leastCheckpoints leaves the store and the disk to others.
	leastCheckpoints = 5 * time.Second
)

func bindCheckpoints(flags *pflag.FlagSet, every *time.Duration) {
	flags.DurationVar(every, "checkpoint-every", defaultCheckpoints,
		"with --artifacts, checkpoints of running trials are stored so often, when they have changed; 0 = only once an attempt has ended")
}

// checkCheckpoints looks at --checkpoint-every. Errors: invalid.
func checkCheckpoints(every time.Duration) error {
	if every < 0 || every > 0 && every < leastCheckpoints {
		return berth.Errorf(berth.KindInvalid, "--checkpoint-every %s must be at least %s, or 0 to store a checkpoint only once its attempt has ended", every, leastCheckpoints)
	}

	return nil
}

// storeFiles stores files and checkpoints of this machine's trials until ctx ends.
func (m *machine) storeFiles(ctx context.Context, store *artifacts.Store, files storable, ledger *postgres.Store, hostID string, log *slog.Logger) error {
	mark := filepath.Join(m.dataDir, datadir.OwnerFile)
	limits := artifacts.Limits{Bytes: m.bounds.OutputLimit} // all that an attempt may write is stored
	group, ctx := errgroup.WithContext(ctx)

	group.Go(func() error {
		u := &artifacts.Uploader{Ledger: ledger, Files: files, Store: store, HostID: hostID, Mark: mark, Limits: limits, Log: log}

		return u.Run(ctx)
	})
	group.Go(func() error {
		c := &artifacts.Checkpointer{Ledger: ledger, Files: files, Store: store, HostID: hostID, Mark: mark, Limits: limits, After: m.checkpoints, Log: log}

		return c.Run(ctx)
	})

	return group.Wait()
}

// restoreFrom fetches checkpoints from the store; nil = no store.
func restoreFrom(store *artifacts.Store) runtrial.RestoreCheckpoint {
	if store == nil {
		return nil
	}

	return store.Restore
}

// openArtifacts opens the store of artifacts; nil = no store. Later calls wait
// for one that does not answer. Errors: of a store that a person must change.
func openArtifacts(ctx context.Context, where, installation string, marks artifacts.Marks, log *slog.Logger) (*artifacts.Store, error) {
	if where == "" {
		return nil, nil //nolint:nilnil // none is no error
	}

	store, err := artifacts.Open(ctx, where, installation, marks)
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
