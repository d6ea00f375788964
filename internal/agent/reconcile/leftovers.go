package reconcile

import "github.com/berthml/berth"

// leftovers are the attempts with files on disk, looked for at the start and
// after an attempt has ended here: executors clean up after themselves, unless
// they were killed, or the attempt was fenced while no executor ran it.
func (r *Reconciler) leftovers() []string {
	if untidy := r.config.Attempts.Untidy(); r.clean && !untidy {
		return nil
	}

	left, err := r.config.Attempts.Leftovers()
	if err != nil {
		r.log.Warn("looking for what attempts left on disk", "error", err)
	}

	return left
}

// sweepDisk removes the files of attempts that hold no place here. The files
// are older than the read of the ledger, and a lease precedes its files.
func (r *Reconciler) sweepDisk(leftovers []string, leases []berth.HostLease) {
	holds := make(map[string]bool, len(leases))
	for _, l := range leases {
		holds[l.AttemptID] = true
	}

	r.clean = true

	for _, id := range leftovers {
		switch {
		case holds[id]: // its executor cleans up, or its release lets us look again
		case r.config.Attempts.Busy(id):
			r.clean = false
		default:
			if err := r.config.Attempts.Clean(id); err != nil {
				r.clean = false
				r.log.Warn("removing what an attempt left on disk", "attempt", id, "error", err)
			}
		}
	}
}
