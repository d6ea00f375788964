package pgtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// always are the invariants of the ledger that hold at every moment (DESIGN.md
// section 9): each query returns what breaks it.
var always = []struct{ name, query string }{
	{"I1 one unfenced attempt per trial", `
		SELECT trial_id || ' has ' || count(*) || ' live attempts' FROM attempts WHERE state IN ('placed', 'running')
		GROUP BY trial_id HAVING count(*) > 1`},
	{"I2 what is reserved is what the leases hold", `
		SELECT h.name || ' has ' || h.memory_reserved_bytes || ' bytes reserved and leases of ' || coalesce(sum(l.memory_bytes), 0)
		FROM hosts h LEFT JOIN leases l ON l.host_id = h.id AND l.state <> 'released'
		GROUP BY h.id HAVING h.memory_reserved_bytes <> coalesce(sum(l.memory_bytes), 0)
			OR h.cpu_milli_reserved <> coalesce(sum(l.cpu_milli), 0) OR h.attempts <> count(l.id)`},
	{"I2 no host holds more than it has", `
		SELECT name || ' has ' || memory_reserved_bytes || ' of ' || memory_bytes - memory_headroom_bytes FROM hosts
		WHERE memory_reserved_bytes > memory_bytes - memory_headroom_bytes OR cpu_milli_reserved > cpu_milli`},
	{"I3 one result per trial", `
		SELECT trial_id || ' has ' || count(*) || ' results' FROM attempts WHERE failure_kind = 'ok'
		GROUP BY trial_id HAVING count(*) > 1`},
	{"I3 a trial that succeeded has its result", `
		SELECT t.id::text FROM trials t WHERE t.state = 'succeeded'
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.failure_kind = 'ok')`},
	{"I4 an end has a cause", `SELECT id::text FROM trials WHERE finished_at IS NOT NULL AND failure_kind = ''`},
}

// quiet are those that hold once everything has ended and been tidied.
var quiet = []struct{ name, query string }{
	{"I4 every trial ends", `SELECT sweep_id || ' trial ' || number || ' is ' || state FROM trials WHERE finished_at IS NULL`},
	{"I4 every sweep ends", `SELECT id || ' is ' || state FROM sweeps WHERE finished_at IS NULL`},
	{"I5 no lease is left", `SELECT attempt_id || ' is ' || state FROM leases WHERE state <> 'released'`},
	{"I5 no attempt is left", `SELECT id || ' is ' || state FROM attempts WHERE finished_at IS NULL`},
	{"I5 no request is left", `SELECT attempt_id::text FROM placement_requests WHERE state = 'waiting'`},
	{"I5 nothing is left to tell", `SELECT kind || ' to ' || workflow_id FROM outbox`},
}

// Inspector looks at a ledger from outside, as a test's oracle.
type Inspector struct{ conn *pgx.Conn }

// Inspect connects to a database.
func Inspect(ctx context.Context, url string) (*Inspector, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connecting to look at the ledger: %w", err)
	}

	return &Inspector{conn: conn}, nil
}

// Close ends the connection.
func (i *Inspector) Close(ctx context.Context) { _ = i.conn.Close(ctx) }

// Broken returns which invariants of the ledger are broken, in words; with
// ended, also those that hold only once everything has ended.
func (i *Inspector) Broken(ctx context.Context, ended bool) ([]string, error) {
	invariants := always
	if ended {
		invariants = slices.Concat(always, quiet)
	}

	var broken []string

	// One snapshot: rows of different moments contradict each other.
	err := pgx.BeginTxFunc(ctx, i.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, invariant := range invariants {
			rows, err := tx.Query(ctx, invariant.query)
			if err != nil {
				return fmt.Errorf("%s: %w", invariant.name, err)
			}

			found, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return fmt.Errorf("%s: %w", invariant.name, err)
			}

			if len(found) > 0 {
				broken = append(broken, invariant.name+": "+strings.Join(found, "; "))
			}
		}

		return nil
	})

	return broken, err
}

// Unleased returns which of the attempts have no lease that is not released.
func (i *Inspector) Unleased(ctx context.Context, attemptIDs []string) ([]string, error) {
	rows, err := i.conn.Query(ctx, `
		SELECT wanted FROM unnest($1::text[]) AS wanted
		WHERE NOT EXISTS (SELECT 1 FROM leases WHERE attempt_id = wanted::uuid AND state <> 'released')`, attemptIDs)
	if err != nil {
		return nil, fmt.Errorf("looking for leases: %w", err)
	}

	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("looking for leases: %w", err)
	}

	return found, nil
}

// counters are what must never go back.
var counters = []struct{ name, query string }{
	{"sweeps", "(SELECT count(*) FROM sweeps)"},
	{"trials", "(SELECT count(*) FROM trials)"},
	{"ended trials", "(SELECT count(*) FROM trials WHERE finished_at IS NOT NULL)"},
	{"attempts", "(SELECT count(*) FROM attempts)"},
	{"ended attempts", "(SELECT count(*) FROM attempts WHERE finished_at IS NOT NULL)"},
	{"events", "(SELECT coalesce(max(sequence), 0) FROM events)"},
	{"tokens", "(SELECT coalesce(max(token), 0) FROM leases)"},
	{"released leases", "(SELECT count(*) FROM leases WHERE state = 'released')"},
}

// Counters returns what must never go back (I6), by name.
func (i *Inspector) Counters(ctx context.Context) (map[string]int64, error) {
	queries := make([]string, len(counters))
	values := make([]int64, len(counters))
	targets := make([]any, len(counters))

	for n, c := range counters {
		queries[n], targets[n] = c.query, &values[n]
	}

	if err := i.conn.QueryRow(ctx, "SELECT "+strings.Join(queries, ", ")).Scan(targets...); err != nil {
		return nil, fmt.Errorf("reading counters: %w", err)
	}

	found := make(map[string]int64, len(counters))
	for n, c := range counters {
		found[c.name] = values[n]
	}

	return found, nil
}
