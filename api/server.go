package api

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/web"
)

// Deps are the parts of Berth that the API needs.
type Deps struct {
	Store    *postgres.Store
	Temporal Temporal
	Objects  Objects       // files of trials; nil = not stored
	Keys     *secrets.Keys // that seal secrets; nil = none can be stored
	Web      fs.FS         // the web interface; nil = none
	Disk     Disk          // reads disks of this machine; nil = it reads none
	Log      *slog.Logger
}

// Disk is the file system of a directory of this machine; zero when it cannot be
// asked.
type Disk func(of, dir string) health.Disk

// Config says where the API listens and which callers it admits. Zero values
// are defaults.
type Config struct {
	Address      string        // default 127.0.0.1:8080; not loopback only with a token
	AllowedHosts []string      // names, beside localhost, under which callers may reach it
	Policy       spec.Policy   // the administrator's rules for every spec
	Limits       Limits        // of callers
	Grace        time.Duration // for requests in flight when it stops; default 10s

	Version      string          // of the program; default "(devel)"
	Installation string          // its UUID; empty = not told apart from others on this host
	Retention    berth.Retention // how long things are kept, for callers to know; others keep to it

	origin   string // that of PublicURL, as browsers write it; empty without one
	basePath string // that of PublicURL, which the proxy strips; empty = /

	// PublicURL is where a proxy shows the server, such as https://berth.example/;
	// empty = there is none, or it is not known. Its path is where browsers see the pages, and the proxy strips it.
	PublicURL string

	Certificate *Certificate // the server's own; nil = it speaks plain HTTP

	TemporalUI        string // URL of Temporal's web UI, for links; empty = no links
	TemporalNamespace string // where the workflows are; default "default"
}

const (
	defaultAddress   = "127.0.0.1:8080"
	defaultNamespace = "default" // of Temporal
	defaultVersion   = "(devel)" // as Go calls a build without one
)

// Limits of a connection. A stream moves its own write deadline.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	defaultGrace      = 10 * time.Second
)

// Server serves the API. Make one with New, then Run it.
type Server struct {
	deps     Deps
	config   Config
	log      *slog.Logger
	handler  http.Handler
	web      *web.Site // nil = none
	feed     *feed
	usage    usage
	recheck  time.Duration // how long a stream outlives its caller's token
	idle     time.Duration // after how long a stream of events says that it lives
	stopping chan struct{} // closed when streams must end
	stopOnce sync.Once

	mu       sync.Mutex
	listener net.Listener
}

// New prepares a server. Errors: invalid for limits that cannot be; otherwise
// it fails only on a description that cannot be read.
func New(deps Deps, config Config) (*Server, error) {
	config.Address = cmp.Or(config.Address, defaultAddress)
	config.Grace = cmp.Or(config.Grace, defaultGrace)
	config.TemporalNamespace = cmp.Or(config.TemporalNamespace, defaultNamespace)
	config.Version = cmp.Or(config.Version, defaultVersion)

	limits, err := config.Limits.orDefault()
	if err != nil {
		return nil, err
	}

	config.Limits = limits

	if config, err = config.withPublicURL(); err != nil {
		return nil, err
	}

	s := &Server{
		deps: deps, config: config, log: cmp.Or(deps.Log, slog.Default()),
		usage: usage{streams: map[string]int{}, rates: map[string]*rate.Limiter{}},
		feed:  newFeed(deps.Store), recheck: recheckCaller, idle: streamIdle, stopping: make(chan struct{}),
	}

	if deps.Web != nil {
		if s.web, err = web.New(deps.Web, config.basePath); err != nil {
			return nil, err
		}
	}

	engine, err := s.routes()
	if err != nil {
		return nil, err
	}

	s.handler, err = s.protect(engine)

	return s, err
}

// Handler is the whole API, for a server of one's own.
func (s *Server) Handler() http.Handler { return s.handler }

// Addr is where the server listens; empty before Listen.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.listener == nil {
		return ""
	}

	return s.listener.Addr().String()
}

// URL is where clients on this machine find the server; it needs Listen first.
func (s *Server) URL() string {
	if s.config.Certificate != nil {
		return "https://" + s.Addr()
	}

	return "http://" + s.Addr()
}

// Listen opens the address, so that Addr is known before Run. Errors: invalid
// for an address that others can reach before a token was ever made.
func (s *Server) Listen(ctx context.Context) error {
	address, err := net.ResolveTCPAddr("tcp", s.config.Address)
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "reading the address %q: %w", s.config.Address, err)
	}

	if !address.IP.IsLoopback() {
		tokens, err := s.deps.Store.CountTokens(ctx)
		if err != nil {
			return err
		}

		if tokens.Made == 0 {
			return berth.Errorf(berth.KindInvalid, "refusing to listen on %s, which other machines can reach, while no API token exists: "+
				"start on 127.0.0.1, run `berth token create NAME --role admin`, then start here", s.config.Address)
		}

		if tokens.Valid == 0 {
			s.log.Warn("no API token is valid any more, so every call is refused", "next", recovery)
		}
	}

	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", address.String())
	if err != nil {
		return berth.Errorf(berth.KindUnavailable, "listening on %s: %w", s.config.Address, err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.listener = listener

	return nil
}

// Run serves until ctx ends, then lets requests in flight finish for
// Config.Grace. It listens unless Listen did.
func (s *Server) Run(ctx context.Context) error {
	if s.Addr() == "" {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}

	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	server.RegisterOnShutdown(s.endStreams)

	serve := server.Serve
	if s.config.Certificate != nil {
		server.TLSConfig = s.config.Certificate.config()
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}

	s.log.Info("API listens", "address", s.Addr(), "tls", s.config.Certificate != nil)

	group, groupCtx := errgroup.WithContext(ctx)

	group.Go(func() error { return s.feed.run(groupCtx) })

	group.Go(func() error {
		err := serve(s.listener)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}

		return berth.Errorf(berth.KindUnavailable, "serving the API: %w", err)
	})
	group.Go(func() error {
		<-groupCtx.Done()

		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
		defer cancel()

		if err := server.Shutdown(grace); err != nil {
			return errors.Join(berth.Errorf(berth.KindUnavailable, "stopping the API: %w", err), server.Close())
		}

		return nil
	})

	return group.Wait()
}

// endStreams ends streams, which have no end of their own.
func (s *Server) endStreams() {
	s.stopOnce.Do(func() { close(s.stopping) })
}
