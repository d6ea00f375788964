package pgtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// always are the invariants of the ledger that hold at every moment
// (docs/reliability.md, Invariants): each query returns the violations. A CHECK
// of the schema ensures that no host holds more than it has (I2).
var always = []struct{ name, query string }{
	{"I1 one unfenced attempt per trial", `
		SELECT trial_id || ' has ' || count(*) || ' live attempts' FROM attempts WHERE state IN ('placed', 'running')
		GROUP BY trial_id HAVING count(*) > 1`},
	{"I2 what is reserved is what the leases hold", `
		SELECT h.name || ' has ' || h.memory_reserved_bytes || ' bytes reserved and leases of ' || coalesce(sum(l.memory_bytes), 0)
		FROM hosts h LEFT JOIN leases l ON l.host_id = h.id AND l.state <> 'released'
		GROUP BY h.id HAVING h.memory_reserved_bytes <> coalesce(sum(l.memory_bytes), 0)
			OR h.cpu_milli_reserved <> coalesce(sum(l.cpu_milli), 0) OR h.attempts <> count(l.id)`},
	{"I2 what is reserved of GPUs is what the leases hold", `
		SELECT d.id || ' has ' || d.reserved_bytes || ' bytes reserved and leases of ' || coalesce(sum(l.device_bytes), 0)
		FROM devices d LEFT JOIN leases l ON l.device_id = d.id AND l.state <> 'released'
		GROUP BY d.id HAVING d.reserved_bytes <> coalesce(sum(l.device_bytes), 0) OR d.contexts_reserved <> coalesce(sum(l.contexts), 0)`},
	{"I2 a GPU is shared in one way at a time", `
		SELECT l.device_id || ' is shared as ' || string_agg(DISTINCT a.device_class, ' and ')
		FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE l.device_id IS NOT NULL AND l.state <> 'released'
		GROUP BY l.device_id HAVING count(DISTINCT a.device_class) > 1 OR bool_or(l.exclusive_device) AND count(*) > 1`},
	{"I3 one result per trial and stage", `
		SELECT t.sweep_id || ' trial ' || t.number || ' has ' || count(*) || ' results of stage ' || a.stage
		FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id
		WHERE a.failure_kind = 'ok'
			AND (a.stage = 'main' OR s.spec #>> '{labels,berth/try}' IS DISTINCT FROM 'true') -- a try runs its stages twice
		GROUP BY t.id, a.stage, s.spec -> 'probe' ->> 'mode'
		HAVING count(*) FILTER (WHERE a.purpose = 'run') > 1 OR count(*) FILTER (WHERE a.purpose = 'probe') > 1
			OR count(*) > 1 AND s.spec -> 'probe' ->> 'mode' NOT IN ('short', 'auto') -- a short probe is thrown away`},
	{"I3 a trial that succeeded has its result", `
		SELECT t.id::text FROM trials t WHERE t.state = 'succeeded'
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.failure_kind = 'ok' AND a.stage = 'main')`},
	{"I3 a result was written with the lease's token", `
		SELECT a.id || ' of sweep ' || t.sweep_id || ' trial ' || t.number || ' finished with token ' || a.token || ', its lease has ' || l.token
		FROM attempts a JOIN leases l ON l.attempt_id = a.id JOIN trials t ON t.id = a.trial_id
		WHERE a.state IN ('placed', 'running', 'finished') AND a.token <> l.token`},
	{"I3 an abandoned attempt is fenced", `
		SELECT a.id || ' of sweep ' || t.sweep_id || ' trial ' || t.number || ' is abandoned and keeps token ' || a.token
		FROM attempts a JOIN leases l ON l.attempt_id = a.id JOIN trials t ON t.id = a.trial_id
		WHERE a.state = 'abandoned' AND a.token = l.token`},
	{"I3 the result of a trial is that of its attempt", `
		SELECT t.id || ' of sweep ' || t.sweep_id || ' trial ' || t.number || ' has ' || coalesce(t.value::text, 'none') || ', its attempt ' || coalesce(a.value::text, 'none')
		FROM trials t JOIN LATERAL (SELECT value FROM attempts WHERE trial_id = t.id AND failure_kind = 'ok' AND stage = 'main' ORDER BY number DESC LIMIT 1) a ON true
		WHERE t.state = 'succeeded' AND t.value IS DISTINCT FROM a.value`},
	{"I3 an output that trials share is of an attempt that ended well", `
		SELECT o.key FROM stage_outputs o JOIN attempts a ON a.id = o.attempt_id WHERE a.failure_kind <> 'ok' OR a.stage <> o.stage`},
	{"I4 an end has a cause", `SELECT id::text FROM trials WHERE finished_at IS NOT NULL AND failure_kind = ''`},
}

// quiet are the invariants that hold once everything has ended and been cleaned
// up.
var quiet = []struct{ name, query string }{
	{"I4 every trial ends", `SELECT sweep_id || ' trial ' || number || ' is ' || state FROM trials WHERE finished_at IS NULL`},
	{"I4 every sweep ends", `SELECT id || ' is ' || state FROM sweeps WHERE finished_at IS NULL`},
	{"I5 no attempt is left", `SELECT id || ' is ' || state FROM attempts WHERE finished_at IS NULL`},
	{"I5 no request is left", `SELECT attempt_id::text FROM placement_requests WHERE state = 'waiting'`},
	{"I5 no lease is left", `
		SELECT l.attempt_id || ' of sweep ' || l.sweep_id || ' on ' || h.name || ' is ' || l.state
		FROM leases l JOIN hosts h ON h.id = l.host_id WHERE l.state <> 'released'`},
	{"I5 nothing is left to tell", `SELECT kind || ' to ' || workflow_id FROM outbox`},
}

// Inspector looks at a ledger from outside, as a test's oracle.
type Inspector struct {
	conn *pgx.Conn
}

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

// Broken returns the broken invariants of the ledger, in words; with ended,
// also the broken ones of quiet.
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

// Sweeps returns the ids of all sweeps.
func (i *Inspector) Sweeps(ctx context.Context) ([]string, error) {
	return i.texts(ctx, "looking for sweeps", "SELECT id::text FROM sweeps")
}

// HavingImage returns the names of the hosts that reported an image, by digest or
// ID, and that they pull others.
func (i *Inspector) HavingImage(ctx context.Context, image string) ([]string, error) {
	return i.texts(ctx, "looking for hosts that have an image",
		"SELECT h.name FROM host_images i JOIN hosts h ON h.id = i.host_id WHERE $1 = ANY (i.images) AND i.pulls", image)
}

func (i *Inspector) texts(ctx context.Context, what, query string, args ...any) ([]string, error) {
	rows, err := i.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}

	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}

	return found, nil
}

// Unleased returns which of the attempts have no lease that is not released.
func (i *Inspector) Unleased(ctx context.Context, attemptIDs []string) ([]string, error) {
	return i.texts(ctx, "looking for leases", `
		SELECT wanted FROM unnest($1::text[]) AS wanted
		WHERE NOT EXISTS (SELECT 1 FROM leases WHERE attempt_id = wanted::uuid AND state <> 'released')`, attemptIDs)
}

// ended is the condition for an attempt that has ended for good: an abandoned
// attempt goes back to its host when the host answers again, unless it was
// refused.
const ended = "a.finished_at IS NOT NULL AND (a.state <> 'abandoned' OR a.refused)"

// counters are numbers that must never go back.
var counters = []struct{ name, query string }{
	{"sweeps", "(SELECT count(*) FROM sweeps)"},
	{"trials", "(SELECT count(*) FROM trials)"},
	{"ended trials", "(SELECT count(*) FROM trials WHERE finished_at IS NOT NULL)"},
	{"attempts", "(SELECT count(*) FROM attempts)"},
	{"ended attempts", "(SELECT count(*) FROM attempts a WHERE " + ended + ")"},
	{"events", "(SELECT coalesce(max(sequence), 0) FROM events)"},
	{"tokens", "(SELECT coalesce(max(token), 0) FROM leases)"},
	{"released leases", "(SELECT count(*) FROM leases WHERE state = 'released')"},
}

// Counters returns the numbers that must never go back (I6), by name.
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

// Results returns the ended trials with their results, and the ended attempts
// with their results and tokens, by name, in words that must never change (I3).
func (i *Inspector) Results(ctx context.Context) (map[string]string, error) {
	rows, err := i.conn.Query(ctx, `
		SELECT 'attempt ' || a.number || ' of sweep ' || t.sweep_id || ' trial ' || t.number,
			a.state || ' ' || a.failure_kind || ' ' || coalesce(a.value::text, 'without value') || ', token ' || a.token
		FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE `+ended+`
		UNION ALL
		SELECT 'sweep ' || sweep_id || ' trial ' || number, state || ' ' || failure_kind || ' ' || coalesce(value::text, 'without value')
		FROM trials WHERE finished_at IS NOT NULL
		UNION ALL
		SELECT 'sweep ' || id, state FROM sweeps WHERE finished_at IS NOT NULL`)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}

	found := map[string]string{}

	var name, result string

	_, err = pgx.ForEachRow(rows, []any{&name, &result}, func() error {
		found[name] = result

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}

	return found, nil
}
