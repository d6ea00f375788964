package fault

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// Kind is the fault of a call.
type Kind string

// The kinds. None is the call as it is.
const (
	None   Kind = ""
	Before Kind = "before"
	After  Kind = "after"
	Half   Kind = "half"
	Hang   Kind = "hang"
	Slow   Kind = "slow"
)

// Odds are how likely a call fails each way, from 0 to 1.
type Odds struct{ Before, After, Half, Hang, Slow float64 }

// slowest is how long a slow call takes at most, before and again after its
// work: long enough for others to do things in between.
const slowest = 4 * time.Second

// Port is a dependency whose calls fail.
type Port string

// The ports, each with a fake.
const (
	Docker Port = "docker"
	Ledger Port = "ledger"
)

// limits are how long a call hangs whose context does not end: Docker's adapter
// bounds create and start by a minute, while TCP gives a connection into a
// black hole up after about a quarter of an hour (tcp(7), tcp_retries2).
var limits = map[Port]time.Duration{Docker: time.Minute, Ledger: 15 * time.Minute}

// Injector decides which calls fail. It is safe for concurrent use: the
// decision about the nth call of a method for a subject depends on nothing
// else, so that goroutines that overtake each other change little.
type Injector struct {
	seed  uint64
	odds  Odds
	trace func(text string)

	mu       sync.Mutex
	quiet    bool
	away     map[Port]bool
	calls    map[string]uint64
	injected map[string]map[Kind]int
}

// New returns an injector. It reports every fault to trace; nil = to none.
func New(seed uint64, odds Odds, trace func(string)) *Injector {
	if trace == nil {
		trace = func(string) {}
	}

	return &Injector{
		seed: seed, odds: odds, trace: trace,
		away: make(map[Port]bool), calls: make(map[string]uint64), injected: make(map[string]map[Kind]int),
	}
}

// Quiet ends all faults.
func (i *Injector) Quiet() {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.quiet = true
}

// Away takes a whole port away, or gives it back: every call fails before it is
// done, or hangs.
func (i *Injector) Away(port Port, away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.away[port] = away
}

// Injected counts the faults by method and kind.
func (i *Injector) Injected() map[string]map[Kind]int {
	i.mu.Lock()
	defer i.mu.Unlock()

	counts := make(map[string]map[Kind]int, len(i.injected))
	for method, kinds := range i.injected {
		counts[method] = maps.Clone(kinds)
	}

	return counts
}

// decide returns the fault of the next call of a method for a subject. A call
// without halves is done in full.
func (i *Injector) decide(port Port, method, subject string, halves bool) (kind Kind, random *rand.Rand) {
	i.mu.Lock()
	defer i.mu.Unlock()

	key := method + " " + subject
	n := i.calls[key]
	i.calls[key]++

	if i.quiet {
		return None, nil
	}

	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything

	random = rand.New(rand.NewPCG(i.seed, h.Sum64()+n))

	kind = i.odds.draw(random, i.away[port])
	if kind == None {
		return None, nil
	}

	if kind == Half && !halves {
		kind = After
	}

	if i.injected[method] == nil {
		i.injected[method] = make(map[Kind]int)
	}

	i.injected[method][kind]++
	i.trace(method + " " + subject + ": fault " + string(kind))

	return kind, random
}

// draw picks a kind; of a port that is away one in five calls hangs.
func (o Odds) draw(r *rand.Rand, away bool) Kind {
	x := r.Float64()

	if away {
		if x < 0.2 {
			return Hang
		}

		return Before
	}

	for _, choice := range []struct {
		kind Kind
		odds float64
	}{{Before, o.Before}, {After, o.After}, {Half, o.Half}, {Hang, o.Hang}, {Slow, o.Slow}} {
		if x < choice.odds {
			return choice.kind
		}

		x -= choice.odds
	}

	return None
}

// Life is that of a process. The zero value is no life; use NewLife.
type Life struct {
	ended  chan struct{}
	buried chan struct{}
	once   sync.Once
}

// NewLife returns the life of a process that starts now.
func NewLife() *Life { return &Life{ended: make(chan struct{}), buried: make(chan struct{})} }

// lifeKey is the key of a Life in a context.
type lifeKey struct{}

// Within returns the context of a process with this life.
func (l *Life) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, lifeKey{}, l)
}

// Kill ends the process as SIGKILL does: its calls return no more, and its next
// calls have no effect.
func (l *Life) Kill() { l.once.Do(func() { close(l.ended) }) }

// Ended is closed when the process was killed.
func (l *Life) Ended() <-chan struct{} {
	if l == nil {
		return nil
	}

	return l.ended
}

// Bury lets the calls of a killed process return, with errors, so that its
// goroutines end.
func (l *Life) Bury() {
	l.Kill()
	close(l.buried)
}

// alive returns at once for a living process, and false, after the burial, for
// a dead one. Without a process, as in a call by the test itself, it is true.
func (l *Life) alive() bool {
	if l == nil {
		return true
	}

	select {
	case <-l.ended:
		<-l.buried

		return false
	default:
		return true
	}
}

// errDead is the error of a dead process's calls.
var errDead = berth.Errorf(berth.KindUnavailable, "the process was killed")

// Faults are the faults of one port: calls of the fake that has them fail. The
// context of a call carries the life of its process.
func (i *Injector) Faults(port Port) fake.Faults {
	return func(ctx context.Context, method, subject string, work, half func() error) error {
		life, _ := ctx.Value(lifeKey{}).(*Life)
		if !life.alive() {
			return errDead
		}

		err := i.call(ctx, life, port, method, subject, work, half)
		if !life.alive() {
			return errDead
		}

		return err
	}
}

// call does one call of a port.
func (i *Injector) call(ctx context.Context, life *Life, port Port, method, subject string, work, half func() error) error {
	if method == "" { // it hands something to its caller
		return work()
	}

	kind, random := i.decide(port, method, subject, half != nil)

	switch kind {
	case Before:
		return berth.Errorf(berth.KindUnavailable, "%s: injected, nothing was done", method)
	case Half:
		_ = half() // its reply is lost

		return berth.Errorf(berth.KindUnavailable, "%s: injected, half of it was done", method)
	case After:
		_ = work() // the same

		return berth.Errorf(berth.KindUnavailable, "%s: injected, the reply is lost", method)
	case Hang:
		return hang(ctx, life, port, method)
	case Slow:
		if err := pause(ctx, life, random, method); err != nil || !life.alive() {
			return cmp.Or(err, errDead)
		}

		err := work()

		return cmp.Or(err, pause(ctx, life, random, method))
	default:
		return work()
	}
}

// pause lets others go first. A context that ends during the pause is a lost
// reply.
func pause(ctx context.Context, life *Life, random *rand.Rand, method string) error {
	timer := time.NewTimer(time.Duration(random.Int64N(int64(slowest))))
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-life.Ended():
		return errDead
	case <-ctx.Done():
		return berth.Errorf(berth.KindUnavailable, "%s: injected, it was slow: %w", method, context.Cause(ctx))
	}
}

// hang gives no answer for a long time.
func hang(ctx context.Context, life *Life, port Port, method string) error {
	timer := time.NewTimer(limits[port])
	defer timer.Stop()

	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-life.Ended():
	}

	return berth.Errorf(berth.KindUnavailable, "%s: injected, it hung: %w", method, context.Cause(ctx))
}
