package berth

import "time"

// Installation is one Berth: a database, and the namespace of Temporal that it
// is bound to. Both keep the id, so that neither is taken for another's.
type Installation struct {
	ID       string     // UUID, made with the schema
	Database string     // differs between a database and its restored copy; empty = PostgreSQL does not say
	BoundAt  *time.Time // when a process last found a namespace bound to it; nil = never
	Alarm    string     // what only a person can decide; empty = nothing
}
