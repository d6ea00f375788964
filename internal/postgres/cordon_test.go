package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// sick is a host whose Docker fails starts.
type sick struct {
	*bundle

	pool *pgxpool.Pool
}

func setupSick(t *testing.T) *sick {
	t.Helper()

	url := pgtest.URL(t)

	return &sick{bundle: setupOn(t, url), pool: openPool(t, url)}
}

// fail places an attempt that the host fails to start, of the request's trial.
func (s *sick) fail(t *testing.T, r berth.PlacementRequest, kind berth.FailureKind) {
	t.Helper()

	status := s.place(t, r)
	now := time.Now()
	require.NoError(t, s.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
		Kind: kind, Message: "runc: permission denied", StartedAt: now, FinishedAt: now,
	})))
}

// lack places an attempt whose image the host does not have.
func (s *sick) lack(t *testing.T, r berth.PlacementRequest) {
	t.Helper()

	now := time.Now()
	lacks := result(r, s.place(t, r).Token, berth.Outcome{
		Kind: berth.FailureInfra, Message: "image x is not on host a", StartedAt: now, FinishedAt: now,
	})
	lacks.ImageMissing = true
	require.NoError(t, s.store.FinishAttempt(t.Context(), lacks))
}

// other gives the bundle another sweep.
func (s *sick) other(t *testing.T) {
	t.Helper()

	s.sweep, s.trial = uuid.NewString(), 0
	_, _, err := s.store.CreateSweep(t.Context(), berth.NewSweep{ID: s.sweep, Spec: berth.Spec{Name: "other"}, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)
}

func (s *sick) now(t *testing.T) *berth.Host {
	t.Helper()

	hosts, err := s.store.ListHosts(t.Context())
	require.NoError(t, err)

	return &hosts[0]
}

// pass lets time pass for the host's failures and tests.
func (s *sick) pass(t *testing.T, d time.Duration) {
	t.Helper()

	_, err := s.pool.Exec(t.Context(), "UPDATE hosts SET failed_at = failed_at - $1::interval, test_at = test_at - $1::interval", d)
	require.NoError(t, err)
	_, err = s.pool.Exec(t.Context(), "UPDATE missing_images SET failed_at = failed_at - $1::interval, test_at = test_at - $1::interval", d)
	require.NoError(t, err)
}

// start places an attempt that starts.
func (s *sick) start(t *testing.T, r berth.PlacementRequest) {
	t.Helper()
	require.NoError(t, s.store.AttemptRunning(t.Context(), r.AttemptID, s.place(t, r).Token, "container", time.Now()))
}

func TestCordon_AHostThatFailsSeveralTrialsInARow(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	first := s.request(t, gib)
	s.fail(t, first, berth.FailureInfra)

	for n := 2; n < 5; n++ {
		first = s.again(t, first, n)
		s.fail(t, first, berth.FailureInfra)
	}

	require.Equal(t, 1, s.now(t).FailedStarts, "one trial may be at fault itself")

	s.fail(t, s.request(t, gib), berth.FailureInfra)
	require.Nil(t, s.now(t).CordonedAt)

	s.fail(t, s.request(t, gib), berth.FailureInfra)
	require.True(t, s.now(t).CordonedFor(s.sweep))
	require.Equal(t, s.sweep, s.now(t).CordonSweep, "so may the sweep be")
	require.Equal(t, "runc: permission denied", s.now(t).CordonReason)
	require.False(t, s.now(t).TestDue)

	health, err := s.store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a (runc: permission denied)"}, health.Cordoned)

	s.other(t)
	require.False(t, s.now(t).CordonedFor(s.sweep))

	bad := s.request(t, gib)
	s.fail(t, bad, berth.FailureInfra)
	require.True(t, s.now(t).CordonedFor(s.sweep), "it is the host")

	q, err := s.store.Queue(t.Context(), 10)
	waiting := q.Waiting
	require.NoError(t, err)
	require.Empty(t, waiting)

	s.again(t, bad, 2)

	q, err = s.store.Queue(t.Context(), 10)
	waiting = q.Waiting
	require.NoError(t, err)
	require.Equal(t, []string{s.host.ID}, waiting[0].FailedHosts)

	s.start(t, s.request(t, gib))
	require.Nil(t, s.now(t).CordonedAt, "a container started")
	require.Zero(t, s.now(t).FailedStarts)
}

func TestCordon_TestsWithGrowingPauses(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	for range berth.HostCordonAfter {
		s.fail(t, s.request(t, gib), berth.FailureInfra)
	}

	s.pass(t, 50*time.Second)
	require.False(t, s.now(t).TestDue)
	s.pass(t, 10*time.Second)
	require.True(t, s.now(t).TestDue, "after a minute")

	for _, pause := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		r := s.request(t, gib)
		s.place(t, r)
		require.False(t, s.now(t).TestDue, "one at a time")

		s.pass(t, pause-10*time.Second)
		require.False(t, s.now(t).TestDue, pause)
		s.pass(t, 10*time.Second)
		require.True(t, s.now(t).TestDue, pause)
		require.NoError(t, s.store.AbandonAttempt(t.Context(), r.AttemptID, "over"))
		require.NoError(t, s.store.ReleaseLease(t.Context(), r.AttemptID, "no container"))
	}

	require.NoError(t, s.store.SetHostState(t.Context(), s.host.ID, berth.HostReady))
	require.Nil(t, s.now(t).CordonedAt, "the operator says that it is mended")
}

func TestCordon_CountsOnlyTheHostsFaults(t *testing.T) {
	t.Parallel()

	s := setupSick(t)

	for range 2 * berth.HostCordonAfter {
		s.fail(t, s.request(t, gib), berth.FailureBadCommand)
	}

	require.Zero(t, s.now(t).FailedStarts, "the trials' fault")

	for range 2 * berth.HostCordonAfter { // Docker fails each start
		r := s.request(t, gib)
		s.start(t, r)

		status, err := s.store.PlacementStatus(t.Context(), r.AttemptID)
		require.NoError(t, err)
		require.NoError(t, s.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{Kind: berth.FailureInfra, FinishedAt: time.Now()})))
	}

	require.Zero(t, s.now(t).FailedStarts, "they started")

	for range 2 * berth.HostCordonAfter {
		s.fail(t, s.request(t, gib), berth.FailureInfra)
		s.pass(t, berth.HostCordonWindow+time.Second)
	}

	require.Equal(t, 1, s.now(t).FailedStarts, "now and then is no streak")
	require.Nil(t, s.now(t).CordonedAt)
}

// The database was away from the start of a container to its end, so the result
// is its first news of the container.
func TestCordon_WhatRanIsNoFailedStart(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	code, now := 1, time.Now()

	for _, code := range []*int{&code, &code, nil, nil} { // nil = a person removed the container
		r := s.request(t, gib)
		ran := result(r, s.place(t, r).Token, berth.Outcome{
			Kind: berth.FailureInfra, Message: "the disk was full", ExitCode: code, StartedAt: now.Add(-time.Hour), FinishedAt: now,
		})
		ran.ContainerID = "container"
		require.NoError(t, s.store.FinishAttempt(t.Context(), ran))

		a, err := s.store.GetAttempt(t.Context(), r.AttemptID)
		require.NoError(t, err)
		require.Equal(t, "container", a.ContainerID)
	}

	require.Zero(t, s.now(t).FailedStarts)
	require.Nil(t, s.now(t).CordonedAt)
}

// A container that started while the database was away proves that the host can
// start containers, unless a failed one came after it.
func TestCordon_AResultThatRanEndsIt(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	ends := func(r berth.PlacementRequest, token int64) {
		ran := result(r, token, berth.Outcome{Kind: berth.FailureOK, StartedAt: time.Now(), FinishedAt: time.Now()})
		ran.ContainerID = "container"
		require.NoError(t, s.store.FinishAttempt(t.Context(), ran))
	}

	before := s.request(t, gib)
	token := s.place(t, before).Token

	for range berth.HostCordonAfter {
		s.fail(t, s.request(t, gib), berth.FailureInfra)
	}

	ends(before, token)
	require.NotNil(t, s.now(t).CordonedAt, "it may have begun before all of them failed")

	test := s.request(t, gib)
	ends(test, s.place(t, test).Token)
	require.Nil(t, s.now(t).CordonedAt)
	require.Zero(t, s.now(t).FailedStarts)

	s.fail(t, s.request(t, gib), berth.FailureInfra)
	s.fail(t, s.request(t, gib), berth.FailureInfra)

	between := s.request(t, gib)
	ends(between, s.place(t, between).Token)
	s.fail(t, s.request(t, gib), berth.FailureInfra)
	require.Equal(t, 1, s.now(t).FailedStarts, "in a row")

	first := s.sweep
	s.other(t)

	for range berth.HostCordonAfter {
		s.lack(t, s.request(t, gib))
	}

	require.True(t, s.now(t).CordonedFor(s.sweep))

	has := s.request(t, gib)
	ends(has, s.place(t, has).Token)
	require.False(t, s.now(t).CordonedFor(s.sweep), "its image is there")
	require.False(t, s.now(t).CordonedFor(first))
}

// An adopted container is no start.
func TestCordon_StaysWhileAWorkerAdopts(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	r := s.request(t, gib)
	token := s.place(t, r).Token
	require.NoError(t, s.store.AttemptRunning(t.Context(), r.AttemptID, token, "container", time.Now()))

	for range berth.HostCordonAfter {
		s.fail(t, s.request(t, gib), berth.FailureInfra)
	}

	require.NotNil(t, s.now(t).CordonedAt)
	require.NoError(t, s.store.AttemptRunning(t.Context(), r.AttemptID, token, "container", time.Now()))
	require.NotNil(t, s.now(t).CordonedAt)

	require.NoError(t, s.store.RegisterHost(t.Context(), s.host, "test"))
	require.NotNil(t, s.now(t).CordonedAt)
	require.True(t, s.now(t).TestDue, "its worker started again")
}

// A missing image is no fault of the host: the host keeps away any number of
// sweeps with that image, and no other.
func TestCordon_AMissingImageKeepsAwayItsSweepsOnly(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	first := s.sweep

	s.lack(t, s.request(t, gib))
	s.lack(t, s.request(t, gib))
	require.False(t, s.now(t).CordonedFor(first))
	s.lack(t, s.request(t, gib))
	require.True(t, s.now(t).CordonedFor(first))

	s.other(t)
	second := s.sweep

	for range berth.HostCordonAfter {
		s.lack(t, s.request(t, gib))
	}

	require.True(t, s.now(t).CordonedFor(first))
	require.True(t, s.now(t).CordonedFor(second))

	health, err := s.store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a (image x is not on host a)"}, health.Cordoned)

	s.other(t)
	require.False(t, s.now(t).CordonedFor(s.sweep), "its image is there")
	require.Nil(t, s.now(t).CordonedAt)
	require.Zero(t, s.now(t).FailedStarts, "the host starts containers")
	s.start(t, s.request(t, gib))
	require.True(t, s.now(t).CordonedFor(first), "what another sweep starts says nothing of its image")

	s.sweep, s.trial = first, 3
	s.start(t, s.request(t, gib))
	require.False(t, s.now(t).CordonedFor(first), "the image is there again")
	require.True(t, s.now(t).CordonedFor(second))

	require.NoError(t, s.store.SetHostState(t.Context(), s.host.ID, berth.HostReady))
	require.False(t, s.now(t).CordonedFor(second), "the operator says that it is mended")
}

// One or two trials cordon nothing. If the image of a trial is missing on the
// only host with room, the trial still waits for the host that may have it.
// Otherwise it would fail for good after ten attempts.
func TestPlacer_ATrialWaitsForTheHostThatMayHaveItsImage(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	p := placer.New(s.store, slog.New(slog.DiscardHandler))
	r := s.request(t, gib)
	s.lack(t, r)

	other := s.host
	other.ID, other.Name = uuid.NewString(), "b"
	require.NoError(t, s.store.RegisterHost(t.Context(), other, "test"))
	book := func(bytes int64) {
		t.Helper()

		_, err := s.pool.Exec(t.Context(), "UPDATE hosts SET memory_reserved_bytes = $1 WHERE id = $2", bytes, other.ID)
		require.NoError(t, err)
	}
	book(8 * gib)

	r = s.again(t, r, 2)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestWaiting, s.status(t, r))
	require.Contains(t, strings.Join(s.reasons(t, s.trial), "\n"), "the image was missing there; another host may have it")

	sibling := s.request(t, gib)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestPlaced, s.status(t, sibling), "it looks for itself")

	book(0)
	require.NoError(t, p.Round(t.Context()))

	status, err := s.store.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, other.ID, status.HostID)
}

// Missing images do not make a host's own failures look like failures of one sweep.
func TestCordon_CountsMissingImagesApart(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	s.lack(t, s.request(t, gib))
	s.lack(t, s.request(t, gib))
	s.fail(t, s.request(t, gib), berth.FailureInfra)
	require.False(t, s.now(t).CordonedFor(s.sweep), "two of one sort, one of the other")

	s.other(t)
	s.fail(t, s.request(t, gib), berth.FailureInfra)
	s.fail(t, s.request(t, gib), berth.FailureInfra)
	require.True(t, s.now(t).CordonedFor("any"), "the host fails starts of two sweeps")
}

// missing is the ledger's record of the sweep's image on the host.
func (s *sick) missing(t *testing.T) berth.MissingImage {
	t.Helper()
	require.Len(t, s.now(t).MissingImages, 1)

	return s.now(t).MissingImages[0]
}

func TestCordon_TestsForAMissingImageWithGrowingPauses(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	for range berth.HostCordonAfter {
		s.lack(t, s.request(t, gib))
	}

	require.Equal(t, berth.MissingImage{SweepID: s.sweep, Reason: "image x is not on host a", Cordoned: true}, s.missing(t))
	s.pass(t, 50*time.Second)
	require.False(t, s.missing(t).TestDue)
	s.pass(t, 10*time.Second)
	require.True(t, s.missing(t).TestDue, "after a minute")

	for _, pause := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		r := s.request(t, gib)
		s.lack(t, r)
		require.False(t, s.missing(t).TestDue, "one at a time")

		s.pass(t, pause-10*time.Second)
		require.False(t, s.missing(t).TestDue, pause)
		s.pass(t, 10*time.Second)
		require.True(t, s.missing(t).TestDue, pause)
	}

	s.lack(t, s.request(t, gib))
	require.False(t, s.missing(t).TestDue)
	require.NoError(t, s.store.RegisterHost(t.Context(), s.host, "test"))
	require.True(t, s.missing(t).TestDue, "its worker started again")

	s.pass(t, berth.MissingImageKept+time.Second)
	require.Empty(t, s.now(t).MissingImages, "no trial of the sweep came for long")

	s.lack(t, s.request(t, gib))
	require.False(t, s.now(t).CordonedFor(s.sweep), "the count begins anew")
}
