package backends

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/internal/store/postgres"
)

// Backends say where the database and Temporal are.
type Backends struct {
	PostgresURL       string
	TemporalAddress   string
	TemporalNamespace string
	TLS               TLS
	OwnTemporal       bool // `berth dev` runs it: Temporal's own variables and its file name another
	MaxConnections    int  // to the database at once, beside one for its lock; 0 = postgres.Config's default
}

// Bind adds their flags.
func (b *Backends) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&b.PostgresURL, "postgres-url", "", "database, such as postgres://user:password@host/berth (required)")
	flags.StringVar(&b.TemporalAddress, "temporal-address", "", "host:port of Temporal; default: TEMPORAL_ADDRESS, else 127.0.0.1:7233")
	flags.StringVar(&b.TemporalNamespace, "temporal-namespace", "", "default: TEMPORAL_NAMESPACE, else default")
	b.TLS.bind(flags)
}

const (
	// ConnectPatience is how long a starting process waits for the services it
	// needs, which often start at the same time.
	ConnectPatience = 60 * time.Second
	// forEver is the patience of a server, which answers while Temporal is away.
	forEver = time.Duration(math.MaxInt64)
	// TryTimeout bounds one try of asking Temporal.
	TryTimeout = 5 * time.Second
)

// Connections are open connections to both.
type Connections struct {
	Store        *postgres.Store
	Installation berth.Installation
	Raw          client.Client
	Temporal     *temporal.Client
	Identity     *temporal.Identity
}

// Connected calls use with connections to both once both answer and belong
// together, and closes them after it.
func (b *Backends) Connected(ctx context.Context, log *slog.Logger, use func(Connections) error) error {
	return b.Open(ctx, log, func(c Connections) error {
		if err := Register(ctx, c.Temporal, ConnectPatience, log); err != nil {
			return err
		}

		err := Retry(ctx, log, "Temporal", ConnectPatience, func() error {
			_, err := c.Identity.Check(ctx) // a namespace that was lost is the server's alarm; this machine's containers go on

			return err
		})
		if err != nil {
			return err
		}

		return use(c)
	})
}

// Served connects processes that must answer while Temporal is away.
func (b *Backends) Served(ctx context.Context, log *slog.Logger, use func(Connections) error) error {
	return b.Open(ctx, log, func(c Connections) error {
		ctx, stop := context.WithCancel(ctx)
		done := make(chan struct{})

		go func() { // joined below
			defer close(done)

			if err := Register(ctx, c.Temporal, forEver, log); err != nil && ctx.Err() == nil {
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

// Open calls use with a connection to the database, and with a connection to
// Temporal that is made on first use.
func (b *Backends) Open(ctx context.Context, log *slog.Logger, use func(Connections) error) error {
	store, err := b.openStore(ctx, log)
	if err != nil {
		return err
	}
	defer store.Close()

	var installation berth.Installation

	if err := Retry(ctx, log, "PostgreSQL", ConnectPatience, func() (err error) { // it may crash in this moment
		installation, err = store.Installation(ctx)

		return err
	}); err != nil {
		return err
	}

	raw, wrapped, err := b.DialTemporal(log, installation)
	if err != nil {
		return err
	}
	defer raw.Close()

	return use(Connections{
		Store: store, Installation: installation, Raw: raw, Temporal: wrapped,
		Identity: &temporal.Identity{Ledger: store, Client: wrapped, Log: log},
	})
}

// Register makes Berth's search attributes known to Temporal once it answers.
func Register(ctx context.Context, c *temporal.Client, patience time.Duration, log *slog.Logger) error {
	return Retry(ctx, log, "Temporal", patience, func() error {
		try, cancel := context.WithTimeout(ctx, TryTimeout) // a server that is starting may take a call and never answer
		defer cancel()

		if err := c.RegisterSearchAttributes(try); err != nil {
			return fmt.Errorf("%w (--temporal-address and --temporal-tls-... say how to reach it)", err)
		}

		return nil
	})
}

// openStore connects to the database, waiting for it to come up and for its schema.
func (b *Backends) openStore(ctx context.Context, log *slog.Logger) (*postgres.Store, error) {
	if b.PostgresURL == "" {
		return nil, berth.Errorf(berth.KindInvalid, "no database: give --postgres-url or BERTH_POSTGRES_URL, or use `berth dev`")
	}

	var store *postgres.Store

	err := Retry(ctx, log, "PostgreSQL", ConnectPatience, func() (err error) {
		if store, err = postgres.Open(ctx, postgres.Config{URL: b.PostgresURL, Log: log, MaxConns: b.MaxConnections}); err != nil {
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

// DialTemporal prepares a client of Temporal. Flags override Temporal's own
// environment variables, which hold TLS and keys; a Temporal that `berth dev`
// runs ignores these.
func (b *Backends) DialTemporal(log *slog.Logger, installation berth.Installation) (client.Client, *temporal.Client, error) {
	options, err := b.clientOptions()
	if err != nil {
		return nil, nil, err
	}

	options.Logger = newSDKLog(log)

	raw, err := client.NewLazyClient(options)
	if err != nil {
		return nil, nil, berth.Errorf(berth.KindInvalid, "preparing a client of Temporal: %w", err)
	}

	return raw, temporal.NewClient(raw, options.Namespace, installation.ID), nil
}

// Retry repeats connect until it succeeds or patience is over.
func Retry(ctx context.Context, log *slog.Logger, what string, patience time.Duration, connect func() error) error {
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
