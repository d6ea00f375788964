package simgpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// Config says which cards there are, and where programs find them.
type Config struct {
	// Dir gets a directory for each card, with its sockets. At most 80 bytes long, or
	// so: a socket's path has 107.
	Dir string

	// Machine tells cards of several machines, or workers, apart.
	Machine string

	// Cards is the memory of each GPU, in bytes, as Parse returns it.
	Cards []int64

	// Patience is how long a question waits for a card whose driver hangs; default 2 s.
	Patience time.Duration

	Log *slog.Logger // nil = silent
}

// DriverVersion and CUDAVersion are an inventory's versions. CUDA 13.0 takes 48
// MPS clients on a GPU.
const (
	DriverVersion = "simulated"
	CUDAVersion   = "13.0"
)

// eventsKept is how many events wait for WaitEvent; further ones are dropped.
const eventsKept = 1000

// Simulator is a machine's simulated cards: a gpu.Driver, the daemons of MPS, and the
// sockets for programs. It is safe for concurrent use.
type Simulator struct {
	config Config
	cards  []*card

	life   context.Context //nolint:containedctx // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines that serve the sockets

	watching atomic.Bool    // WaitEvent was called
	events   chan gpu.Event // not yet returned by WaitEvent
}

var _ gpu.Driver = (*Simulator)(nil)

// Open makes the GPUs and listens for programs. Programs of an earlier Simulator of
// the same directory reconnect by themselves, with their memory. Errors: invalid
// when a socket's path is too long; unavailable when the directory cannot be used.
func Open(config Config) (*Simulator, error) {
	if config.Patience <= 0 {
		config.Patience = 2 * time.Second
	}

	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}

	s := &Simulator{config: config, events: make(chan gpu.Event, eventsKept)}
	s.life, s.cancel = context.WithCancel(context.Background())

	for number, bytes := range config.Cards {
		c := newCard(UUID(config.Machine, number), bytes, s.tell)
		c.dir = filepath.Join(config.Dir, strconv.Itoa(number))

		if err := s.open(c); err != nil {
			return nil, errors.Join(err, s.Close())
		}

		s.cards = append(s.cards, c)
	}

	return s, nil
}

// Close makes all programs wait for the next Simulator. They remember their
// memory; their containers go on.
func (s *Simulator) Close() error {
	s.cancel()
	s.work.Wait()

	return nil
}

// check is the error of a question that cannot be answered.
func (s *Simulator) check(ctx context.Context, doing string) error {
	switch {
	case s.life.Err() != nil:
		return berth.Errorf(berth.KindConflict, "%s: the simulator of GPUs is closed", doing)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	default:
		return nil
	}
}

// ask finds a card that answers. Errors: as gpu.Driver says.
func (s *Simulator) ask(ctx context.Context, doing, uuid string) (*card, error) {
	if err := s.check(ctx, doing); err != nil {
		return nil, err
	}

	c, err := s.card(uuid)
	if err != nil {
		return nil, err
	}

	if err := s.await(ctx, c, doing); err != nil {
		return nil, err
	}

	if c.describe().Problem != "" {
		return nil, berth.Errorf(berth.KindUnavailable, "%s: %s: %w", doing, lostText(uuid), gpu.ErrLost)
	}

	return c, nil
}

// card finds a card by its UUID. Errors: not_found.
func (s *Simulator) card(uuid string) (*card, error) {
	for _, c := range s.cards {
		if c.uuid == uuid {
			return c, nil
		}
	}

	return nil, berth.Errorf(berth.KindNotFound, "this machine has no simulated GPU %q", uuid)
}

// await waits until the GPU's driver answers, up to a total bound: after it,
// callers fail at once.
func (s *Simulator) await(ctx context.Context, c *card, doing string) error {
	c.mu.Lock()
	since, woken := c.hung, c.unhung
	c.mu.Unlock()

	if since.IsZero() {
		return nil
	}

	timer := time.NewTimer(time.Until(since.Add(s.config.Patience)))
	defer timer.Stop()

	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer of the simulated driver since %s: %w", doing, since.Format(time.RFC3339), context.Cause(ctx))
	case <-s.life.Done():
		return s.check(ctx, doing)
	case <-timer.C:
		return berth.Errorf(berth.KindUnavailable, "%s: the simulated driver does not answer since %s: it was told to hang", doing, since.Format(time.RFC3339))
	}
}

// Inventory lists the cards, and says that they are simulated.
func (s *Simulator) Inventory(ctx context.Context) (gpu.Inventory, error) {
	const doing = "listing simulated GPUs"

	if err := s.check(ctx, doing); err != nil {
		return gpu.Inventory{}, err
	}

	if len(s.cards) == 0 {
		return gpu.Inventory{}, berth.Errorf(berth.KindNotFound, "%s: there is none", doing)
	}

	inventory := gpu.Inventory{DriverVersion: DriverVersion, CUDAVersion: CUDAVersion}

	for number, c := range s.cards {
		if err := s.await(ctx, c, doing); err != nil {
			return gpu.Inventory{}, err
		}

		card := c.describe()
		card.Index = strconv.Itoa(number)
		inventory.Cards = append(inventory.Cards, card)
	}

	return inventory, nil
}

// Read returns a GPU's present use.
func (s *Simulator) Read(ctx context.Context, uuid string) (gpu.Reading, error) {
	c, err := s.ask(ctx, fmt.Sprintf("reading GPU %q", uuid), uuid)
	if err != nil {
		return gpu.Reading{}, err
	}

	return c.read(), nil
}

// Activity returns how busy a card is: the work that its programs want done.
func (s *Simulator) Activity(ctx context.Context, uuid string) (gpu.Activity, error) {
	c, err := s.ask(ctx, fmt.Sprintf("measuring GPU %q", uuid), uuid)
	if err != nil {
		return gpu.Activity{}, err
	}

	return c.measure(), nil
}

// WaitEvent returns the next fault of any card.
func (s *Simulator) WaitEvent(ctx context.Context) (gpu.Event, error) {
	const doing = "waiting for events of simulated GPUs"

	if err := s.check(ctx, doing); err != nil {
		return gpu.Event{}, err
	}

	s.watching.Store(true)

	select {
	case event := <-s.events:
		return event, nil
	case <-ctx.Done():
	case <-s.life.Done():
	}

	return gpu.Event{}, s.check(ctx, doing)
}

// tell keeps an event for WaitEvent. It drops events before the first call of that.
func (s *Simulator) tell(e gpu.Event) {
	if !s.watching.Load() {
		return
	}

	select {
	case s.events <- e:
	default:
	}
}
