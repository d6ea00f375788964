package berth

import (
	"time"
)

// Installation is one Berth: a database, and the namespace of Temporal that it
// is bound to. Database, namespace, store of artifacts, data directories and
// containers keep the id, so that none is taken for another's.
type Installation struct {
	ID      string     // UUID, made with the schema
	BoundAt *time.Time // when a process last found a namespace bound to it; nil = never
	Alarm   string     // a problem that only a person can solve; empty = none
}

// Retention says what is kept, and for how long after the end of its sweep.
// Zero means without a limit. The flags of `berth server` have the defaults (cmd/berth).
type Retention struct {
	Sweeps  time.Duration // the sweep with all its rows: trials, metrics, logs
	Outputs time.Duration // files of its attempts on their hosts, checkpoints included, and in the store
}

// FetchTime is how long after the end of its sweep a size limit deletes
// nothing, so that a person or a script can fetch results.
const FetchTime = time.Hour

// OutputRemoval names an attempt whose files its host removes.
type OutputRemoval struct {
	AttemptID string
	TrialID   string
}

// TrialOutputs names the files that a host may have of a trial of an ended sweep.
type TrialOutputs struct {
	TrialID    string
	AttemptIDs []string      // on that host, first to last
	EndedFor   time.Duration // since its sweep ended, by the database's clock; since 1970 for a deleted one
	Unstored   bool          // some of them wait for the store of artifacts
}
