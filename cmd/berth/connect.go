package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	temporallog "go.temporal.io/sdk/log"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/workflows"
)

// backends says where the database and Temporal are.
type backends struct {
	postgresURL       string
	temporalAddress   string
	temporalNamespace string
}

func (b *backends) bind(flags *pflag.FlagSet) {
	flags.StringVar(&b.postgresURL, "postgres-url", "", "database, such as postgres://user:password@host/berth (required)")
	flags.StringVar(&b.temporalAddress, "temporal-address", "", "host:port of Temporal; default: TEMPORAL_ADDRESS, else 127.0.0.1:7233")
	flags.StringVar(&b.temporalNamespace, "temporal-namespace", "", "default: TEMPORAL_NAMESPACE, else default")
}

// connectPatience is how long a starting process waits for the services it
// needs, which often start at the same time.
const connectPatience = 60 * time.Second

// tryTimeout bounds one try of connecting to Temporal.
const tryTimeout = 5 * time.Second

// connections are open connections to both.
type connections struct {
	store    *postgres.Store
	raw      client.Client
	temporal *workflows.Client
}

// connected calls use with connections to both, and closes them after it.
func (b *backends) connected(ctx context.Context, log *slog.Logger, use func(connections) error) error {
	store, err := b.store(ctx, log)
	if err != nil {
		return err
	}
	defer store.Close()

	raw, wrapped, err := b.temporal(ctx, log)
	if err != nil {
		return err
	}
	defer raw.Close()

	return use(connections{store: store, raw: raw, temporal: wrapped})
}

// served is connected for what has to answer while Temporal is away: it is
// connected to when it is needed, and told of the search attributes when it
// comes up.
func (b *backends) served(ctx context.Context, log *slog.Logger, use func(connections) error) error {
	store, err := b.store(ctx, log)
	if err != nil {
		return err
	}
	defer store.Close()

	options, err := b.temporalOptions(log)
	if err != nil {
		return err
	}

	raw, err := client.NewLazyClient(options)
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "reading Temporal's settings: %w", err)
	}
	defer raw.Close()

	wrapped := workflows.NewClient(raw, options.Namespace)
	registering, stop := context.WithCancel(ctx)
	done := make(chan struct{})

	go func() { // joined below
		defer close(done)
		register(registering, wrapped, log)
	}()

	defer func() {
		stop()
		<-done
	}()

	return use(connections{store: store, raw: raw, temporal: wrapped})
}

// register repeats until Temporal knows the search attributes or ctx ends.
func register(ctx context.Context, temporal *workflows.Client, log *slog.Logger) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, tryTimeout) {
		try, cancel := context.WithTimeout(ctx, tryTimeout)
		err := temporal.RegisterSearchAttributes(try)

		cancel()

		if err == nil || ctx.Err() != nil {
			return
		}

		log.Warn("Temporal does not answer; sweeps wait until it does", "error", err)

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// store connects to the database, waiting for it to come up.
func (b *backends) store(ctx context.Context, log *slog.Logger) (*postgres.Store, error) {
	if b.postgresURL == "" {
		return nil, berth.Errorf(berth.KindInvalid, "no database: give --postgres-url or BERTH_POSTGRES_URL, or use `berth dev`")
	}

	var store *postgres.Store

	err := retry(ctx, log, "PostgreSQL", func() (err error) {
		store, err = postgres.Open(ctx, postgres.Config{URL: b.postgresURL})

		return err
	})

	return store, err
}

// temporalOptions are flags over Temporal's own environment variables, from
// which TLS and keys come.
func (b *backends) temporalOptions(log *slog.Logger) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, berth.Errorf(berth.KindInvalid, "reading Temporal's settings: %w", err)
	}

	options.HostPort = cmp.Or(b.temporalAddress, options.HostPort)
	options.Namespace = cmp.Or(b.temporalNamespace, options.Namespace, client.DefaultNamespace)
	options.Logger = temporallog.NewStructuredLogger(log)

	return options, nil
}

// temporal connects to Temporal, waiting for it to come up, and makes its
// search attributes known.
func (b *backends) temporal(ctx context.Context, log *slog.Logger) (client.Client, *workflows.Client, error) {
	options, err := b.temporalOptions(log)
	if err != nil {
		return nil, nil, err
	}

	var (
		raw     client.Client
		wrapped *workflows.Client
	)

	err = retry(ctx, log, "Temporal", func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout) // a server that is starting may take a call and never answer
		defer cancel()

		if raw == nil {
			if raw, err = client.DialContext(ctx, options); err != nil {
				return fmt.Errorf("connecting to Temporal at %s: %w", options.HostPort, err)
			}

			wrapped = workflows.NewClient(raw, options.Namespace)
		}

		return wrapped.RegisterSearchAttributes(ctx)
	})

	return raw, wrapped, err
}

// retry repeats connect until it succeeds or patience is over.
func retry(ctx context.Context, log *slog.Logger, what string, connect func() error) error {
	deadline := time.Now().Add(connectPatience)

	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := connect()
		if err == nil || berth.KindOf(err) == berth.KindInvalid || time.Now().After(deadline) {
			return err
		}

		log.Info("waiting for "+what, "error", err)

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
