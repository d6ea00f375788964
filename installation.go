package berth

import "time"

// Installation is one Berth: a database, and the namespace of Temporal that it
// is bound to. Database, namespace, store of artifacts, data directories and
// containers keep the id, so that none is taken for another's.
type Installation struct {
	ID      string     // UUID, made with the schema
	BoundAt *time.Time // when a process last found a namespace bound to it; nil = never
	Alarm   string     // a problem that only a person can solve; empty = none
}
