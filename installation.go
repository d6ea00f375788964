package berth

import "time"

// Installation is one Berth: a database, and the namespace of Temporal that it
// is bound to. Both keep the id, so that neither is taken for another's.
type Installation struct {
	ID       string     // UUID, made with the schema
	Database string     // differs between a database and its restored copy; empty = PostgreSQL does not say
	BoundAt  *time.Time // when a process last found a namespace bound to it; nil = never
	Alarm    string     // what only a person can decide; empty = nothing

	// Databases are the installation's own database, as a process noted it when Temporal was bound to it, and then those that it
	// has replaced, newest first. A restored copy has those of its original. Empty = not known: an older version bound it.
	Databases []string
}

// Own reports whether the database is noted as the installation's own: it is no restored copy.
func (i Installation) Own() bool {
	return i.Database != "" && len(i.Databases) > 0 && i.Databases[0] == i.Database
}

// Replaced are the databases that this one has replaced; none of one that is not known to be the installation's own.
func (i Installation) Replaced() []string {
	if !i.Own() {
		return nil
	}

	return i.Databases[1:]
}
