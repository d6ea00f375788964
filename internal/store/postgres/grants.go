package postgres

// grant is the privileges of a server and a worker on one table or sequence. An
// object without an entry is closed to both.
type grant struct {
	name           string
	server, worker string // SQL privileges, with commas between; empty = none
}

// sequences have a privilege of their own, which tables do not know, and one to be moved.
const (
	nextNumber = "USAGE"
	moveNumber = nextNumber + ", UPDATE"
)

// grants names every table, view and sequence of the schema: a test fails for
// one that is not here, so that a new one gets a decision. Foreign keys and
// identity columns need no privilege, and a view reads as its owner.
//
// A worker hosts the activities: it suggests trials, asks for places and ends
// sweeps. It neither makes nor deletes sweeps nor changes a user's values in
// one, and it never sees tokens, sessions and the audit log.
var grants = []grant{
	{"api_tokens", "SELECT, INSERT, UPDATE", ""},
	{"artifact_stores", "SELECT, INSERT", "SELECT, INSERT"},
	{"artifacts", "SELECT, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"artifacts_left_out", "SELECT", "SELECT, INSERT"},
	{"artifacts_unnamed", "SELECT, INSERT, DELETE", "SELECT, DELETE"},
	{"attempts", "SELECT, INSERT, UPDATE", "SELECT, UPDATE"},
	{"audit_log", "SELECT, INSERT, DELETE", "INSERT"},
	{"checkpoints", "SELECT, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"class_footprints", "SELECT", "SELECT"},
	{"device_footprints", "SELECT, DELETE", "SELECT, INSERT, UPDATE"},
	{"devices", "SELECT, UPDATE", "SELECT, INSERT, UPDATE"},
	{"event_sequence", moveNumber, ""},
	{"events", "SELECT, INSERT, UPDATE, DELETE", "INSERT"},
	{"footprints", "SELECT, DELETE", "SELECT, INSERT, UPDATE"},
	{"held_outputs", "SELECT", "SELECT"},
	{"host_images", "SELECT", "SELECT, INSERT, UPDATE"},
	{"hosts", "SELECT, UPDATE", "SELECT, INSERT, UPDATE"},
	{"idempotency_keys", "SELECT, INSERT, DELETE", ""},
	{"image_digests", "SELECT, INSERT, UPDATE", ""},
	{"installation", "SELECT, UPDATE", "SELECT, UPDATE (temporal_bound_at, alarm, alarm_at)"},
	{"lease_tokens", nextNumber, nextNumber},
	{"leases", "SELECT, INSERT, UPDATE", "SELECT, UPDATE"},
	{"log_chunks", "SELECT, DELETE", "SELECT, INSERT, UPDATE"},
	{"machine_points", "SELECT, DELETE", "SELECT, INSERT, UPDATE"},
	{"memory_points", "SELECT, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"metrics", "SELECT, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"missing_images", "SELECT, UPDATE, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"outbox", "SELECT, INSERT, UPDATE, DELETE", "INSERT, SELECT (id, created_at, last_error)"}, // `berth doctor` counts waiting rows
	{"output_removals", "SELECT, INSERT, UPDATE, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"paces", "SELECT, DELETE", "SELECT, INSERT, UPDATE"},
	{"placement_requests", "SELECT, UPDATE", "SELECT, INSERT, UPDATE"},
	{"priors", "SELECT, INSERT", "SELECT"},
	{"rungs", "SELECT", "SELECT, INSERT"},
	{"schema_version", "SELECT", "SELECT"},
	{"secrets", "SELECT, INSERT, UPDATE, DELETE", "SELECT"},
	{"sessions", "SELECT, INSERT, DELETE", ""},
	{"shapes", "SELECT", "SELECT, INSERT"},
	{"shared_outputs", "SELECT", "SELECT"},
	{"stage_outputs", "SELECT, DELETE", "SELECT, INSERT, UPDATE, DELETE"},
	{"sweep_entries", "SELECT, INSERT", "SELECT"},
	{"sweep_files", "SELECT, INSERT", "SELECT"},
	{"sweep_offers", "SELECT", ""},
	{"sweeps", "SELECT, INSERT, UPDATE, DELETE", "SELECT, UPDATE (state, reason, run_id, max_parallel, started_at, resumed_at, finished_at)"},
	{"trials", "SELECT, UPDATE, DELETE", "SELECT, INSERT, UPDATE"},
}
