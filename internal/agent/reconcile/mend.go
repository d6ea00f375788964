package reconcile

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
)

// doomed is a container that must go, and why.
type doomed struct {
	berth.Container

	why string
}

// orphans are the containers of other hosts without a lease. If a container has
// a lease, its own host decides whether it is fenced.
func (r *Reconciler) orphans(ctx context.Context, foreign []berth.Container) ([]doomed, error) {
	if len(foreign) == 0 {
		return nil, nil
	}

	ids := make([]string, len(foreign))
	for i, c := range foreign {
		ids[i] = c.AttemptID
	}

	leases, err := r.ledger.LeasesOf(ctx, ids)
	if err != nil {
		return nil, err
	}

	holds := make(map[string]bool, len(leases))
	for _, l := range leases {
		holds[l.AttemptID] = true
	}

	var orphans []doomed

	for _, c := range foreign {
		if !holds[c.AttemptID] && time.Since(c.CreatedAt) >= r.config.Grace {
			orphans = append(orphans, doomed{c, "another host of this machine made it, and no lease holds a place for it"})
		}
	}

	return orphans, nil
}

// fenced are the containers of this host that have no place.
func (r *Reconciler) fenced(containers []berth.Container, leases []berth.HostLease) []doomed {
	byAttempt := make(map[string]berth.HostLease, len(leases))
	for _, l := range leases {
		byAttempt[l.AttemptID] = l
	}

	var fenced []doomed

	for _, c := range containers {
		if why := r.unwanted(c, byAttempt); why != "" {
			fenced = append(fenced, doomed{c, why})
		}
	}

	return fenced
}

// removeAll removes containers, each with its own timeout: one that cannot be
// killed does not delay the others.
func (r *Reconciler) removeAll(ctx context.Context, containers []doomed) error {
	var (
		group errgroup.Group
		errs  = make([]error, len(containers))
	)

	group.SetLimit(removeAtOnce)

	for i, c := range containers {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, removeTimeout)
			defer cancel()

			errs[i] = r.remove(ctx, c.Container, c.why)

			return nil
		})
	}

	return errors.Join(group.Wait(), errors.Join(errs...))
}

// release frees the leases of ended attempts without a container, on the proof
// that the package comment describes. An attempt whose container was removed in
// this round need not be older than the grace.
func (r *Reconciler) release(ctx context.Context, containers []berth.Container, leases []berth.HostLease) error {
	removed := make(map[string]bool, len(containers))
	for _, c := range containers {
		removed[c.AttemptID] = true
	}

	var over []berth.HostLease

	for _, l := range leases {
		ended := l.AttemptState == berth.AttemptFinished || l.AttemptState == berth.AttemptAbandoned
		if ended && (removed[l.AttemptID] || l.Age > r.config.Grace) && !r.config.Attempts.Busy(l.AttemptID) {
			over = append(over, l)
		}
	}

	if len(over) == 0 {
		return nil
	}

	containers, err := r.containers.List(ctx) // of other hosts, too: absent is absent from the machine
	if err != nil {
		return err
	}

	there := make(map[string]bool, len(containers))
	for _, c := range containers {
		there[c.AttemptID] = true
	}

	var all error

	for _, l := range over {
		if !there[l.AttemptID] {
			all = errors.Join(all, r.releaseOne(ctx, l.AttemptID, "no container of the attempt is on its host"))
		}
	}

	return all
}

// unwanted says why a container must go; empty = it stays.
func (r *Reconciler) unwanted(c berth.Container, leases map[string]berth.HostLease) string {
	lease, held := leases[c.AttemptID]

	switch {
	case held && (lease.Current == c.Token || lease.Revivable):
		return ""
	case held:
		return "a newer attempt has taken over"
	case time.Since(c.CreatedAt) < r.config.Grace:
		return ""
	default:
		return "no lease holds a place for it"
	}
}

func (r *Reconciler) remove(ctx context.Context, c berth.Container, why string) error {
	r.log.Warn("removing container", "container", c.Name, "attempt", c.AttemptID, "reason", why)

	if err := r.containers.Stop(ctx, c.ID, stopGrace); err != nil {
		return err
	}

	return r.containers.Remove(ctx, c.ID)
}

func (r *Reconciler) releaseOne(ctx context.Context, attemptID, proof string) error {
	r.log.Info("releasing lease", "attempt", attemptID, "proof", proof)

	r.clean = false

	return r.ledger.ReleaseLease(ctx, attemptID, proof)
}
