// Package reconcile is a host's own loop: it reports that the machine is up,
// renews the leases of its running attempts, and mends every difference between
// the ledger and Docker (rule R7).
//
//	container   lease of its token   what happens
//	yes         held                 renew
//	yes         fenced, revivable    nothing: the ledger gives it back, or a newer attempt takes over
//	yes         fenced               stop and remove the container, release the lease
//	yes         none                 stop and remove, once older than the grace
//	no          attempt ended        release the lease: the absence is the proof
//	no          attempt open         nothing: its activity is about to start it; after two
//	                                 graces Temporal is asked whether there is an activity
//
// A round leaves alone a container that another host of the installation made
// on this machine's Docker while any host has a lease for its attempt. It
// removes one without a lease: a host that lost its id cannot do it.
//
// A round changes nothing while the ledger is another installation's or is being
// restored (Config.Check).
//
// Containers are listed before the ledger is read, so that a starting container
// is never taken for an orphan: its lease came first.
//
// A release is the other way round. An executor that read the ledger just
// before the attempt was fenced may start the container just after Docker was
// asked. So absence is proof only when no executor here runs the attempt any
// more and Docker is asked again after that; an executor that begins later
// finds the attempt fenced.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/berthml/berth"
)

// Containers is the Docker of this host.
type Containers interface {
	List(ctx context.Context) ([]berth.Container, error)
	Stop(ctx context.Context, id string, grace time.Duration) error
	Remove(ctx context.Context, id string) error
}

// Ledger is the database for this host.
type Ledger interface {
	RegisterHost(ctx context.Context, h berth.Host, version string) error
	TouchHost(ctx context.Context, hostID string, free berth.HostFree, seen []berth.SeenAttempt) error
	HostLeases(ctx context.Context, hostID string) ([]berth.HostLease, error)
	LeasesOf(ctx context.Context, attemptIDs []string) ([]berth.HostLease, error)
	ReleaseLease(ctx context.Context, attemptID, proof string) error
}

// Workflows is Temporal's record of attempts.
type Workflows interface {
	// Settle ends an attempt in the ledger when nothing will ever run it: its
	// trial's workflow has ended, or is past it. Otherwise it does nothing.
	Settle(ctx context.Context, lease berth.HostLease) error
}

// Attempts is this host's executor, as far as it is in the way of mending, or
// has left something behind.
type Attempts interface {
	// Busy reports whether the executor is at the attempt.
	Busy(attemptID string) bool
	// Untidy reports whether the executor has left files since it was last asked.
	Untidy() bool
	// Leftovers are the attempts that have files here that go when they are over.
	Leftovers() ([]string, error)
	// Clean removes the files of one attempt, unless the executor runs it.
	Clean(attemptID string) error
}

// Config are the loop's settings.
type Config struct {
	Host     berth.Host
	Version  string
	Attempts Attempts
	Waiting  func() []berth.SeenAttempt // attempts without a container that keep their place; nil = none
	// Check fails while the ledger is not the installation's; nil = it always is.
	Check func(ctx context.Context) error
	// Workflows is asked about attempts without a container; nil = it is not.
	Workflows Workflows
	// Problem says why the host takes no attempts, in plain words; empty = it
	// takes them. Nil = it always does.
	Problem func() string
	Free    func(running []berth.Container) berth.HostFree // capacity left by programs outside Berth
	News    <-chan struct{}                                // Free has something that cannot wait for the next round; nil = never
	Every   time.Duration                                  // default berth.LeaseRenewEvery
	Grace   time.Duration                                  // default 1 minute
}

const (
	// defaultGrace is longer than a worker takes to adopt its predecessor's
	// containers, and than Docker takes to make a container of a lease.
	defaultGrace = time.Minute
	// stopGrace is an orphan's time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// removeTimeout bounds the removal of one container. Even if one cannot be
	// killed, a round ends before the next one is due, which renews leases.
	removeTimeout = stopGrace + 3*time.Second
	// removeAtOnce is more than attempts run on a host as a rule, so that those
	// that cannot be killed do not keep the others waiting.
	removeAtOnce = 64
	// roundTimeout bounds each part of a round: to look, and to release.
	roundTimeout = 30 * time.Second
	// noDocker is the problem of a host whose Docker is dead or hangs.
	noDocker = "Docker does not answer"
)

// Reconciler runs the loop.
type Reconciler struct {
	containers Containers
	ledger     Ledger
	config     Config
	log        *slog.Logger
	started    time.Time
	clean      bool                 // nothing was found on disk since the last attempt that ended here
	missing    map[string]time.Time // open attempts without a container, and since when
}

// New returns a reconciler.
func New(containers Containers, ledger Ledger, config Config, log *slog.Logger) *Reconciler {
	if config.Every == 0 {
		config.Every = berth.LeaseRenewEvery
	}

	if config.Grace == 0 {
		config.Grace = defaultGrace
	}

	if config.Problem == nil {
		config.Problem = func() string { return "" }
	}

	return &Reconciler{containers: containers, ledger: ledger, config: config, log: log, missing: map[string]time.Time{}}
}

// Register reports the machine, its free capacity and its running containers.
// The containers come first: attempts that were given up while the machine was
// away go back to it before it counts as ready, so that none is placed in their
// stead.
func (r *Reconciler) Register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	containers, err := r.ownContainers(ctx)
	if err != nil {
		return err
	}

	// Until the ledger has taken the machine, which it refuses to a second
	// worker, its host is not ready.
	starting := r.hostFree(containers)
	starting.Problem = berth.WorkerStarts

	err = r.ledger.TouchHost(ctx, r.config.Host.ID, starting, attemptsOf(containers))
	if berth.KindOf(err) == berth.KindNotFound {
		return r.register(ctx)
	}

	if err == nil {
		err = r.register(ctx)
	}

	if err != nil {
		return err
	}

	return r.ledger.TouchHost(ctx, r.config.Host.ID, r.hostFree(containers), attemptsOf(containers))
}

func (r *Reconciler) register(ctx context.Context) error {
	host, free := r.config.Host, r.config.Free(nil)
	host.MemoryFreeBytes, host.DiskFreeBytes = free.MemoryBytes, free.DiskBytes

	return r.ledger.RegisterHost(ctx, host, r.config.Version)
}

// Run reconciles until ctx ends, and reports the host's free capacity between two rounds when
// there is news. What fails is logged and repeated by the next round.
func (r *Reconciler) Run(ctx context.Context) error {
	r.started = time.Now()

	ticker := time.NewTicker(r.config.Every)
	defer ticker.Stop()

	for do := r.Round; ; {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("reconciling", "error", err)
		}

		select {
		case <-ticker.C:
			do = r.Round
		case <-r.config.News:
			do = r.reportFree
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reportFree reports the host's free capacity, and renews nothing.
func (r *Reconciler) reportFree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	containers, err := r.ownContainers(ctx)
	if err != nil {
		return err
	}

	return r.ledger.TouchHost(ctx, r.config.Host.ID, r.hostFree(containers), nil)
}

// Round reconciles once. It stops and releases nothing within one grace period
// of the start, while activities still adopt their containers.
func (r *Reconciler) Round(ctx context.Context) error {
	looking, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	all, err := r.containers.List(looking)
	if err != nil {
		return errors.Join(err, r.reportNoDocker(looking))
	}

	if r.config.Check != nil {
		if err := r.config.Check(looking); err != nil {
			return err
		}
	}

	containers, foreign := r.splitByHost(all)

	if err := r.renewHost(looking, containers); err != nil {
		return err
	}

	if time.Since(r.started) < r.config.Grace {
		return nil
	}

	leftovers := r.leftovers() // as containers, before the ledger is read

	leases, err := r.ledger.HostLeases(looking, r.config.Host.ID)
	if err != nil {
		return err
	}

	r.sweepDisk(leftovers, leases)

	orphans, err := r.orphans(looking, foreign)

	return errors.Join(err, r.mend(ctx, containers, orphans, leases))
}

// mend removes doomed containers. The rest of the round has its own time: a
// container that cannot be killed delays neither the places of others nor the
// questions to Temporal.
func (r *Reconciler) mend(ctx context.Context, containers []berth.Container, orphans []doomed, leases []berth.HostLease) error {
	fenced := r.fenced(containers, leases)
	r.clean = r.clean && len(fenced) == 0

	err := r.removeAll(ctx, append(fenced, orphans...))

	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	return errors.Join(err, r.release(ctx, containers, leases), r.settleAbsent(ctx, containers, leases))
}

// ownContainers lists this host's containers.
func (r *Reconciler) ownContainers(ctx context.Context) ([]berth.Container, error) {
	all, err := r.containers.List(ctx)
	ours, _ := r.splitByHost(all)

	return ours, err
}

// splitByHost separates this host's containers from others'. The executor's are
// counted, measured and renewed.
func (r *Reconciler) splitByHost(all []berth.Container) (ours, foreign []berth.Container) {
	for _, c := range all {
		if c.HostID == "" || c.HostID == r.config.Host.ID {
			ours = append(ours, c)
		} else {
			foreign = append(foreign, c)
		}
	}

	return ours, foreign
}

// renewHost renews; a host that a person deleted registers again.
func (r *Reconciler) renewHost(ctx context.Context, containers []berth.Container) error {
	seen := attemptsOf(containers)
	if r.config.Waiting != nil {
		seen = append(seen, r.config.Waiting()...)
	}

	err := r.ledger.TouchHost(ctx, r.config.Host.ID, r.hostFree(containers), seen)
	if berth.KindOf(err) == berth.KindNotFound {
		return r.register(ctx)
	}

	return err
}

// reportNoDocker reports that the worker is alive and its Docker is not: nothing
// new is placed, and the leases of possibly running containers are not renewed.
// It reports no GPUs: the memory of our containers would count as used by others.
func (r *Reconciler) reportNoDocker(ctx context.Context) error {
	free := r.config.Free(nil)
	free.Problem, free.Devices = noDocker, nil

	return r.ledger.TouchHost(ctx, r.config.Host.ID, free, nil)
}

// hostFree is the host's free capacity.
func (r *Reconciler) hostFree(running []berth.Container) berth.HostFree {
	free := r.config.Free(running)
	free.Problem = cmp.Or(r.config.Problem(), free.Problem)

	return free
}

func attemptsOf(containers []berth.Container) []berth.SeenAttempt {
	seen := make([]berth.SeenAttempt, 0, len(containers))
	for _, c := range containers {
		seen = append(seen, berth.SeenAttempt{AttemptID: c.AttemptID, Token: c.Token})
	}

	return seen
}
