package runtrial

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/berthml/berth"
)

const (
	// chunkCost is what a chunk of log, a line mostly, counts at least. Docker
	// passes on 20,000 lines a second while the job keeps the machine busy
	// (measured, 20.10 on two cores), however short they are: 2.5 MB/s of a job
	// that printed 30. Counted by their bytes such a flood could not be seen.
	chunkCost = 1 << 10
	// readFaster is how many times faster than LogRate a log is read: what is
	// too fast must be seen to be. Docker lets a reader that is behind end the
	// file it reads, 10 MB, before it goes on with the newest: of a flood of
	// short lines one file takes half a minute, and so much later it is noticed.
	readFaster = 2
	// behind is how late a line is at least of which Docker has more than it can
	// pass on.
	behind = 500 * time.Millisecond
	// leastBurst is above every chunk, which has 16 KiB at most.
	leastBurst = 1 << 20
	// leastPause is the shortest sleep worth its cost.
	leastPause = 10 * time.Millisecond
)

// pace reads a log no faster than it must, and knows whether the job floods it.
// Docker keeps the last 30 MiB and drops the rest without slowing the job down
// (internal/agent/docker, logConfig), so what is not read in time is lost: a log is
// evidence for people, results are files (rule R6).
type pace struct {
	reading  *rate.Limiter // by our clock
	produced *rate.Limiter // by Docker's stamps, so that reading a log again is no flood
	floodFor time.Duration
	began    time.Time // what was stamped before is read late by nature
	over     time.Time // stamp since which the job was faster than it may; zero = it is not
	lossy    bool      // it was at some time: Docker may have dropped lines
}

func newPace(b Bounds) *pace {
	return &pace{
		reading:  rate.NewLimiter(rate.Limit(readFaster*b.LogRate), int(max(readFaster*b.LogRate, leastBurst))),
		produced: rate.NewLimiter(rate.Limit(b.LogRate), int(max(b.LogRate, leastBurst))),
		floodFor: b.LogFloodFor,
		began:    time.Now(),
	}
}

// floods counts a chunk and reports whether the job has been too fast, on
// average, for too long. That less came for a while is no pause of a job whose
// lines come late: Docker loses what it cannot pass on.
func (p *pace) floods(c berth.LogChunk) bool {
	if p.produced.ReserveN(c.At, cost(c)).DelayFrom(c.At) <= 0 {
		if c.At.Before(p.began) || time.Since(c.At) < behind {
			p.over = time.Time{}
		}

		return false
	}

	p.lossy = true

	if p.over.IsZero() {
		p.over = c.At
	}

	return c.At.Sub(p.over) >= p.floodFor
}

// wait returns when more of the log may be read: at once after the exit, when
// the little that is left is wanted soon.
func (p *pace) wait(ctx context.Context, exited <-chan struct{}, c berth.LogChunk) {
	now := time.Now()

	delay := p.reading.ReserveN(now, cost(c)).DelayFrom(now)
	if delay < leastPause {
		return
	}

	select {
	case <-time.After(delay):
	case <-exited:
	case <-ctx.Done():
	}
}

func cost(c berth.LogChunk) int { return min(max(len(c.Data), chunkCost), leastBurst) }

// endWhenStuck calls end once no chunk has come for drainTimeout from now on.
func (o *output) endWhenStuck(end func()) {
	time.AfterFunc(drainTimeout, func() {
		if time.Since(time.Unix(0, o.readAt.Load())) < drainTimeout {
			o.endWhenStuck(end)

			return
		}

		end()
	})
}
