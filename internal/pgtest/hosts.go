package pgtest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
)

// What a test asks of hosts, and of the attempts that wait for them.

// PassHostGrace makes the removal of a host as old as requests wait for its
// replacement (berth.HostGrace).
func (i *Inspector) PassHostGrace(ctx context.Context, name string) error {
	_, err := i.conn.Exec(ctx, `UPDATE hosts SET removed_at = removed_at - $2::interval, last_seen_at = last_seen_at - $2::interval
		WHERE name = $1 AND removed_at IS NOT NULL`, name, berth.HostGrace)

	return err
}

// Cordoned returns which hosts are cordoned although a container has started there
// that was placed since the last one that could not, or have their next test in more
// than half an hour, the longest pause between two.
func (i *Inspector) Cordoned(ctx context.Context) ([]string, error) {
	return i.texts(ctx, "looking for cordoned hosts", `
		SELECT h.name || ' is cordoned (' || h.cordon_reason || '), and has started the container of ' || a.id || ' since'
		FROM hosts h JOIN LATERAL (SELECT id FROM attempts WHERE host_id = h.id AND container_id <> '' AND placed_at > h.failed_at LIMIT 1) a ON true
		WHERE h.cordoned_at IS NOT NULL
		UNION ALL
		SELECT name || ' is cordoned (' || cordon_reason || '), and has its next test at ' || test_at
		FROM hosts WHERE cordoned_at IS NOT NULL AND test_at > now() + interval '30 minutes'`)
}

// TestCordoned makes the next test attempt of every cordoned host due.
func (i *Inspector) TestCordoned(ctx context.Context) error {
	_, err := i.conn.Exec(ctx, "UPDATE hosts SET test_at = now() WHERE cordoned_at IS NOT NULL")

	return err
}

// Roomy returns the names of the hosts that take new attempts of any sweep but
// the one that they may be cordoned for, and have at least that much room. A
// request for a whole host may have one of them kept free.
func (i *Inspector) Roomy(ctx context.Context, memoryBytes, cpuMilli int64) (names []string, wholeHostWanted bool, err error) {
	rows, err := i.conn.Query(ctx, `
		SELECT name FROM hosts h
		WHERE state = 'ready' AND (cordoned_at IS NULL OR cardinality(failed_sweeps) = 1) AND memory_bytes - memory_headroom_bytes - memory_reserved_bytes >= $1 AND cpu_milli - cpu_milli_reserved >= $2
			AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.host_id = h.id AND l.exclusive AND l.state <> 'released')
		ORDER BY name`, memoryBytes, cpuMilli)
	if err != nil {
		return nil, false, fmt.Errorf("looking for room: %w", err)
	}

	if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, false, fmt.Errorf("looking for room: %w", err)
	}

	if err := i.conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM placement_requests WHERE state = 'waiting' AND exclusive)`).
		Scan(&wholeHostWanted); err != nil {
		return nil, false, fmt.Errorf("looking for room: %w", err)
	}

	return names, wholeHostWanted, nil
}

// Bounded is a live attempt of a sweep with max_parallel.
type Bounded struct {
	Attempt, Sweep, Host string // ids of the first two, name of the last
	PlacedAt             time.Time
	MaxParallel          int
}

// Bounded returns the live attempts of sweeps with max_parallel as they are now
// by the database's clock, which it returns as well.
func (i *Inspector) Bounded(ctx context.Context) (all []Bounded, now time.Time, err error) {
	rows, err := i.conn.Query(ctx, `
		SELECT coalesce(a.id::text, ''), coalesce(t.sweep_id::text, ''), coalesce(h.name, ''), coalesce(a.placed_at, now()), coalesce(s.max_parallel, 0), clock.now
		FROM (SELECT now()) clock LEFT JOIN (attempts a JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id AND s.max_parallel > 0
			JOIN hosts h ON h.id = a.host_id) ON a.state IN ('placed', 'running')`)
	if err != nil {
		return nil, now, fmt.Errorf("looking at max_parallel: %w", err)
	}

	var one Bounded

	_, err = pgx.ForEachRow(rows, []any{&one.Attempt, &one.Sweep, &one.Host, &one.PlacedAt, &one.MaxParallel, &now}, func() error {
		if one.Attempt != "" {
			all = append(all, one)
		}

		return nil
	})
	if err != nil {
		return nil, now, fmt.Errorf("looking at max_parallel: %w", err)
	}

	return all, now, nil
}

// Canary is an open sweep of one trial.
type Canary struct {
	Sweep   string // id
	Host    string // name of that of its attempt; empty = it waits for a place
	Started bool   // its container ran
}

// Canaries returns those of the sweeps that are open. One whose attempt was
// abandoned waits for a place as one does that never had any.
func (i *Inspector) Canaries(ctx context.Context, sweepIDs []string) (all []Canary, err error) {
	rows, err := i.conn.Query(ctx, `
		SELECT s.id::text, coalesce(max(h.name), ''), coalesce(bool_or(a.started_at IS NOT NULL OR a.finished_at IS NOT NULL), false)
		FROM sweeps s LEFT JOIN (trials t JOIN attempts a ON a.trial_id = t.id AND a.state <> 'abandoned' JOIN hosts h ON h.id = a.host_id)
			ON t.sweep_id = s.id
		WHERE s.id = ANY ($1::uuid[]) AND s.finished_at IS NULL
		GROUP BY s.id`, sweepIDs)
	if err != nil {
		return nil, fmt.Errorf("looking for canaries: %w", err)
	}

	if all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Canary]); err != nil {
		return nil, fmt.Errorf("looking for canaries: %w", err)
	}

	return all, nil
}

// HavingImage returns the names of the hosts that told that they have an image, by
// digest or ID, and that they pull others.
func (i *Inspector) HavingImage(ctx context.Context, image string) ([]string, error) {
	return i.texts(ctx, "looking for hosts that have an image",
		"SELECT h.name FROM host_images i JOIN hosts h ON h.id = i.host_id WHERE $1 = ANY (i.images) AND i.pulls", image)
}
