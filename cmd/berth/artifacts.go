package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

// bindArtifacts adds the flag that says where the files of trials are stored.
func bindArtifacts(flags *pflag.FlagSet, where *string, fallback string) {
	flags.StringVar(where, "artifacts", "", "where files that trials write to /trial/out are stored: a directory, or a URL such as s3://bucket?region=eu-west-1; "+
		"the same for server and workers; default: "+fallback)
}

// storeFiles stores files and checkpoints of this machine's trials until ctx ends.
func (m *machine) storeFiles(ctx context.Context, store *artifacts.Store, files storable, ledger *postgres.Store, hostID string, log *slog.Logger) error {
	mark := filepath.Join(m.gpus.DataDir, datadir.OwnerFile)
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
