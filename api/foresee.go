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
	// foreseeTimeout bounds a reading: all who ask for the queue meanwhile wait for it.
	foreseeTimeout = 3 * time.Second
)

// outlook is when what waits is expected to start, as it was last found out.
type outlook struct {
	mu       sync.Mutex
	at       time.Time // zero = never
	failed   bool      // it could not be found out then
	starts   map[string]berth.ExpectedStart
	complete bool // all that may be placed now was looked at
}

// foresee returns when what waits is expected to start; since is for how long that has
// been known. Callers that come meanwhile wait for the one that finds out. Not ok when it
// could not be found out: the log says why, and the queue stands without it.
func (s *Server) foresee(ctx context.Context) (starts map[string]berth.ExpectedStart, complete bool, since time.Duration, ok bool) {
	o := &s.outlook

	o.mu.Lock()
	defer o.mu.Unlock()

	if age := time.Since(o.at); age < foreseeEvery {
		return o.starts, o.complete, age, !o.failed
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), foreseeTimeout) // others wait for it, too
	defer cancel()

	f, err := s.deps.Store.Foresight(ctx, foreseeRows)
	if err != nil {
		s.log.Error("finding out when what waits is expected to start", "error", err)
	}

	o.starts, o.complete, o.failed, o.at = placer.Foresee(f), f.Complete, err != nil, time.Now()

	return o.starts, o.complete, 0, !o.failed
}

// addStarts says of each attempt of a page of the queue when it is expected to start.
func (s *Server) addStarts(ctx context.Context, queue []berth.QueuedRequest, out []openapi.QueuedAttempt) {
	if len(queue) == 0 {
		return
	}

	starts, complete, since, ok := s.foresee(ctx)

	for i, q := range queue {
		start, known := starts[q.AttemptID]
		sweep := berth.SweepUse{State: q.SweepState}

		switch { // the page is newer than what was foreseen
		case !sweep.TakesTrials():
			start = berth.ExpectedStart{Unknown: berth.StartSweepInactive}
		case q.NotBefore != nil:
			start = berth.ExpectedStart{Unknown: berth.StartPutOff}
		case !ok:
			continue
		case start.Unknown == berth.StartSweepInactive: // its sweep was resumed since
			start = berth.ExpectedStart{Unknown: berth.StartJustAsked}
		case known:
		case !complete:
			start = berth.ExpectedStart{Unknown: berth.StartFarBack}
		default:
			start = berth.ExpectedStart{Unknown: berth.StartJustAsked}
		}

		out[i].ExpectedStart = toExpectedStart(start, since)
	}
}

func toExpectedStart(s berth.ExpectedStart, since time.Duration) openapi.ExpectedStart {
	if s.Unknown != "" {
		return openapi.ExpectedStart{Unknown: openapi.StartUnknown(s.Unknown)}
	}

	return openapi.ExpectedStart{MinSeconds: new(max(s.Min-since, 0).Seconds()), MaxSeconds: new(max(s.Max-since, 0).Seconds())}
}
