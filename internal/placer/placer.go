// Package placer is the loop that turns waiting requests into leases. It reads
// the ledger, has packing decide, and commits the decision in one statement;
// one placer leads at a time, by an advisory lock of the database.
package placer

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// Ledger is what the placer needs of the database.
type Ledger interface {
	Queue(ctx context.Context, limit int) (hosts []berth.Host, waiting []berth.WaitingRequest, use map[string]berth.SweepUse, err error)
	Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error)
	RefuseRequest(ctx context.Context, attemptID string, reasons []berth.Rejection) error
	StoreReasons(ctx context.Context, reasons map[string][]berth.Rejection) error
	SuspectLeases(ctx context.Context) ([]string, error)
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
	// reasonsEvery is how often reasons are rewritten, and as much longer for
	// every thousand requests that wait: they are for people, and numbers of
	// what is free change with every placement.
	reasonsEvery = time.Second
	// reasonsKept is how many candidates a stored reason names.
	reasonsKept = 8
	// roundTimeout bounds one round, so that a hung database costs a round.
	roundTimeout = 10 * time.Second
)

// Placer decides who runs where.
type Placer struct {
	ledger    Ledger
	log       *slog.Logger
	explained time.Time
	kept      map[string]string // attempt to the host that is kept free for it
}

// New returns a placer.
func New(ledger Ledger, log *slog.Logger) *Placer {
	return &Placer{ledger: ledger, log: log}
}

// Run leads when it can and places until ctx ends.
func (p *Placer) Run(ctx context.Context) error {
	return p.ledger.Lead(ctx, "placer", func(ctx context.Context) error {
		p.log.Info("placer leads")

		return p.ledger.ListenPlacer(ctx, poll, func() {
			if err := p.Round(ctx); err != nil && ctx.Err() == nil {
				p.log.Warn("placing", "error", err)
			}
		})
	})
}

// Round decides once over everything that waits.
func (p *Placer) Round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	suspects, err := p.ledger.SuspectLeases(ctx)
	if err != nil {
		return err
	}

	for _, attempt := range suspects {
		p.log.Warn("lease was not renewed in time; what it holds stays booked until there is proof", "attempt", attempt)
	}

	hosts, waiting, use, err := p.ledger.Queue(ctx, queueLimit)
	if err != nil || len(waiting) == 0 {
		return err
	}

	decisions := packing.Decide(hosts, limits(use), p.requests(waiting))
	p.keep(decisions)

	if err := p.commit(ctx, decisions); err != nil {
		return err
	}

	return p.explain(ctx, waiting, decisions)
}

func limits(use map[string]berth.SweepUse) map[string]packing.SweepLimit {
	out := make(map[string]packing.SweepLimit, len(use))
	for id, u := range use {
		out[id] = packing.SweepLimit{
			MaxParallel: u.MaxParallel, Running: u.Running,
			Paused: u.State != berth.SweepRunning && u.State != berth.SweepPending,
		}
	}

	return out
}

func (p *Placer) requests(waiting []berth.WaitingRequest) []packing.Request {
	out := make([]packing.Request, len(waiting))
	for i, w := range waiting {
		out[i] = packing.Request{
			AttemptID: w.AttemptID, SweepID: w.SweepID, Number: w.TrialNumber,
			Demand: w.Demand, Expected: w.Expected, Waited: w.Waited, KeptHost: p.kept[w.AttemptID],
		}
	}

	return out
}

// keep remembers which hosts are kept free, for the next round. A new leader
// does not know and may choose others: that only takes longer.
func (p *Placer) keep(decisions []packing.Decision) {
	p.kept = make(map[string]string)

	for _, d := range decisions {
		if d.KeptHost != "" {
			p.kept[d.AttemptID] = d.KeptHost
		}
	}
}

// commit books placements and ends what is impossible.
func (p *Placer) commit(ctx context.Context, decisions []packing.Decision) error {
	placements := make(map[string]berth.Placement)

	for _, d := range decisions {
		if d.Placed {
			placements[d.AttemptID] = d.Placement
		}

		if d.Impossible {
			if err := p.ledger.RefuseRequest(ctx, d.AttemptID, readable(d)); err != nil {
				return err
			}
		}

		if len(placements) == batch {
			if err := p.place(ctx, placements); err != nil {
				return err
			}
		}
	}

	return p.place(ctx, placements)
}

// place commits and empties placements. A booking that the database refuses
// was decided on numbers that have changed: the next round decides anew.
func (p *Placer) place(ctx context.Context, placements map[string]berth.Placement) error {
	if len(placements) == 0 {
		return nil
	}

	defer clear(placements)

	_, err := p.ledger.Place(ctx, placements)
	if berth.KindOf(err) == berth.KindExhausted {
		p.log.Info("the ledger changed meanwhile; deciding again", "error", err)

		return nil
	}

	return err
}

// explain stores why requests still wait, where that has changed, from time to time.
func (p *Placer) explain(ctx context.Context, waiting []berth.WaitingRequest, decisions []packing.Decision) error {
	if time.Since(p.explained) < reasonsEvery*time.Duration(1+len(waiting)/1000) {
		return nil
	}

	p.explained = time.Now()

	stored := make(map[string][]berth.Rejection, len(waiting))
	for _, w := range waiting {
		stored[w.AttemptID] = w.Reasons
	}

	changed := make(map[string][]berth.Rejection)

	for _, d := range decisions {
		if d.Placed || d.Impossible {
			continue
		}

		if reasons := readable(d); !slices.Equal(reasons, stored[d.AttemptID]) {
			changed[d.AttemptID] = reasons
		}
	}

	if len(changed) == 0 {
		return nil
	}

	return p.ledger.StoreReasons(ctx, changed)
}

// readable is why a request waits, in words; the first few candidates.
func readable(d packing.Decision) []berth.Rejection {
	out := d.Rejections(reasonsKept)
	for i := range out {
		out[i].Reason = packing.Explain(out[i])
	}

	return out
}
