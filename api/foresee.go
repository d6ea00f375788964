package api

import (
	"context"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/placer"
)

const (
	// foreseeRows is how much of the queue is looked at to say when it starts.
	foreseeRows = 1000
	// foreseeEvery is for how long an answer serves: pages ask for it again and again, and
	// each one reads what the placer reads in a round.
	foreseeEvery = 5 * time.Second
)

// outlook is when what waits is expected to start, as it was last found out.
type outlook struct {
	mu       sync.Mutex
	at       time.Time // zero = never
	starts   map[string]berth.ExpectedStart
	complete bool // all that may be placed now was looked at
}

// foresee returns when what waits is expected to start; since is for how long that has
// been known. Callers that come meanwhile wait for the one that finds out.
func (s *Server) foresee(ctx context.Context) (starts map[string]berth.ExpectedStart, complete bool, since time.Duration, err error) {
	o := &s.outlook

	o.mu.Lock()
	defer o.mu.Unlock()

	if age := time.Since(o.at); age < foreseeEvery {
		return o.starts, o.complete, age, nil
	}

	f, err := s.deps.Store.Foresight(ctx, foreseeRows)
	if err != nil {
		return nil, false, 0, err
	}

	o.starts, o.complete, o.at = placer.Foresee(f), f.Complete, time.Now()

	return o.starts, o.complete, 0, nil
}

// addStarts says of each attempt of a page of the queue when it is expected to start.
func (s *Server) addStarts(ctx context.Context, queue []berth.QueuedRequest, out []openapi.QueuedAttempt) error {
	if len(queue) == 0 {
		return nil
	}

	starts, complete, since, err := s.foresee(ctx)
	if err != nil {
		return err
	}

	for i, q := range queue {
		start, known := starts[q.AttemptID]
		sweep := berth.SweepUse{State: q.SweepState}

		switch { // the page is newer than what was foreseen
		case !sweep.TakesTrials():
			start = berth.ExpectedStart{Unknown: berth.StartSweepInactive}
		case q.NotBefore != nil:
			start = berth.ExpectedStart{Unknown: berth.StartPutOff}
		case known:
		case !complete:
			start = berth.ExpectedStart{Unknown: berth.StartFarBack}
		default:
			start = berth.ExpectedStart{Unknown: berth.StartJustAsked}
		}

		out[i].ExpectedStart = toExpectedStart(start, since)
	}

	return nil
}

func toExpectedStart(s berth.ExpectedStart, since time.Duration) openapi.ExpectedStart {
	if s.Unknown != "" {
		return openapi.ExpectedStart{Unknown: openapi.StartUnknown(s.Unknown)}
	}

	return openapi.ExpectedStart{MinSeconds: new(max(s.Min-since, 0).Seconds()), MaxSeconds: new(max(s.Max-since, 0).Seconds())}
}
