package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/cli"
	"github.com/berthml/berth/internal/config"
	"github.com/berthml/berth/internal/control/backends"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/workflows"
)

// development is the settings of `berth dev` beside server and machine.
type development struct {
	backends.Backends
	machine
	serving

	temporalPort int
	noWorker     bool

	keep []func(ctx context.Context, log *slog.Logger) // look after the servers of our own until ctx ends
}

func devCommand() *cobra.Command {
	var d development

	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: database, Temporal, server and worker",
		Long: "Runs PostgreSQL, Temporal's development server, the Berth server and a worker, with all\n" +
			"data below one directory. Ctrl-C stops all; starting again resumes all, also after a crash.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.Flags())
			if err != nil {
				return err
			}

			if err := typedBackends(cmd.Flags()); err != nil {
				return err
			}

			if !d.noWorker {
				if err := d.check(); err != nil {
					return err
				}
			}

			return endedInOrder(cmd.Context(), d.run(cmd.Context(), cmd.ErrOrStderr(), log))
		},
	}

	flags := cmd.Flags()
	d.machine.bind(flags)
	d.serving.bind(flags)
	config.Directory(flags, &d.gpus.DataDir, "data-dir", datadir.Default(), "everything is kept below it")
	flags.StringVar(&d.PostgresURL, "postgres-url", "", "use this database instead of one of our own")
	flags.StringVar(&d.TemporalAddress, "temporal-address", "", "use this Temporal instead of one of our own")
	flags.StringVar(&d.TemporalNamespace, "temporal-namespace", "", "default: default")
	flags.IntVar(&d.temporalPort, "temporal-port", 7233, "preferred port of our own Temporal; that of its web UI is 1000 higher; 0 = any two")
	bindArtifacts(flags, &d.serving.artifacts, "artifacts/ in the data directory")
	bindSecretsKey(flags, &d.serving.secretsKey, "file with the key of secrets; default: "+secrets.DevFile+" in the data directory, which is made")
	flags.BoolVar(&d.noWorker, "no-worker", false, "leave out the worker, to run `berth worker` beside it")

	return cmd
}

// typedBackends refuses a database or a Temporal that the environment or the
// configuration file names, such as a team's in an administrator's shell: `berth
// dev` would migrate it, and use it with a Temporal of its own. Errors: invalid.
func typedBackends(flags *pflag.FlagSet) error {
	for _, name := range []string{"postgres-url", "temporal-address", "temporal-namespace"} {
		if flags.Changed(name) && !config.Typed(flags, name) {
			return berth.Errorf(berth.KindInvalid, "`berth dev` runs a database and a Temporal of its own, and %[1]s (or %[2]s of the file that %[3]s names) is of others: "+
				"`unset %[1]s`, or type --%[2]s", config.Variable(name), name, config.FileVariable)
		}
	}

	return nil
}

// addressFree refuses an address that the server could not listen on, before a database
// is made for it. Errors: conflict.
func addressFree(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return berth.Errorf(berth.KindConflict, "cannot listen on %s: %w; end what uses it (another `berth dev`?), or choose another by --listen 127.0.0.1:8081, but give two on one machine each a part of it", address, err)
	}

	return listener.Close()
}

// run starts the parts in the order in which they need each other and stops
// them in the reverse order.
func (d *development) run(ctx context.Context, out io.Writer, log *slog.Logger) (err error) {
	if err := addressFree(ctx, d.listen); err != nil {
		return err
	}

	unlock, err := datadir.Lock(d.gpus.DataDir, datadir.DevLock, "berth dev")
	if err != nil {
		return err
	}
	defer unlock()

	d.serving.artifacts = cmp.Or(d.serving.artifacts, filepath.Join(d.gpus.DataDir, "artifacts"))
	d.machine.artifacts = d.serving.artifacts

	if d.serving.secretsKey == "" {
		if d.serving.secretsKey, err = secrets.Own(d.gpus.DataDir); err != nil {
			return err
		}
	}

	d.machine.secretsKey = d.serving.secretsKey

	_ = os.Remove(filepath.Join(d.gpus.DataDir, "url")) // of an earlier run; written again once we serve

	stopPostgres, err := d.startPostgres(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopPostgres()) }()

	if err := postgres.Migrate(ctx, d.PostgresURL); err != nil {
		return err
	}

	stopTemporal, err := d.startTemporal(log) //nolint:contextcheck // it outlives ctx, so that workers can detach
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTemporal()) }()

	if err := d.Save(d.gpus.DataDir); err != nil {
		return err
	}

	return d.Connected(ctx, log, func(c backends.Connections) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return runServer(ctx, d.serving, c, log, d.announce(out)) })

		if !d.noWorker {
			group.Go(func() error { return runWorker(ctx, d.machine, c, log) })
		}

		for _, keep := range d.keep {
			group.Go(func() error {
				keep(ctx, log)

				return nil
			})
		}

		return group.Wait()
	})
}

func (d *development) startPostgres(ctx context.Context, log *slog.Logger) (stop func() error, err error) {
	if d.PostgresURL != "" {
		return func() error { return nil }, nil
	}

	p, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: filepath.Join(d.gpus.DataDir, "postgres")})
	if err != nil {
		return nil, err
	}

	log.Info("PostgreSQL runs", "port", p.Port)

	d.PostgresURL, d.keep = p.URL, append(d.keep, p.Keep)

	return p.Stop, nil
}

func (d *development) startTemporal(log *slog.Logger) (stop func() error, err error) {
	if d.TemporalAddress != "" {
		return func() error { return nil }, nil
	}

	t, err := devstack.StartTemporal(devstack.TemporalConfig{
		Dir: filepath.Join(d.gpus.DataDir, "temporal"), Port: d.temporalPort,
		Search: searchAttributes(),
	})
	if err != nil {
		return nil, err
	}

	log.Info("Temporal runs", "address", t.Address, "ui", t.UI)

	d.TemporalAddress, d.temporalUI, d.keep = t.Address, t.UI, append(d.keep, t.Keep)
	d.OwnTemporal = true

	return t.Stop, nil
}

// searchAttributes names the types as Temporal's command line wants them.
func searchAttributes() map[string]string {
	named := make(map[string]string)
	for name, kind := range workflows.SearchAttributes() {
		named[name] = kind.String()
	}

	return named
}

// announce says where everything is, once the server listens.
func (d *development) announce(out io.Writer) func(url string) {
	return func(url string) {
		if err := os.WriteFile(filepath.Join(d.gpus.DataDir, "url"), []byte(url+"\n"), 0o644); err != nil { //nolint:gosec // G306: nothing secret
			fmt.Fprintln(out, "berth: writing the server's URL: "+err.Error())
		}

		fmt.Fprintf(out, "\nBerth is ready.\n  web          %s\n  API          %s/api/v1   (documentation: %s/api/docs)\n", url, url, url)

		if d.temporalUI != "" {
			fmt.Fprintf(out, "  Temporal UI  %s\n", d.temporalUI)
		}

		try := "Try: "
		if url != cli.DefaultServer { // else the command would reach the Berth there
			try = "First, where you type commands: export BERTH_SERVER=" + url + "\nTry: "
		}

		fmt.Fprintf(out, "  data         %s\n\n"+try+"berth sweep submit -f sweep.yaml --wait   (Ctrl-C here stops all; starting again resumes)\n\n", d.gpus.DataDir)
	}
}
