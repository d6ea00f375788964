package runtrial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// Containers is the Docker of this host. An id may also be a name. Every call
// but Wait and Logs ends by itself when Docker hangs.
type Containers interface {
	// Name is what the attempt's container is called, whether or not it is there.
	Name(attemptID string) string
	// Ensure starts the attempt's container, or adopts the one that is there.
	// A start that can never work is a *berth.StartError.
	Ensure(ctx context.Context, l berth.Launch) (berth.Container, error)
	// Wait returns when the container has exited. Its context may be long.
	Wait(ctx context.Context, id string) (berth.Container, error)
	// Stop sends SIGTERM, and SIGKILL after grace. An absent container is a success.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Remove removes a container that does not run. An absent one is a success.
	Remove(ctx context.Context, id string) error
	// Logs calls take with the output after from, in order. With follow it ends
	// when the container has exited.
	Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error
}

// Records is what the database keeps of attempts. Every error of kind
// unavailable is ambiguous, the work may be done (rule R8): repeating a call
// that was done is harmless.
type Records interface {
	Assignee(ctx context.Context, attemptID string) (berth.Assignee, error)
	AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error
	FinishAttempt(ctx context.Context, r berth.Result) error
	PutMetrics(ctx context.Context, attemptID string, points []berth.MetricPoint) error
	PutLog(ctx context.Context, attemptID string, piece berth.LogPiece) error
}

// Meter reads a running container's cgroup. It fails once the container is gone.
type Meter interface {
	Read() (berth.MemorySample, error)
}

// Config are an executor's settings. Zero values are defaults.
type Config struct {
	DataDir     string        // for the attempts' directories; required
	Grace       time.Duration // between SIGTERM and SIGKILL; default 30s (CONTRACT.md)
	SampleEvery time.Duration // of memory; default 200ms: growth-mode footprints only rise, so 5 Hz suffices
	HostName    string        // as people call this host
	BootID      string        // of this host; a container of another boot died with it
	Bounds      Bounds        // of what an attempt may take

	// Available returns the bytes of memory that programs on this host could take
	// now. Nil = not known: a kill for the machine's want of memory is then told
	// from one for the container's limit by the kernel's log and counters alone.
	Available func() (int64, error)

	// CPUIdle returns how much of the host's processor time was idle since boot,
	// and how much there was, in any unit. Nil = not known: readings of CPU then
	// count as made on a full host.
	CPUIdle func() (idle, total int64, err error)
}

// Executor runs attempts in containers of this host.
type Executor struct {
	containers Containers
	records    Records
	meter      OpenMeter
	config     Config
	log        *slog.Logger
	ooms       sync.Map // attempt id → true: Docker announced an out-of-memory
	waiting    sync.Map // attempt id → true: its image is missing

	mu     sync.Mutex
	claims map[string]*claim // by attempt: what a Run is at
}

// OpenMeter finds the cgroup of a running container.
type OpenMeter func(c berth.Container) (Meter, error)

// New returns an executor.
func New(containers Containers, records Records, meter OpenMeter, config Config, log *slog.Logger) *Executor {
	config.Grace = cmp.Or(config.Grace, 30*time.Second)
	config.SampleEvery = cmp.Or(config.SampleEvery, 200*time.Millisecond)
	config.Bounds = config.Bounds.orDefault()

	return &Executor{
		containers: containers, records: timely{records}, meter: meter, config: config, log: log, claims: make(map[string]*claim),
	}
}

// NoteOOM keeps Docker's word that the kernel killed a process of an attempt
// for memory: the cgroup that proves it is gone once the container has exited.
func (e *Executor) NoteOOM(attemptID string) { e.ooms.Store(attemptID, true) }

// Order tells the executor to run an attempt.
type Order struct {
	AttemptID string
	Token     int64
	Short     bool         // a short probe
	Stop      bool         // stop what runs and free the place; start nothing
	Known     berth.Usage  // what an earlier run of the same attempt measured
	StopCause error        // the cause of ctx's end that means: stop the container
	Beat      func(Beaten) // told of progress; must not block
}

// Beaten is progress of an attempt.
type Beaten struct {
	ContainerID string
	StartedAt   time.Time
	Usage       berth.Usage
}

// ErrDetached is returned when ctx ended and the container goes on without us.
var ErrDetached = errors.New("detached from the attempt; its container goes on")

// ErrNotStopped is returned when a container had to stop and Docker did not
// answer. Once the attempt is fenced, the reconciler stops it when Docker is back.
var ErrNotStopped = errors.New("no answer from Docker to the order to stop the container")

// Run runs an attempt to its committed outcome. Running it again, also while
// or after another Run of the same attempt was cut off, goes on from where it
// stands; a verdict that was written down is committed without Docker. Errors:
// ErrDetached; ErrNotStopped; fenced when the attempt is not ours any more;
// unavailable when Docker or the database does not answer.
func (e *Executor) Run(ctx context.Context, order Order) (berth.Outcome, error) {
	ctx, yield, err := e.claim(ctx, order.AttemptID)
	if err != nil {
		return berth.Outcome{}, err
	}
	defer yield()

	who, err := e.records.Assignee(ctx, order.AttemptID)
	if err != nil {
		return berth.Outcome{}, err
	}

	attempt := who.Attempt
	if attempt.State == berth.AttemptFinished && attempt.Token == order.Token {
		e.tidy(ctx, who)

		return attempt.Outcome(), nil
	}

	if attempt.Token != order.Token || attempt.State == berth.AttemptAbandoned {
		return berth.Outcome{}, berth.Errorf(berth.KindFenced, "attempt %s is not ours any more", order.AttemptID)
	}

	run := e.open(order, who)

	if v, found := run.verdict(); found {
		return run.commit(ctx, v)
	}

	if order.Stop {
		return run.giveBack(ctx)
	}

	outcome, err := run.attempt(ctx)
	if err != nil && stopped(ctx, order) && berth.KindOf(err) != berth.KindFenced && !errors.Is(err, ErrNotStopped) {
		return run.giveBack(context.WithoutCancel(ctx)) // nobody asks again
	}

	return outcome, err
}

// stopped reports whether ctx ended with the order to stop.
func stopped(ctx context.Context, order Order) bool {
	return ctx.Err() != nil && order.StopCause != nil && errors.Is(context.Cause(ctx), order.StopCause)
}

// run is one Run of one attempt.
type run struct {
	*Executor

	order     Order
	who       berth.Assignee
	dirs      dirs
	container berth.Container
	startedAt time.Time
	intent    failure.Intent
}

// open returns a run of an attempt. A short probe has directories of its own.
func (e *Executor) open(order Order, who berth.Assignee) *run {
	d := e.dirs(who)
	if order.Short {
		d = d.ofProbe()
	}

	return &run{Executor: e, order: order, who: who, dirs: d}
}

// attempt takes the attempt through its life.
func (r *run) attempt(ctx context.Context) (berth.Outcome, error) {
	if err := r.clear(ctx); err != nil {
		return berth.Outcome{}, cutOff(ctx, err)
	}

	launch, err := r.prepare()
	if err == nil {
		r.container, err = r.ensure(ctx, launch)
	}

	if start := refusal(err); start != nil {
		return r.settle(ctx, verdict{Outcome: r.concludeStart(start)})
	}

	if err != nil {
		return berth.Outcome{}, cutOff(ctx, err)
	}

	r.noteContainer(launch)
	r.startedAt = r.container.StartedAt

	r.log.Info("attempt runs", "sweep_id", r.who.SweepID, "trial", r.who.Trial.Number, "attempt", r.who.Attempt.ID,
		"container", berth.ShortKey(r.container.ID), "adopted", r.container.Adopted)

	seen, err := r.watch(ctx)

	switch berth.KindOf(err) {
	case berth.KindFenced:
		r.abandon(ctx)
	case berth.KindNotFound:
		return r.settle(ctx, verdict{Outcome: r.concludeGone()})
	default:
	}

	if err != nil {
		return berth.Outcome{}, cutOff(ctx, err)
	}

	return r.settle(ctx, verdict{Outcome: r.conclude(seen), Tail: seen.tail, Points: seen.points, Pieces: seen.pieces})
}

// refusal is the reason why no container can ever be started for a launch: Docker
// refused it, or it is wrong in itself, which no other host and no retry mends.
// Nil = the error may pass.
func refusal(err error) *berth.StartError {
	if start, ok := errors.AsType[*berth.StartError](err); ok {
		return start
	}

	if err != nil && berth.KindOf(err) == berth.KindInvalid {
		return &berth.StartError{Kind: berth.FailureBadCommand, Err: err}
	}

	return nil
}

// clear removes what runs here of earlier attempts of the trial, which were
// abandoned: they would write to the same checkpoint.
func (r *run) clear(ctx context.Context) error {
	for _, earlier := range r.who.Earlier {
		name := r.containers.Name(earlier)

		if err := r.containers.Stop(ctx, name, abandonGrace); err != nil {
			return err
		}

		if err := r.containers.Remove(ctx, name); err != nil {
			return err
		}
	}

	return nil
}

// cutOff turns the errors of a context that ended into ErrDetached.
func cutOff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ErrDetached, context.Cause(ctx))
	}

	return err
}

// verdict returns the one that an earlier Run wrote down.
func (r *run) verdict() (verdict, bool) {
	v, found, err := r.dirs.verdict(r.order.Token)
	if err != nil {
		r.log.Warn("reading verdict; the container is judged anew", "attempt", r.who.Attempt.ID, "error", err)
	}

	return v, found
}

// settle writes a verdict down, if there is none yet, and commits the one that
// stands. A disk that takes no more loses nothing: the container stays.
func (r *run) settle(ctx context.Context, v verdict) (berth.Outcome, error) {
	if first, found := r.verdict(); found {
		return r.commit(ctx, first)
	}

	v.AttemptID, v.Token, v.Source = r.who.Attempt.ID, r.order.Token, r.source(v.Outcome.Usage)

	if err := r.dirs.keepVerdict(v); err != nil {
		r.log.Warn("writing verdict down; it is committed from memory", "attempt", v.AttemptID, "error", err)
	}

	return r.commit(ctx, v)
}

// commit stores a verdict and then removes the container and the file. Once
// the container has exited nothing must cut this short, so it has a deadline
// of its own; what is left when that is over, the next Run commits.
func (r *run) commit(ctx context.Context, v verdict) (berth.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()

	r.emptyExcess(v.Outcome.Kind)

	err := patiently(ctx, func() error { return r.store(ctx, &v) })
	if berth.KindOf(err) == berth.KindFenced {
		r.abandon(ctx)
	}

	if err != nil {
		return berth.Outcome{}, err
	}

	r.tidy(ctx, r.who)

	return v.Outcome, nil
}

// store writes what the database lacks of a verdict: its result last, for then
// the attempt is over.
func (r *run) store(ctx context.Context, v *verdict) error {
	if err := r.storeOutput(ctx, v); err != nil {
		return err
	}

	return r.records.FinishAttempt(ctx, berth.Result{
		AttemptID: r.who.Attempt.ID, TrialID: r.who.Trial.ID, SweepID: r.who.SweepID, ShapeKey: r.who.Trial.ShapeKey,
		Token: r.order.Token, Reserved: r.who.Attempt.Demand, Outcome: v.Outcome, Source: v.Source,
		Proof: "container exited or never started",
	})
}

// storeOutput takes out of the verdict what it has stored, or what can never be
// stored: the result counts more. Errors: unavailable.
func (r *run) storeOutput(ctx context.Context, v *verdict) error {
	for len(v.Points) > 0 {
		batch := v.Points[:min(len(v.Points), pointsAtOnce)]
		if err := r.storable(r.records.PutMetrics(ctx, v.AttemptID, batch)); err != nil {
			return err
		}

		v.Points = v.Points[len(batch):]
	}

	for len(v.Pieces) > 0 {
		piece := v.Pieces[0]

		// An earlier try may have stored it; a mark of ours counts in no offset.
		if piece.Stream == streamBerth || piece.Offset+int64(len(piece.Data)) > r.who.LogOffset {
			if err := r.storable(r.records.PutLog(ctx, v.AttemptID, piece)); err != nil {
				return err
			}
		}

		v.Pieces = v.Pieces[1:]
	}

	return nil
}

// storable passes on the errors that may pass, and logs the others.
func (r *run) storable(err error) error {
	if err == nil || berth.KindOf(err) == berth.KindUnavailable {
		return err
	}

	r.log.Error("the database refuses metrics or log", "attempt", r.who.Attempt.ID, "error", err)

	return nil
}

const (
	// commitTimeout bounds the commit of a verdict; Temporal repeats it after that.
	commitTimeout = 30 * time.Second
	// stopPatience is how long beyond its grace a container that must stop is
	// asked to while Docker does not answer: three questions of 10 s each.
	stopPatience = 30 * time.Second
	// abandonGrace is what a container has that a newer attempt has replaced.
	abandonGrace = 5 * time.Second
	retryEvery   = time.Second
)

// patiently repeats what failed because something did not answer, until ctx ends.
func patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		if berth.KindOf(err) != berth.KindUnavailable {
			return err
		}

		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// stop stops the container. Errors: ErrNotStopped when Docker does not answer.
func (r *run) stop(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Grace+stopPatience)
	defer cancel()

	err := patiently(ctx, func() error { return r.containers.Stop(ctx, id, r.config.Grace) })
	if berth.KindOf(err) == berth.KindUnavailable {
		return fmt.Errorf("%w: %w", ErrNotStopped, err)
	}

	return err
}

// abandon removes the container of an attempt that a newer one has replaced.
func (r *run) abandon(ctx context.Context) {
	r.log.Warn("attempt is fenced; removing its container", "attempt", r.who.Attempt.ID, "container", r.container.ID)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()

	name := r.containers.Name(r.who.Attempt.ID)
	if err := r.containers.Stop(ctx, name, abandonGrace); err != nil {
		r.log.Warn("stopping container; the reconciler tries again", "container", name, "error", err)
	}

	r.tidy(ctx, r.who)
}

// giveBack stops what runs, if anything does, and frees the place. The
// container is known by its name: it may run without being recorded.
func (r *run) giveBack(ctx context.Context) (berth.Outcome, error) {
	if err := r.stop(ctx, r.containers.Name(r.who.Attempt.ID)); err != nil {
		return berth.Outcome{}, err
	}

	now := time.Now().UTC()
	kind, message := failure.Classify(failure.Evidence{Intent: failure.IntentCancel})

	return r.settle(ctx, verdict{Outcome: berth.Outcome{
		Kind: kind, Message: message, Usage: r.measured(), StartedAt: now, FinishedAt: now,
	}})
}

// tidy removes what an attempt leaves on the host. What it cannot remove now,
// the reconciler removes later.
func (e *Executor) tidy(ctx context.Context, who berth.Assignee) {
	e.ooms.Delete(who.Attempt.ID)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()

	name := e.containers.Name(who.Attempt.ID)
	if err := e.containers.Remove(ctx, name); err != nil {
		e.log.Warn("removing container; the reconciler tries again", "container", name, "error", err)
	}

	if err := e.dirs(who).clean(); err != nil {
		e.log.Warn("removing directories of attempt", "attempt", who.Attempt.ID, "error", err)
	}
}
