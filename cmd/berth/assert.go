package main

import (
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/cli"
	"github.com/berthml/berth/internal/control/retention"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/internal/scheduler/placer"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

// Compile-time checks that the adapters satisfy their users' interfaces,
// although neither package imports the other.
var (
	_ activities.Sweeps     = (*postgres.Store)(nil)
	_ activities.Trials     = (*postgres.Store)(nil)
	_ activities.Placements = (*postgres.Store)(nil)
	_ activities.Workflows  = (*temporal.Client)(nil)
	_ activities.Images     = (*docker.Docker)(nil)
	_ activities.Executor   = executorBridge{}
	_ placer.Ledger         = (*postgres.Store)(nil)
	_ reconcile.Ledger      = (*postgres.Store)(nil)
	_ reconcile.Containers  = (*docker.Docker)(nil)
	_ retention.Ledger      = (*postgres.Store)(nil)
	_ retention.Removals    = (*postgres.Store)(nil)
	_ retention.Files       = (*runtrial.Executor)(nil)
	_ artifacts.Ledger      = (*postgres.Store)(nil)
	_ artifacts.Names       = (*postgres.Store)(nil)
	_ artifacts.Files       = (*runtrial.Executor)(nil)

	_ artifacts.CheckpointLedger = (*postgres.Store)(nil)
	_ artifacts.CheckpointFiles  = (*runtrial.Executor)(nil)

	_ api.Sealer             = (*secrets.Keys)(nil)
	_ runtrial.Records       = (*postgres.Store)(nil)
	_ runtrial.Containers    = (*docker.Docker)(nil)
	_ temporal.Messages      = (*postgres.Store)(nil)
	_ temporal.Installations = (*postgres.Store)(nil)
	_ temporal.OpenLedger    = (*postgres.Store)(nil)
	_ temporal.SweepLedger   = (*postgres.Store)(nil)
	_ api.Store              = (*postgres.Store)(nil)
	_ api.Outbox             = (*postgres.Store)(nil)
	_ api.Control            = (*temporal.Client)(nil)
	_ api.Images             = (*temporal.Client)(nil)
	_ cli.LocalDocker        = (*docker.Docker)(nil)
)
