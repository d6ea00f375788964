// Package postgres keeps everything Berth must not lose. It is the home of
// pgx: foreign errors are translated here and nowhere else.
//
// Every database error is ambiguous, the work may be done (rule R8): so writes
// have natural keys, can be repeated, and put the messages for Temporal into
// the outbox in the same transaction.
//
// Rows are locked in one order, so that transactions cannot deadlock: trials
// (with the attempts that a trial's end fences), requests, leases, hosts,
// devices, and several rows of one table by id. Sweep rows are locked shared,
// after the trials; an update of an open sweep's row locks no other row.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// Config says which database to use and how patiently. Zero values are defaults.
type Config struct {
	URL          string        // postgres://…; required
	MaxConns     int           // of the pool; default health.ServerPool
	QueryTimeout time.Duration // statement_timeout; default 5s, for a statement that a person may wait for
	Log          *slog.Logger  // default: none
}

// The timeouts of every connection, as pgxpool's own defaults wait for ever
// (reference measurement: a black hole hangs a query until its context ends).
const (
	connectTimeout = 3 * time.Second
	pingTimeout    = 2 * time.Second
	lockTimeout    = 2 * time.Second
	idleInTxLimit  = 10 * time.Second
	connLifetime   = time.Hour
	connJitter     = 5 * time.Minute

	// A silently lost peer is noticed after keepIdle + 3 * keepEvery.
	keepIdle  = 10 * time.Second
	keepEvery = 5 * time.Second
)

// Store is the database. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	q        *dbsqlc.Queries
	log      *slog.Logger
	charts   chan struct{} // full while chartsAtOnce are read
	exports  chan struct{} // full while pages of exportsAtOnce are read
	troubles sync.Map      // why a lead's lock cannot be asked for: string by the lead's name
	rounds   rounds
	observed observed
}

// Open connects, and checks that the database answers and that Berth can run on
// it. Errors: invalid for a server that it cannot run on.
func Open(ctx context.Context, config Config) (*Store, error) {
	pc, err := pgxpool.ParseConfig(config.URL)
	if err = explainURL(config.URL, err); err != nil {
		return nil, err
	}

	pc.MaxConns = int32(cmp.Or(config.MaxConns, health.ServerPool)) //nolint:gosec // G115: a pool size
	pc.PingTimeout = pingTimeout
	pc.MaxConnLifetime = connLifetime
	pc.MaxConnLifetimeJitter = connJitter
	pc.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})

		return nil
	}
	setTimeouts(pc.ConnConfig, cmp.Or(config.QueryTimeout, 5*time.Second))

	store := &Store{q: dbsqlc.New(), charts: make(chan struct{}, chartsAtOnce), exports: make(chan struct{}, exportsAtOnce), log: cmp.Or(config.Log, slog.New(slog.DiscardHandler))}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, translate(err, "connecting to PostgreSQL")
	}

	store.pool = pool

	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return checkServer(ctx, conn.Conn()) })
	if err != nil {
		pool.Close()

		return nil, translate(explainRefusal(err), "connecting to PostgreSQL")
	}

	return store, nil
}

func setTimeouts(c *pgx.ConnConfig, statement time.Duration) {
	c.ConnectTimeout = connectTimeout
	c.RuntimeParams["application_name"] = "berth"
	c.RuntimeParams["statement_timeout"] = milliseconds(statement)
	c.RuntimeParams["lock_timeout"] = milliseconds(lockTimeout)
	c.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(idleInTxLimit)
	c.RuntimeParams["tcp_keepalives_idle"] = strconv.Itoa(int(keepIdle.Seconds()))
	c.RuntimeParams["tcp_keepalives_interval"] = strconv.Itoa(int(keepEvery.Seconds()))
	c.RuntimeParams["tcp_keepalives_count"] = "3"
	c.RuntimeParams["timezone"] = "UTC"
	c.RuntimeParams["jit"] = "off" // compiling the queue of 10,000 retries for a round took 5 s, reading it takes 1 to 2 s (2 cores, 15 processes, 2026-11-26)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Close waits for borrowed connections and closes the pool.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return translate(s.pool.Ping(ctx), "asking PostgreSQL")
}

// inTx runs work in one transaction, which is rolled back when work fails.
func (s *Store) inTx(ctx context.Context, doing string, work func(tx pgx.Tx) error) error {
	return translate(pgx.BeginFunc(ctx, s.pool, work), doing)
}

// SQLSTATE codes that Berth distinguishes (PostgreSQL manual, appendix A).
const (
	codeUniqueViolation     = "23505"
	codeCheckViolation      = "23514"
	codeForeignKeyViolation = "23503"
	codeUndefinedTable      = "42P01"
	codeDiskFull            = "53100"
	codeQueryCanceled       = "57014"
	codeLockNotAvailable    = "55P03"
	codeProtocolViolation   = "08P01"
	codeTooManyConnections  = "53300"
	codeNoPrivilege         = "42501"
	codeNoText              = "22021" // bytes that are not UTF-8, or a NUL

	classData      = "22" // a value that cannot be stored
	classIntegrity = "23" // a row that breaks a constraint
)

// translate turns a foreign error into one of Berth's; doing is the gerund of
// its text. It returns nil and Berth's own errors unchanged.
func translate(err error, doing string) error {
	var (
		ours *berth.Error
		pg   *pgconn.PgError
		scan pgx.ScanArgError
	)

	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, pgx.ErrNoRows):
		return berth.Errorf(berth.KindNotFound, "%s: no such row", doing)
	case errors.As(err, &pg) && pg.Code == codeDiskFull:
		return berth.Errorf(berth.KindUnavailable, "%s: the disk of the database is full; free space there, Berth goes on by itself: %w", doing, err)
	case refusedConnection(err):
		return berth.Errorf(berth.KindUnavailable, "%s: "+tooMany+": %w", doing, err)
	case errors.As(err, &pg) && pg.Code == codeNoPrivilege:
		return berth.Errorf(berth.KindUnavailable, "%s: the database's role lacks a right that this version needs: run `berth migrate` again "+
			"as the schema's owner, with --grant-server and --grant-worker, and Berth goes on by itself: %w", doing, err)
	case errors.As(err, &pg):
		return berth.Errorf(kindOfCode(pg.Code), "%s: %w", doing, err)
	case errors.As(err, &scan): // such as a spec that this version cannot read
		return berth.Errorf(berth.KindInternal, "%s: %w", doing, err)
	default: // refused, reset, timed out: the work may be done or not
		return berth.Errorf(berth.KindUnavailable, "%s: %w", doing, err)
	}
}

func kindOfCode(code string) berth.Kind {
	switch code {
	case codeUniqueViolation:
		return berth.KindConflict
	case codeNoText:
		return berth.KindInvalid
	case codeCheckViolation, codeForeignKeyViolation:
		return berth.KindInternal
	case codeDiskFull, codeQueryCanceled, codeLockNotAvailable:
		return berth.KindUnavailable
	}

	switch code[:2] {
	case "08", "25", "40", "53", "57", "58": // connection, read-only, rollback, resources, operator intervention, input and output
		return berth.KindUnavailable
	default:
		return berth.KindInternal
	}
}

// must wraps the common "exactly one row" rule: zero rows is not_found.
func must(rows int64, err error, doing, what string) error {
	if err != nil {
		return translate(err, doing)
	}

	if rows == 0 {
		return berth.Errorf(berth.KindNotFound, "%s: %s", doing, what)
	}

	return nil
}
