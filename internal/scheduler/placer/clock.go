package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// clock is the part of a request's wait that is a wait for room: all of it but
// the time behind its sweep's own limit.
type clock struct {
	seen   time.Duration // how long the request had waited in the last round
	behind time.Duration // of that, behind the limit
}

// clock is the request's clock as the last round left it. A new leader takes the
// unseen part of a wait for time behind a limit: counting none of it only takes
// longer. A wait is shorter than in the last round when the ledger counts again,
// because the sweep was resumed, its limit was raised, or the ledger's clock was
// set.
func (p *Placer) clock(w berth.WaitingRequest, use berth.SweepUse) clock {
	c, seen := p.clocks[w.AttemptID]
	if !seen && use.MaxParallel > 0 {
		return clock{seen: w.Waited, behind: w.Waited}
	}

	c.seen, c.behind = min(c.seen, w.Waited), min(c.behind, w.Waited)

	return c
}

// wait returns how long a request has waited for room, in the ledger's unit;
// waited is its whole wait. Siblings must not differ by less than the unit.
func (c clock) wait(waited time.Duration) time.Duration {
	return (waited - c.behind).Round(time.Microsecond)
}

// tick moves the clocks on by a round.
func (p *Placer) tick(waiting []berth.WaitingRequest, use map[string]berth.SweepUse, decisions []packing.Decision) {
	limited := make(map[string]bool, len(decisions))
	for _, d := range decisions {
		limited[d.AttemptID] = d.Limited()
	}

	clocks := make(map[string]clock, len(waiting))

	for _, w := range waiting {
		c := p.clock(w, use[w.SweepID])
		if limited[w.AttemptID] {
			c.behind += w.Waited - c.seen
		}

		c.seen = w.Waited
		clocks[w.AttemptID] = c
	}

	p.clocks = clocks
}
