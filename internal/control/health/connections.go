package health

import (
	"fmt"
	"strings"
)

// How many connections to the database a process has at once. Connections held for
// good, for locks and listeners, come on top of the pool.
const (
	ServerPool      = 8
	serverLocks     = 5 // of the placer, the publisher of events, retention, orphan checks, the cleaner of the store
	serverListeners = 4 // of the placer, the outbox, the publisher of events, the feeds of pages

	// ServerConnections is the most that a server has.
	ServerConnections = ServerPool + serverLocks + serverListeners

	// WorkerPool is enough: 300 simulated trials, 64 at once, took 9 s with 4 and 9 to
	// 15 s with 8 (two cores, 2026-11-26); two loops store files beside that.
	WorkerPool = 5
	// WorkerConnections is the most that a worker has: one more for its lock.
	WorkerConnections = WorkerPool + 1
)

// ConnectionUse is how many connections to the database there are under one limit.
type ConnectionUse struct {
	Role  string // the role with this CONNECTION LIMIT; empty = max_connections of the server, without the ones kept for superusers
	Used  int
	Limit int
	Fixed bool // the limit is on PostgreSQL's command line, which goes over ALTER SYSTEM
}

// connectionsNear is the share of a limit, in percent, from which on Berth warns.
const connectionsNear = 80

func (u ConnectionUse) near() bool { return u.Used*100 >= u.Limit*connectionsNear }

func (u ConnectionUse) String() string {
	if u.Role == "" {
		return fmt.Sprintf("%d of the %d connections that PostgreSQL takes are in use", u.Used, u.Limit)
	}

	return fmt.Sprintf("%d of the %d connections of the role %q are in use", u.Used, u.Limit, u.Role)
}

// next is the command that raises the limit.
func (u ConnectionUse) next() string {
	switch {
	case u.Role == "" && u.Fixed:
		return fmt.Sprintf("start PostgreSQL with -c max_connections=%d on its command line, which has it now and goes over ALTER SYSTEM: trials go on "+
			"(with docker-compose.yml BERTH_POSTGRES_CONNECTIONS=%[1]d in .env, then docker compose up -d)", 2*(u.Limit+connectionsKept))
	case u.Role == "":
		return fmt.Sprintf("as an administrator of PostgreSQL ALTER SYSTEM SET max_connections = %d, and restart it: trials go on", 2*(u.Limit+connectionsKept))
	default:
		return fmt.Sprintf("as an administrator of PostgreSQL ALTER ROLE \"%s\" CONNECTION LIMIT %d", strings.ReplaceAll(u.Role, `"`, `""`), 2*u.Limit)
	}
}

// connectionsKept is superuser_reserved_connections of PostgreSQL.
const connectionsKept = 3

// connections is the finding about limits of connections. When one is reached,
// machines that are added, or restart, do not get in.
func (h State) connections() Finding {
	f := Finding{OK: true, Part: "connections", What: "how many connections the database takes is not known"}

	var what, near, next []string

	for _, use := range h.Connections {
		what = append(what, use.String())

		if use.near() {
			near, next = append(near, use.String()), append(next, use.next())
		}
	}

	if len(what) > 0 {
		f.What = strings.Join(what, "; ")
	}

	if len(near) > 0 {
		f.Warn, f.What = true, strings.Join(near, "; ")
		f.Next = strings.Join(next, "; ") + fmt.Sprintf("; a worker takes up to %d connections and a server up to %d, and at the limit none is added", WorkerConnections, ServerConnections)
	}

	return f
}
