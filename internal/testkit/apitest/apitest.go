// Package apitest seeds a real database for tests of the API and of its clients,
// and replaces the parts outside the database: Temporal and the store of files.
//
//	apitest.go  the store, and what stands beside it
//	sample.go   a sweep that has ended, and changes of it
//	stages.go   two sweeps that share a stage
package apitest

import (
	"context"
	"crypto/md5" //nolint:gosec // G501: an id that SQL can make too, no secret
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
	"github.com/berthml/berth/workflows"
)

// Store is a real store on a database of the test's own. It is also api.Temporal
// and api.Objects. Change its fields before it serves, or under Change.
type Store struct {
	*postgres.Store

	Updates    []string     // calls of workflows, such as "pause <sweep>"
	ControlErr func() error // asked before every update and cancel; nil = none
	ImageErr   error
	ImageErrOf string                  // the image that it is of; empty = all
	Objects    map[berth.Digest]string // contents of files
	ObjectErr  error                   // error of Read for a missing one

	mu      sync.Mutex
	session sync.Mutex // of db, which is one connection
	db      *pgtest.Session
}

// Empty is a store without sweeps and hosts.
func Empty(t testing.TB) *Store {
	t.Helper()

	url := pgtest.URL(t)

	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(store.Close)

	return &Store{Store: store, db: pgtest.Connect(t, url)}
}

// NewID is a fixed id, so that golden files stay as they are. SQL writes md5('7')::uuid.
func NewID(n int) string {
	return uuid.UUID(md5.Sum([]byte(strconv.Itoa(n)))).String() //nolint:gosec // G401: as above
}

// Exec runs statements; with arguments, one.
func (s *Store) Exec(statement string, args ...any) {
	s.session.Lock()
	defer s.session.Unlock()

	s.db.Exec(statement, args...)
}

// Text runs a query for one text.
func (s *Store) Text(query string, args ...any) string {
	s.session.Lock()
	defer s.session.Unlock()

	return s.db.Text(query, args...)
}

// Count counts the rows of a table.
func (s *Store) Count(table string) int {
	s.session.Lock()
	defer s.session.Unlock()

	return int(s.db.Int("SELECT count(*) FROM " + table))
}

// Change changes fields while the store serves.
func (s *Store) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	change()
}

// Ping is api.Temporal.
func (*Store) Ping(context.Context) error { return nil }

// ResolveImage is api.Temporal.
func (s *Store) ResolveImage(_ context.Context, ref string) (berth.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	err := s.ImageErr
	if s.ImageErrOf != "" && s.ImageErrOf != ref {
		err = nil
	}

	return berth.Image{ID: "sha256:1", Digest: ref + "@sha256:" + strings.Repeat("1", 64)}, err
}

// Update is api.Temporal.
func (s *Store) Update(_ context.Context, sweepID, update string, args ...any) (workflows.SweepView, error) {
	states := map[string]berth.SweepState{
		workflows.UpdatePause: berth.SweepPaused, workflows.UpdateResume: berth.SweepRunning, workflows.UpdateStop: berth.SweepStopping,
	}

	if update == workflows.UpdateSetMaxParallel {
		return workflows.SweepView{}, s.steer(sweepID, update, "max_parallel", args[0])
	}

	return workflows.SweepView{}, s.steer(sweepID, update, "state", states[update])
}

// Cancel is api.Temporal.
func (s *Store) Cancel(_ context.Context, sweepID string) error {
	return s.steer(sweepID, "cancel", "state", berth.SweepCanceling)
}

func (s *Store) steer(sweepID, what, column string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.ControlErr != nil {
		if err := s.ControlErr(); err != nil {
			return err
		}
	}

	s.Updates = append(s.Updates, what+" "+sweepID)
	s.Exec("UPDATE sweeps SET "+column+" = $2 WHERE id = $1", sweepID, value)

	return nil
}

// Read is api.Objects.
func (s *Store) Read(_ context.Context, d berth.Digest, offset, length int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	content, found := s.Objects[d]
	if !found {
		return nil, s.ObjectErr
	}

	content = content[offset:]
	if length >= 0 {
		content = content[:length]
	}

	return io.NopCloser(strings.NewReader(content)), nil
}
