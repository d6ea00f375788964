package berth

import "time"

// Retention says which data is kept, and for how long after the end of its
// sweep. Zero means without a limit. By default Berth deletes only events and
// the audit log, which no person made.
type Retention struct {
	Sweeps  time.Duration // the sweep with all that belongs to it
	Outputs time.Duration // files of its attempts on their hosts, checkpoints included, and in the store
	Logs    time.Duration
	Metrics time.Duration
	Audit   time.Duration // since the entry was made
	Events  time.Duration // since the event; a watcher may disconnect for this time and miss nothing

	LogBytes     int64 // of the logs of all ended sweeps; the newest that fit are kept
	MetricPoints int64 // of all ended sweeps; the newest that fit are kept
	AuditRows    int64 // the newest are kept
	EventRows    int64 // the newest are kept
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
	SweepID    string
	TrialID    string
	Number     int           // of the trial
	AttemptIDs []string      // on that host, first to last
	EndedAt    time.Time     // its sweep; 1970 for one that was deleted, which goes before all
	EndedFor   time.Duration // since then, by the database's clock
	Unstored   bool          // some of them wait for the store of artifacts
}

// Removed says why a limit removed the log or the metrics of an attempt, in
// plain words; empty = it did not.
type Removed struct {
	Logs    string
	Metrics string
}
