package placer

import (
	"context"
	"fmt"
	"time"
)

// failedRounds is how many rounds in a row fail before health says so: one or two fail
// when the database restarts.
const failedRounds = 3

// failing is a series of rounds that failed.
type failing struct {
	rounds int
	since  time.Time
	clear  bool // the ledger has no problem noted
}

// noteRound tells the ledger, for health, when rounds fail and when they no longer do. The
// first round of a leader takes back what an earlier leader said.
func (p *Placer) noteRound(ctx context.Context, err error) {
	problem := ""

	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		if p.failing.rounds = 0; p.failing.clear {
			return
		}
	default:
		if p.failing.rounds++; p.failing.rounds == 1 {
			p.failing.since = time.Now()
		}

		if p.failing.rounds < failedRounds {
			return
		}

		problem = fmt.Sprintf("since %s: %v", p.failing.since.UTC().Format("2006-01-02 15:04:05 MST"), err)
	}

	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	if err := p.ledger.NotePlacer(ctx, problem); err != nil {
		p.log.Warn("noting whether rounds fail", "error", err)

		return
	}

	p.failing.clear = problem == ""
}
