package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// failedRounds is how many rounds in a row fail before health reports it: one or two
	// fail when the database restarts.
	failedRounds = 3
	// roundsNotedFor is how long a note counts as current. After it another server may lead
	// the loop, and an old note must not stay for ever.
	roundsNotedFor = time.Minute
	// noteTimeout bounds one note, so that a hung database does not hold up a loop for long.
	noteTimeout = 5 * time.Second
)

// rounds are the loops of this process, by the part of health.
type rounds struct {
	mu sync.Mutex
	of map[string]roundSeries
}

// roundSeries is how the last rounds of a loop ended.
type roundSeries struct {
	failed int       // in a row
	since  time.Time // the first of them
	noted  string    // the last problem stored in the database
	at     time.Time // when; zero = never
}

// NoteRound stores since when and why rounds of a loop fail, for health: after three in a
// row, until one does not. err is how the round ended.
func (s *Store) NoteRound(ctx context.Context, part string, err error) {
	if ctx.Err() != nil { // it ends, which is no fault of the round
		return
	}

	problem, news := s.rounds.count(part, err)
	if !news {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()

	if err := s.q.SetFailingRounds(ctx, s.pool, problem, part); err != nil { // it is stored again in roundsNotedFor
		s.log.Warn("noting whether rounds fail", "part", part, "error", err)
	}
}

// count adds a round, and says whether there is something to note.
func (r *rounds) count(part string, err error) (problem string, news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.of == nil {
		r.of = make(map[string]roundSeries)
	}

	series := r.of[part]
	defer func() { r.of[part] = series }()

	if err == nil {
		series.failed = 0
	} else if series.failed++; series.failed == 1 {
		series.since = time.Now()
	}

	switch {
	case series.failed >= failedRounds:
		problem = fmt.Sprintf("since %s: %v", series.since.UTC().Format("2006-01-02 15:04:05 MST"), err)
	case err != nil: // too few to report a problem, or to withdraw one
		return "", false
	}

	if problem == series.noted && time.Since(series.at) < roundsNotedFor {
		return "", false
	}

	series.noted, series.at = problem, time.Now()

	return problem, true
}
