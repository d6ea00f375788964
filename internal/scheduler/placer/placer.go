// Package placer is the loop that turns waiting requests into leases. It reads
// the ledger, calls packing to decide, and commits the decision in one
// statement; one placer leads at a time, by an advisory lock of the database.
//
// One bad request stops no other: the placer finds a request that the ledger
// refuses by halving the batch, and sets it aside with its reason.
package placer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// Ledger is the database for the placer.
type Ledger interface {
	// Queue returns the requests that may start, and a few more of each sweep, oldest
	// first, at most limit.
	Queue(ctx context.Context, limit int) (berth.Queue, error)
	// Place books all or nothing. Errors: exhausted when a host has less by now;
	// conflict when the ledger refuses one of the requests.
	Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error)
	// RefuseRequest and StoreReasons fail with a conflict for the same reason.
	RefuseRequest(ctx context.Context, attemptID string, reasons []berth.Rejection) error
	StoreReasons(ctx context.Context, waits map[string]berth.Wait) error
	// HoldRequests stores why requests wait that Queue leaves out.
	HoldRequests(ctx context.Context) error
	// SetAside keeps a request out of the queue for a while and stores why.
	SetAside(ctx context.Context, attemptID, why string) error
	// StoreAdvice stores the advice of GPUs, by device; ClearAdvice deletes it.
	StoreAdvice(ctx context.Context, advice map[string]berth.Advice) error
	ClearAdvice(ctx context.Context) error
	SuspectLeases(ctx context.Context) ([]string, error)
	// NoteRound tells health how a round of the loop ended.
	NoteRound(ctx context.Context, part string, err error)
	ListenPlacer(ctx context.Context, poll time.Duration, wake func()) error
	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
}

const (
	// poll is how often the placer looks without being woken.
	poll = time.Second
	// queueLimit is how many waiting requests one round looks at: a window of
	// 500 for each of 20 sweeps.
	queueLimit = 10_000
	// batch is how many placements one statement commits.
	batch = 200
	// reasonsEvery is how often reasons are rewritten; each thousand waiting
	// requests add as much. Reasons are for people, and free capacity changes
	// with every placement.
	reasonsEvery = time.Second
	// heldEvery is how often requests outside the queue get their reason: that
	// reads all waiting requests, at most 10,000 where the queue is full.
	heldEvery = 5 * time.Second
	// reasonsKept is how many candidates a stored reason names.
	reasonsKept = 8
	// roundTimeout bounds one round, so that a hung database costs a round.
	roundTimeout = 10 * time.Second
)

// Placer decides which attempt runs where.
type Placer struct {
	ledger    Ledger
	log       *slog.Logger
	explained time.Time
	held      time.Time                // when requests outside the queue got their reason
	kept      map[string]packing.Place // by attempt: the host or GPU that the last round kept free for it
	clocks    map[string]clock         // by attempt
	drains    drains
	advised   time.Time // when advice was last stored
	idle      bool      // nothing waited in the last round, and no GPU has an advice
}

// New returns a placer.
func New(ledger Ledger, log *slog.Logger) *Placer {
	return &Placer{ledger: ledger, log: log}
}

// Run leads when it can and places until ctx ends.
func (p *Placer) Run(ctx context.Context) error {
	return p.ledger.Lead(ctx, "placer", func(ctx context.Context) error {
		p.log.Info("placer leads")

		p.kept, p.clocks, p.drains, p.idle = nil, nil, drains{}, false // of an earlier lead: another may have led since

		return p.ledger.ListenPlacer(ctx, poll, func() {
			err := p.Round(ctx)
			if err != nil && ctx.Err() == nil {
				p.log.Warn("placing", "error", err)
			}

			p.ledger.NoteRound(ctx, health.PartPlacer, err)
		})
	})
}

// Round decides once over all waiting requests. It sets aside a request that
// the ledger refuses. A failing step does not stop the next ones: Round returns
// all errors.
func (p *Placer) Round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	suspected := errors.Join(p.suspect(ctx), p.hold(ctx))

	queue, err := p.ledger.Queue(ctx, queueLimit)
	if err == nil && len(queue.Waiting) == 0 && !p.idle {
		err = p.ledger.ClearAdvice(ctx)
	}

	if p.idle = err == nil && len(queue.Waiting) == 0; err != nil || p.idle {
		return errors.Join(suspected, err)
	}

	requests, groups := p.requests(queue)
	p.drains.begin(queue.Hosts, time.Now())

	advice := newAdviser(queue, groups, &p.drains, time.Since(p.advised) < figuresEvery)
	told := p.tellAdvice(ctx, advice.advise())

	decisions := packing.Decide(queue.Hosts, limits(queue.Sweeps), requests)
	advice.fill(decisions, requests)
	p.rememberKept(decisions)
	p.tick(queue.Waiting, queue.Sweeps, decisions)

	return errors.Join(suspected, told, p.commit(ctx, decisions), p.refuseImpossible(ctx, queue.Waiting, decisions), p.storeReasons(ctx, queue.Waiting, decisions))
}

func (p *Placer) suspect(ctx context.Context) error {
	suspects, err := p.ledger.SuspectLeases(ctx)

	for _, attempt := range suspects {
		p.log.Warn("lease was not renewed in time; what it holds stays booked until there is proof", "attempt", attempt)
	}

	return err
}

// hold says from time to time why requests wait that the queue leaves out.
func (p *Placer) hold(ctx context.Context) error {
	if time.Since(p.held) < heldEvery {
		return nil
	}

	p.held = time.Now()

	return p.ledger.HoldRequests(ctx)
}

func limits(use map[string]berth.SweepUse) map[string]packing.SweepLimit {
	out := make(map[string]packing.SweepLimit, len(use))
	for id, u := range use {
		out[id] = packing.SweepLimit{
			MaxParallel: u.MaxParallel, Running: u.Running, Away: u.Away,
			Paused: !u.TakesTrials(),
		}
	}

	return out
}

// rememberKept remembers the kept places, for the next round. A new leader does not
// know them and may choose others: that only takes longer.
func (p *Placer) rememberKept(decisions []packing.Decision) {
	p.kept = make(map[string]packing.Place)

	for _, d := range decisions {
		if d.Kept != (packing.Place{}) {
			p.kept[d.AttemptID] = d.Kept
		}
	}
}

// commit books the placements, batch by batch.
func (p *Placer) commit(ctx context.Context, decisions []packing.Decision) error {
	placed := make([]packing.Decision, 0, len(decisions))

	for _, d := range decisions {
		if d.Placed {
			placed = append(placed, d)
		}
	}

	for some := range slices.Chunk(placed, batch) {
		if err := apart(some, p.place(ctx), p.setAside(ctx)); err != nil {
			return err
		}
	}

	return nil
}

func (p *Placer) place(ctx context.Context) func([]packing.Decision) error {
	return func(decisions []packing.Decision) error {
		placements := make(map[string]berth.Placement, len(decisions))
		for _, d := range decisions {
			placements[d.AttemptID] = d.Placement
		}

		_, err := p.ledger.Place(ctx, placements)

		return err
	}
}

// refuseImpossible ends the impossible requests.
func (p *Placer) refuseImpossible(ctx context.Context, waiting []berth.WaitingRequest, decisions []packing.Decision) error {
	spills := make(map[string]bool)

	for _, w := range waiting {
		if w.Resources.GPUMemorySpill {
			spills[w.AttemptID] = true
		}
	}

	refuse := func(one []packing.Decision) error {
		return p.ledger.RefuseRequest(ctx, one[0].AttemptID, withHint(one[0], spills[one[0].AttemptID]))
	}

	for i, d := range decisions {
		if !d.Impossible {
			continue
		}

		if err := apart(decisions[i:i+1], refuse, p.setAside(ctx)); err != nil {
			return err
		}
	}

	return nil
}

// setAside makes a request that the ledger refused wait for longer. A booking
// that found less room than the decision saw needs no pause: the next round
// decides again.
func (p *Placer) setAside(ctx context.Context) func(packing.Decision, error) error {
	return func(d packing.Decision, why error) error {
		if berth.KindOf(why) == berth.KindExhausted {
			p.log.Info("the ledger changed meanwhile; deciding again", "attempt", d.AttemptID, "error", why)

			return nil
		}

		p.log.Warn("the ledger refuses a request; it is set aside and tried again", "attempt", d.AttemptID, "error", why)

		return p.ledger.SetAside(ctx, d.AttemptID, why.Error())
	}
}

// apart does items together. When the ledger refuses one of them it does them
// in halves, so that the refused one is found and all others are done. An error
// that is not about an item ends it.
func apart[T any](items []T, do func([]T) error, refused func(T, error) error) error {
	err := do(items)

	switch kind := berth.KindOf(err); {
	case err == nil:
		return nil
	case kind != berth.KindExhausted && kind != berth.KindConflict:
		return err
	case len(items) == 1:
		return refused(items[0], err)
	}

	half := len(items) / 2
	if err := apart(items[:half], do, refused); err != nil {
		return err
	}

	return apart(items[half:], do, refused)
}

// storeReasons stores why requests still wait and the capacity kept free for them, where that has changed, from
// time to time.
func (p *Placer) storeReasons(ctx context.Context, waiting []berth.WaitingRequest, decisions []packing.Decision) error {
	if time.Since(p.explained) < reasonsEvery*time.Duration(1+len(waiting)/1000) {
		return nil
	}

	p.explained = time.Now()

	waits := make(map[string]berth.Wait, len(decisions))

	for _, d := range decisions {
		if !d.Placed && !d.Impossible {
			waits[d.AttemptID] = berth.Wait{Reasons: readable(d), Kept: berth.KeptPlace(d.Kept)}
		}
	}

	var changed []berth.WaitingRequest

	for _, w := range waiting {
		now, still := waits[w.AttemptID]
		if w.Blocked != "" {
			now, still = berth.Wait{Reasons: []berth.Rejection{{Dimension: berth.DimensionTrial, Reason: w.Blocked}}}, true
		}

		if still && (now.Kept != w.Kept || !slices.Equal(now.Reasons, w.Reasons)) {
			w.Reasons, w.Kept = now.Reasons, now.Kept
			changed = append(changed, w)
		}
	}

	if len(changed) == 0 {
		return nil
	}

	return apart(changed, p.store(ctx), func(w berth.WaitingRequest, err error) error {
		p.log.Warn("why a request waits cannot be stored", "attempt", w.AttemptID, "error", err)

		return nil
	})
}

func (p *Placer) store(ctx context.Context) func([]berth.WaitingRequest) error {
	return func(waiting []berth.WaitingRequest) error {
		waits := make(map[string]berth.Wait, len(waiting))
		for _, w := range waiting {
			waits[w.AttemptID] = berth.Wait{Reasons: w.Reasons, Kept: w.Kept}
		}

		return p.ledger.StoreReasons(ctx, waits)
	}
}

// withHint returns why a request is impossible, and the key that helps a trial that may
// not spill on a GPU too small.
func withHint(d packing.Decision, spills bool) []berth.Rejection {
	out := readable(d)

	for i := range out {
		if out[i].Never && out[i].Dimension == berth.DimensionDeviceBytes && !spills {
			out[i].Reason += "; with resources.gpu_memory_spill it may run alone in unified memory"
		}
	}

	return out
}

// readable is why a request waits, in words; the first few candidates.
func readable(d packing.Decision) []berth.Rejection {
	out := d.Rejections(reasonsKept)
	for i := range out {
		out[i].Reason = packing.Explain(out[i])
	}

	return out
}
