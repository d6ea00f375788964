package main

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/internal/temporal"
)

// backends says where the database and Temporal are.
type backends struct {
	postgresURL       string
	temporalAddress   string
	temporalNamespace string
	temporalTLS       temporalTLS
	ownTemporal       bool         // `berth dev` runs it: Temporal's own variables and its file name another
	durable           func() error // see temporal.Client; nil = of a Temporal that is not ours
	connections       int          // to the database at once, beside one for its lock; 0 = postgres.Config's default
}

func (b *backends) bind(flags *pflag.FlagSet) {
	flags.StringVar(&b.postgresURL, "postgres-url", "", "database, such as postgres://user:password@host/berth (required)")
	flags.StringVar(&b.temporalAddress, "temporal-address", "", "host:port of Temporal; default: TEMPORAL_ADDRESS, else 127.0.0.1:7233")
	flags.StringVar(&b.temporalNamespace, "temporal-namespace", "", "default: TEMPORAL_NAMESPACE, else default")
	b.temporalTLS.bind(flags)
}

const (
	// connectPatience is how long a starting process waits for the services it
	// needs, which often start at the same time.
	connectPatience = 60 * time.Second
	// forEver is the patience of a server, which answers while Temporal is away.
	forEver = time.Duration(math.MaxInt64)
	// tryTimeout bounds one try of asking Temporal.
	tryTimeout = 5 * time.Second
)

// connections are open connections to both.
type connections struct {
	store        *postgres.Store
	installation berth.Installation
	raw          client.Client
	temporal     *temporal.Client
	identity     *temporal.Identity
}

// connected calls use with connections to both once both answer and belong
// together, and closes them after it.
func (b *backends) connected(ctx context.Context, log *slog.Logger, use func(connections) error) error {
	return b.open(ctx, log, func(c connections) error {
		if err := register(ctx, c.temporal, connectPatience, log); err != nil {
			return err
		}

		err := retry(ctx, log, "Temporal", connectPatience, func() error {
			_, err := c.identity.Check(ctx) // a namespace that was lost is the server's alarm; this machine's containers go on

			return err
		})
		if err != nil {
			return err
		}

		return use(c)
	})
}

// served connects processes that must answer while Temporal is away.
func (b *backends) served(ctx context.Context, log *slog.Logger, use func(connections) error) error {
	return b.open(ctx, log, func(c connections) error {
		ctx, stop := context.WithCancel(ctx)
		done := make(chan struct{})

		go func() { // joined below
			defer close(done)

			if err := register(ctx, c.temporal, forEver, log); err != nil && ctx.Err() == nil {
				log.Error("making Berth's search attributes known to Temporal", "error", err)
			}
		}()

		defer func() {
			stop()
			<-done
		}()

		return use(c)
	})
}

// open calls use with a connection to the database, and with a connection to
// Temporal that is made on first use.
func (b *backends) open(ctx context.Context, log *slog.Logger, use func(connections) error) error {
	store, err := b.store(ctx, log)
	if err != nil {
		return err
	}
	defer store.Close()

	var installation berth.Installation

	if err := retry(ctx, log, "PostgreSQL", connectPatience, func() (err error) { // it may crash in this moment
		installation, err = store.Installation(ctx)

		return err
	}); err != nil {
		return err
	}

	raw, wrapped, err := b.temporal(log, installation)
	if err != nil {
		return err
	}
	defer raw.Close()

	wrapped.Durable = b.durable

	return use(connections{
		store: store, installation: installation, raw: raw, temporal: wrapped,
		identity: &temporal.Identity{Ledger: store, Client: wrapped, Log: log},
	})
}

// register makes Berth's search attributes known to Temporal once it answers.
func register(ctx context.Context, c *temporal.Client, patience time.Duration, log *slog.Logger) error {
	return retry(ctx, log, "Temporal", patience, func() error {
		try, cancel := context.WithTimeout(ctx, tryTimeout) // a server that is starting may take a call and never answer
		defer cancel()

		return c.RegisterSearchAttributes(try)
	})
}

// store connects to the database, waiting for it to come up and for its schema.
func (b *backends) store(ctx context.Context, log *slog.Logger) (*postgres.Store, error) {
	if b.postgresURL == "" {
		return nil, berth.Errorf(berth.KindInvalid, "no database: give --postgres-url or BERTH_POSTGRES_URL, or use `berth dev`")
	}

	var store *postgres.Store

	err := retry(ctx, log, "PostgreSQL", connectPatience, func() (err error) {
		if store, err = postgres.Open(ctx, postgres.Config{URL: b.postgresURL, Log: log, MaxConns: b.connections}); err != nil {
			return err
		}

		if err := store.CheckSchema(ctx); err != nil {
			store.Close()

			return err
		}

		return nil
	})

	return store, err
}

// temporal prepares a client of Temporal. Flags override Temporal's own
// environment variables, which hold TLS and keys; a Temporal that `berth dev`
// runs ignores these.
func (b *backends) temporal(log *slog.Logger, installation berth.Installation) (client.Client, *temporal.Client, error) {
	var options client.Options

	if !b.ownTemporal {
		var err error
		if options, err = envconfig.LoadDefaultClientOptions(); err != nil {
			return nil, nil, berth.Errorf(berth.KindInvalid, "reading Temporal's settings: %w", err)
		}
	}

	options.HostPort = cmp.Or(b.temporalAddress, options.HostPort)
	options.Namespace = cmp.Or(b.temporalNamespace, options.Namespace, client.DefaultNamespace)
	options.Logger = newSDKLog(log)

	if err := b.temporalTLS.apply(&options); err != nil {
		return nil, nil, err
	}

	raw, err := client.NewLazyClient(options)
	if err != nil {
		return nil, nil, berth.Errorf(berth.KindInvalid, "reading Temporal's settings: %w", err)
	}

	return raw, temporal.NewClient(raw, options.Namespace, installation.ID), nil
}

// retry repeats connect until it succeeds or patience is over.
func retry(ctx context.Context, log *slog.Logger, what string, patience time.Duration, connect func() error) error {
	began := time.Now()

	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := connect()
		if kind := berth.KindOf(err); err == nil || kind == berth.KindInvalid || kind == berth.KindConflict || time.Since(began) > patience {
			return err // waiting mends neither a wrong setting nor a lock of another process
		}

		log.Info("waiting for "+what, "error", err)

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
