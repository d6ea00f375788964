package apitest

import (
	"context"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// freshThing is something that hints tell of, and how often it has changed.
type freshThing struct {
	mark berth.Mark
	hint berth.Hint
}

// Hint lets something change of which no event tells. A host that is back is one that is
// silent no more.
func (s *Store) Hint(h berth.Hint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	m := berth.Mark{Kind: h.Kind, Subject: h.Subject, SweepID: h.SweepID}
	if h.Kind == berth.HintHostBack {
		m.Kind = berth.HintHostSilent
	}

	i := slices.IndexFunc(s.fresh, func(f freshThing) bool { return f.mark.Kind == m.Kind && f.mark.Subject == m.Subject })
	if i < 0 {
		i = len(s.fresh)
		s.fresh = append(s.fresh, freshThing{mark: m})
	}

	s.fresh[i].mark.Value++
	s.fresh[i].hint = h
}

// ListMarks is api.Hints.
func (s *Store) ListMarks(_ context.Context, sweepIDs []string) (marks []berth.Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.looks = append(s.looks, Look{At: time.Now(), SweepIDs: sweepIDs})

	if s.Blind != nil {
		return nil, s.Blind
	}

	for _, f := range s.fresh {
		if f.mark.SweepID == "" || len(sweepIDs) == 0 || slices.Contains(sweepIDs, f.mark.SweepID) {
			marks = append(marks, f.mark)
		}
	}

	return marks, nil
}

// ListHints is api.Hints.
func (s *Store) ListHints(_ context.Context, changed []berth.Mark) (hints []berth.Hint, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range s.fresh {
		if slices.ContainsFunc(changed, func(m berth.Mark) bool { return m.Kind == f.mark.Kind && m.Subject == f.mark.Subject }) {
			hints = append(hints, f.hint)
		}
	}

	return hints, nil
}

// Looks are the calls of ListMarks.
func (s *Store) Looks() []Look {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.looks)
}

// Look is a call of ListMarks.
type Look struct {
	At       time.Time
	SweepIDs []string
}
