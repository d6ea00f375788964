package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/berthml/berth"
)

// settleAbsent ends attempts that the ledger believes to run here and that run no
// more: a restored database believes that of attempts that have ended since.
// Absence alone is no proof, as their activity may be about to start them; so
// settle asks Temporal about attempts that stay absent for a grace.
func (r *Reconciler) settleAbsent(ctx context.Context, containers []berth.Container, leases []berth.HostLease) error {
	if r.config.Workflows == nil {
		return nil
	}

	present := make(map[string]bool, len(containers))
	for _, c := range containers {
		present[c.AttemptID] = true
	}

	var all error

	missing := make(map[string]time.Time)

	for _, l := range leases {
		open := l.AttemptState == berth.AttemptPlaced || l.AttemptState == berth.AttemptRunning
		if !open || present[l.AttemptID] || l.Age < r.config.Grace || r.config.Attempts.Busy(l.AttemptID) {
			continue
		}

		since, known := r.missing[l.AttemptID]
		if !known {
			since = time.Now()
		}

		if known && time.Since(since) >= r.config.Grace {
			all = errors.Join(all, r.config.Workflows.Settle(ctx, l))
			since = time.Now() // asked again after another grace
		}

		missing[l.AttemptID] = since
	}

	r.missing = missing

	return all
}
