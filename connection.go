package berth

import (
	"fmt"
	"strings"
)

// ConnectionUse is how many connections to the database there are under one limit.
type ConnectionUse struct {
	Role  string // whose CONNECTION LIMIT it is; empty = max_connections of the server, but for those kept for superusers
	Used  int
	Limit int
}

// connectionsNear is the share of a limit, in percent, from which on a person is told:
// a worker takes six connections, and a server up to fourteen.
const connectionsNear = 80

func (u ConnectionUse) near() bool { return u.Used*100 >= u.Limit*connectionsNear }

func (u ConnectionUse) String() string {
	if u.Role == "" {
		return fmt.Sprintf("%d of the %d connections that PostgreSQL takes are in use", u.Used, u.Limit)
	}

	return fmt.Sprintf("%d of the %d connections of the role %q are in use", u.Used, u.Limit, u.Role)
}

// next is what a person types to raise the limit.
func (u ConnectionUse) next() string {
	if u.Role == "" {
		return fmt.Sprintf("as an administrator of PostgreSQL ALTER SYSTEM SET max_connections = %d, and restart it: trials go on", 2*(u.Limit+connectionsKept))
	}

	return fmt.Sprintf("as an administrator of PostgreSQL ALTER ROLE \"%s\" CONNECTION LIMIT %d", strings.ReplaceAll(u.Role, `"`, `""`), 2*u.Limit)
}

// connectionsKept is superuser_reserved_connections of PostgreSQL.
const connectionsKept = 3

// connections is the finding about limits of connections. When one is reached,
// machines that are added, or restart, do not get in.
func (h Health) connections() Finding {
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
		f.Next = strings.Join(next, "; ") + "; a worker takes up to 6 connections and a server up to 14, and at the limit none is added"
	}

	return f
}
