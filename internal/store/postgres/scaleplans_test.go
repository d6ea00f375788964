package postgres_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// planRecorder explains each statement of a store in the state of the database, and in the
// transaction, in which the store runs it: just before, and rolled back.
type planRecorder struct {
	mu      sync.Mutex
	worst   map[string]measured // by the statement's name
	problem error
}

// measured is the cost of one run of a statement.
type measured struct {
	milliseconds float64
	read, rows   int64    // rows of tables read; rows returned or changed
	whole        []string // tables of more than wholeTable rows that it read entirely
}

// wholeTable is how many rows a table may have that statements read whole.
const wholeTable = 10_000

type explaining struct{}

var statementName = regexp.MustCompile(`^-- name: (\w+) `)

func (r *planRecorder) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	name := statementName.FindStringSubmatch(data.SQL)
	if name == nil || ctx.Value(explaining{}) != nil {
		return ctx
	}

	m, err := explainStatement(context.WithValue(ctx, explaining{}, true), conn, data)

	r.mu.Lock()
	defer r.mu.Unlock()

	if err != nil && r.problem == nil {
		r.problem = fmt.Errorf("explaining %q: %w", name[1], err)
	}

	if worst, ok := r.worst[name[1]]; !ok || m.milliseconds > worst.milliseconds {
		r.worst[name[1]] = m
	}

	return ctx
}

func (*planRecorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// explainStatement runs a statement three times and returns the fastest run: the first reads
// the disk, and any may meet other work of the machine.
func explainStatement(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) (measured, error) {
	fastest := measured{milliseconds: math.Inf(1)}

	for range 3 {
		var plans []struct {
			Plan          planNode
			ExecutionTime float64 `json:"Execution Time"` //nolint:tagliatelle // PostgreSQL's
		}

		if err := explainOnce(ctx, conn, data, &plans); err != nil {
			return measured{}, err
		}

		m := measured{milliseconds: plans[0].ExecutionTime, rows: plans[0].Plan.rows()}
		plans[0].Plan.count(&m)

		if m.milliseconds < fastest.milliseconds {
			fastest = m
		}
	}

	return fastest, nil
}

func explainOnce(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData, plans any) error {
	begin, end := "BEGIN", "ROLLBACK"
	if conn.PgConn().TxStatus() == 'T' {
		begin, end = "SAVEPOINT explained", "ROLLBACK TO explained; RELEASE explained"
	}

	if _, err := conn.Exec(ctx, begin); err != nil {
		return err
	}

	var text []byte

	err := conn.QueryRow(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+data.SQL, data.Args...).Scan(&text)

	if _, undone := conn.Exec(ctx, end); cmp.Or(err, undone) != nil {
		return cmp.Or(err, undone)
	}

	return json.Unmarshal(text, plans)
}

// planNode is a node of EXPLAIN (ANALYZE, FORMAT JSON): rows are the mean of its loops.
type planNode struct {
	Type      string     `json:"Node Type"`                     //nolint:tagliatelle // PostgreSQL's, as below
	Relation  string     `json:"Relation Name"`                 //nolint:tagliatelle // the same
	Parent    string     `json:"Parent Relationship"`           //nolint:tagliatelle // the same
	Rows      float64    `json:"Actual Rows"`                   //nolint:tagliatelle // the same
	Loops     float64    `json:"Actual Loops"`                  //nolint:tagliatelle // the same
	Filtered  float64    `json:"Rows Removed by Filter"`        //nolint:tagliatelle // the same
	Rechecked float64    `json:"Rows Removed by Index Recheck"` //nolint:tagliatelle // the same
	Plans     []planNode `json:"Plans"`                         //nolint:tagliatelle // the same
}

// rows counts the rows that the statement returns, or changes in any of its
// parts.
func (n planNode) rows() int64 {
	if n.Type == "ModifyTable" || n.changes() > 0 {
		return max(n.changes(), int64(n.Rows*n.Loops))
	}

	return int64(n.Rows * n.Loops)
}

func (n planNode) changes() (rows int64) {
	for _, child := range n.Plans {
		if n.Type == "ModifyTable" && child.Parent == "Outer" {
			rows += int64(child.Rows * child.Loops)
		}

		rows += child.changes()
	}

	return rows
}

// count adds the rows read by the scans below a node.
func (n planNode) count(m *measured) {
	if n.Relation != "" && strings.HasSuffix(n.Type, "Scan") {
		read := int64((n.Rows + n.Filtered + n.Rechecked) * n.Loops)
		m.read += read

		if n.Type == "Seq Scan" && read > wholeTable {
			m.whole = append(m.whole, n.Relation)
		}
	}

	for _, child := range n.Plans {
		child.count(m)
	}
}

// measuredNames are the statements that ran.
func (r *planRecorder) measuredNames() map[string]measured {
	r.mu.Lock()
	defer r.mu.Unlock()

	return maps.Clone(r.worst)
}

// bound limits a statement's time and the rows it may read: rowsEach for each returned
// row, and least in any case.
type bound struct {
	milliseconds    float64
	rowsEach, least int64
}

var (
	// usual is for statements of rounds, requests and pages.
	usual = bound{milliseconds: 100, rowsEach: 50, least: 1000}
	// hourly is for statements of retention, which no person waits for: well within the five
	// seconds of a statement.
	hourly = bound{milliseconds: 2000, rowsEach: 500, least: 1000}
)

// ownBounds are bounds of statements that the usual bound does not fit.
var ownBounds = map[string]bound{
	// They read all 19,200 open leases for the few due ones. An index of expires_at would
	// make each heartbeat cost more.
	"SuspectLeases": {milliseconds: 20, least: 20_000}, "CountSuspectLeases": {milliseconds: 20, least: 20_000}, "ListHosts": {milliseconds: 20, least: 20_000},
	// They read all 11,200 waiting requests: for positions in the queue, for requests that no
	// sweep offers, for requests that the ledger refuses.
	"ListQueue": {milliseconds: 100, least: 50_000}, "ListStuckRequests": {milliseconds: 50, least: 20_000},
	// They change all of these, when why they wait has changed.
	"HoldRequests": {milliseconds: 500, rowsEach: 50, least: 50_000},
	"StoreReasons": {milliseconds: 200, rowsEach: 50, least: 1000},
	// It reads the newest 200 of each sweep, and looks for running trials in all of it: one sweep has
	// 100,000.
	"TrialTimes": {milliseconds: 100, rowsEach: 400, least: 150_000},
	// It reads all 19,200 open leases, and their attempts.
	"ListHolders": {milliseconds: 50, least: 50_000},
	// They count the trials of the sweeps of a page; one sweep has 100,000.
	"CountTrials": {milliseconds: 50, least: 150_000},
	// It looks for trials without a request or an attempt among all open ones, once a minute.
	"ListSilentTrials": {milliseconds: 100, least: 200_000},
	// It reads all 801 GPUs for the ones with an advice.
	"ClearAdvice": {milliseconds: 10, least: 5000},
	// It groups the messages of a sweep's failed trials; one sweep has 100,000 trials.
	"ListFailures": {milliseconds: 200, least: 150_000},
	// They read the newest 10,000 ended trials, and three rungs of each.
	"OldestOfEnded": {milliseconds: 20, least: 15_000}, "InsightRungs": {milliseconds: 100, least: 60_000},
	// They compare all 2,002 sweeps.
	"ListSweepsWithSecret": {milliseconds: 10, least: 5000}, "OpenSweeps": {milliseconds: 10, least: 5000},
	"FindSweeps": {milliseconds: 10, least: 5000}, "BestTrials": {milliseconds: 10, least: 5000},
	// The last trials of a space are drawn from the untried remainder: it is compared with all 100,000 tried
	// ones.
	"ListTrialParams": {milliseconds: 150, rowsEach: 1},
}
