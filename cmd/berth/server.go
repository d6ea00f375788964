package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/frontend"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/config"
	"github.com/berthml/berth/internal/control/backends"
	"github.com/berthml/berth/internal/control/retention"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/internal/scheduler/placer"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// serving is what the server may be told.
type serving struct {
	listen     string
	hosts      []string
	temporalUI string
	firstToken bool
	limits     api.Limits
	images     []string // repositories that are allowed; empty = any
	network    bool     // trials may have one
	keep       berth.Retention
	artifacts  string // where files of trials are stored; empty = they are not
	empty      bool   // an --artifacts store that has lost its mark is a new one

	publicURL       string // where a proxy shows the server
	tlsCert, tlsKey string // files of the server's own certificate; empty = plain HTTP
	secretsKey      string // file with the key of secrets; empty = none can be stored
}

func (s *serving) bind(flags *pflag.FlagSet) {
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address of the API; another than loopback needs a token first")
	flags.StringSliceVar(&s.hosts, "allowed-hosts", nil, "names by which clients may call the server, beside localhost")
	flags.BoolVar(&s.firstToken, "first-token", false, "when no token was ever made, make an admin's and print it once on standard error")
	flags.StringVar(&s.temporalUI, "temporal-ui", "", "URL of Temporal's web UI, for links")
	flags.StringSliceVar(&s.images, "allow-images", nil,
		"repositories that images of sweeps may be of, as patterns such as registry.example/team/*, with commas between; default: any (docs/production.md)")
	flags.BoolVar(&s.network, "allow-network", true, "sweeps may ask for a network for their trials (network: true)")
	flags.Float64Var(&s.limits.Rate, "rate", 0, "requests a second per token, and twice as many at once; default 200")
	flags.Var((*config.Age)(&s.keep.Sweeps), "keep-sweeps", "how long after its end a sweep is kept with its trials, metrics, logs and files; default: for ever")
	flags.Var((*config.Age)(&s.keep.Outputs), "keep-outputs", "how long after the end of its sweep a trial's files are kept; default: as long as the sweep")
	flags.BoolVar(&s.empty, "artifacts-empty", false, "take an --artifacts store that has lost its mark for a new, empty one: start once with it")
}

// bindTeam binds what `berth dev` has not, which serves one person on this machine.
func (s *serving) bindTeam(flags *pflag.FlagSet) {
	flags.StringVar(&s.publicURL, "public-url", "", "URL by which browsers reach the server through a proxy, such as https://berth.example/: allows its name, makes cookies Secure")
	flags.StringVar(&s.tlsCert, "tls-cert", "", "PEM file of the server's certificate and its chain, read again when it changes; with --tls-key: serve HTTPS")
	flags.StringVar(&s.tlsKey, "tls-key", "", "PEM file of its key")
}

// certificate is the server's own; nil without one.
func (s *serving) certificate(log *slog.Logger) (*api.Certificate, error) {
	if s.tlsCert == "" && s.tlsKey == "" {
		return nil, nil //nolint:nilnil // there is none
	}

	return api.LoadCertificate(s.tlsCert, s.tlsKey, log)
}

func serverCommand() *cobra.Command {
	var (
		b backends.Backends
		s serving
	)

	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve the API and place trials: needs the database and Temporal, never Docker",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.Flags())
			if err != nil {
				return err
			}

			return endedInOrder(cmd.Context(), b.Served(cmd.Context(), log, func(c backends.Connections) error {
				return runServer(cmd.Context(), s, c, log, func(url string) { log.Info("API serves", "url", url) })
			}))
		},
	}

	b.Bind(cmd.Flags())
	s.bind(cmd.Flags())
	s.bindTeam(cmd.Flags())
	bindArtifacts(cmd.Flags(), &s.artifacts, "files stay on the machines that wrote them")
	bindSecretsKey(cmd.Flags(), &s.secretsKey,
		"file with the key that seals secrets; its public part is enough. Without it none can be stored (docs/production.md)")

	return cmd
}

// runServer serves until ctx ends. Several servers may run: one of them places
// and publishes, all answer and relay.
func runServer(ctx context.Context, s serving, c backends.Connections, log *slog.Logger, ready func(url string)) error {
	store, steering := c.Store, c.Temporal

	policy := spec.Policy{AllowImages: s.images, DenyNetwork: !s.network}
	if err := policy.Check(); err != nil {
		return fmt.Errorf("--allow-images: %w", err)
	}

	certificate, err := s.certificate(log)
	if err != nil {
		return err
	}

	keys, err := openKeys(s.secretsKey)
	if err != nil {
		return err
	}

	files, err := artifacts.OpenReady(ctx, s.artifacts, c.Installation.ID, store, log)
	if err != nil {
		return err
	}

	if files != nil {
		defer files.Close() //nolint:errcheck // only idle connections
	}

	if files != nil && s.empty {
		if err := files.TakeEmpty(ctx); err != nil {
			return err
		}
	}

	var objects api.Objects // stays nil without a store
	if files != nil {
		objects = files
	}

	server, err := api.New(api.Deps{Store: store, Objects: objects, Keys: keys, Temporal: steering, Web: frontend.Files(), Disk: datadir.LocalDisk, Log: log},
		api.Config{
			Address: s.listen, AllowedHosts: s.hosts, Limits: s.limits, Version: version(), Installation: c.Installation.ID, Retention: s.keep,
			PublicURL: s.publicURL, Certificate: certificate, Policy: policy, TemporalUI: s.temporalUI, TemporalNamespace: steering.Namespace(),
		})
	if err != nil {
		return err
	}

	if built := frontend.BuiltFor(); built != "" && built != api.DescriptionSum() {
		log.Warn("the web interface in this program was built for another version of the API; build with `make`")
	}

	if s.firstToken {
		if err := makeFirstToken(ctx, store, os.Stderr); err != nil {
			return err
		}
	}

	if err := server.Listen(ctx); err != nil {
		return err
	}

	relay := &temporal.Relay{Messages: store, Bound: c.Identity.Bound, Client: steering, Log: log}
	publisher := &api.Publisher{Store: store, Log: log}
	keeper := &retention.Keeper{Ledger: store, Keep: s.keep, Log: log}
	orphans := &temporal.Orphans{Ledger: store, Identity: c.Identity, Client: steering, Log: log}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Identity.Run(ctx) })
	group.Go(func() error { return relay.Run(ctx) })
	group.Go(func() error { return placer.New(store, log).Run(ctx) })
	group.Go(func() error { return publisher.Run(ctx) })
	group.Go(func() error { return keeper.Run(ctx) })
	group.Go(func() error { return orphans.Run(ctx) })
	group.Go(func() error { return server.Run(ctx) })

	if files != nil {
		cleaner := &artifacts.Cleaner{Names: store, Store: files, Log: log}

		group.Go(func() error { return cleaner.Run(ctx) })
	}

	ready(server.URL())

	return group.Wait()
}

// makeFirstToken lets a person into a server that is reachable only with a
// token, such as one in a container. There is no default password.
func makeFirstToken(ctx context.Context, store *postgres.Store, out io.Writer) error {
	tokens, err := store.CountTokens(ctx)
	if err != nil || tokens.Made > 0 {
		return err
	}

	text, _, err := api.MakeToken(ctx, store, berth.Token{Name: "first", Role: "admin"}, 0)
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "\nThe first token, an admin's, shown once: %s\nUse it as BERTH_TOKEN; make others by `berth token create`.\n\n", text)

	return nil
}
