package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/placer"
)

// sick is a host whose Docker fails starts.
type sick struct{ *bundle }

// ends places a new trial's attempt, and ends it with a result of this kind.
func (s sick) ends(t *testing.T, kind berth.FailureKind, change func(*berth.Result)) {
	t.Helper()
	s.endsOf(t, s.request(t, gib), kind, change)
}

func (s sick) endsOf(t *testing.T, r berth.PlacementRequest, kind berth.FailureKind, change func(*berth.Result)) {
	t.Helper()

	now := time.Now()
	ended := result(r, s.place(t, r).Token, berth.Outcome{Kind: kind, Message: "runc: permission denied", StartedAt: now, FinishedAt: now})
	change(&ended)
	require.NoError(t, s.store.FinishAttempt(t.Context(), ended))
}

// The changes of a result: as it is, of a container that ran, and without an image on the host.
func plain(*berth.Result)     {}
func started(r *berth.Result) { r.ContainerID = "container" }
func lacking(r *berth.Result) { r.ImageMissing, r.Outcome.Message = true, "image x is not on host a" }

// fail lets the host fail this many starts of new trials, each for this reason.
func (s sick) fail(t *testing.T, times int, why func(*berth.Result)) {
	t.Helper()

	for range times {
		s.ends(t, berth.FailureInfra, why)
	}
}

// other gives the bundle another sweep.
func (s sick) other(t *testing.T) {
	t.Helper()
	s.begin(t, berth.Spec{Name: "other"})
}

// pass lets time pass for the host's failures and tests.
func (s sick) pass(t *testing.T, d time.Duration) {
	t.Helper()
	s.exec(t, "UPDATE hosts SET failed_at = failed_at - $1::interval, test_at = test_at - $1::interval", d)
	s.exec(t, "UPDATE missing_images SET failed_at = failed_at - $1::interval, test_at = test_at - $1::interval", d)
}

// start places an attempt that starts.
func (s sick) start(t *testing.T) (berth.PlacementRequest, int64) {
	t.Helper()

	r := s.request(t, gib)
	token := s.place(t, r).Token
	require.NoError(t, s.store.AttemptRunning(t.Context(), r.AttemptID, token, "container", time.Now()))

	return r, token
}

// cordonedFor reports whether the host takes nothing of a sweep.
func (s sick) cordonedFor(t *testing.T, sweep string) bool {
	t.Helper()

	host := s.first(t)

	return host.CordonedFor(sweep)
}

func TestCordon_AHostThatFailsSeveralTrialsInARow(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}
	first := s.request(t, gib)
	s.endsOf(t, first, berth.FailureInfra, plain)

	for n := 2; n < 5; n++ {
		first = s.again(t, first, n)
		s.endsOf(t, first, berth.FailureInfra, plain)
	}

	require.Equal(t, 1, s.first(t).FailedStarts, "one trial may be at fault itself")

	s.fail(t, 1, plain)
	require.Nil(t, s.first(t).CordonedAt)

	s.fail(t, 1, plain)
	require.True(t, s.cordonedFor(t, s.sweep))
	require.Equal(t, s.sweep, s.first(t).CordonSweep, "so may the sweep be")
	require.Equal(t, "runc: permission denied", s.first(t).CordonReason)
	require.False(t, s.first(t).TestDue)
	require.Equal(t, []string{"a (runc: permission denied)"}, s.health(t).Cordoned)

	s.other(t)
	require.False(t, s.cordonedFor(t, s.sweep))

	bad := s.request(t, gib)
	s.endsOf(t, bad, berth.FailureInfra, plain)
	require.True(t, s.cordonedFor(t, s.sweep), "it is the host")
	require.Empty(t, s.queue(t).Waiting)

	s.again(t, bad, 2)
	require.Equal(t, []string{s.host.ID}, s.queue(t).Waiting[0].FailedHosts)

	s.start(t)
	require.Nil(t, s.first(t).CordonedAt, "a container started")
	require.Zero(t, s.first(t).FailedStarts)
}

// A cordoned host, or one that lacks an image, takes one test at a time, after pauses
// that grow from a minute to half an hour.
func TestCordon_TestsWithGrowingPauses(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		why func(*berth.Result)
		due func(*testing.T, sick) bool
	}{
		"the host": {plain, func(t *testing.T, s sick) bool { t.Helper(); return s.first(t).TestDue }},
		"an image": {lacking, func(t *testing.T, s sick) bool {
			t.Helper()
			require.Len(t, s.first(t).MissingImages, 1)

			return s.first(t).MissingImages[0].TestDue
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := sick{setup(t)}
			s.fail(t, berth.HostCordonAfter, c.why)

			for i, minutes := range []int{1, 2, 4, 8, 16, 30, 30} {
				pause := time.Duration(minutes) * time.Minute
				if i > 0 {
					s.fail(t, 1, c.why)
				}

				require.False(t, c.due(t, s), "one at a time")
				s.pass(t, pause-10*time.Second)
				require.False(t, c.due(t, s), pause)
				s.pass(t, 10*time.Second)
				require.True(t, c.due(t, s), pause)
			}

			s.fail(t, 1, c.why)
			require.False(t, c.due(t, s))
			s.register(t)
			require.True(t, c.due(t, s), "its worker started again")

			require.NoError(t, s.store.SetHostState(t.Context(), s.host.ID, berth.HostReady))
			require.False(t, s.cordonedFor(t, s.sweep), "the operator says that it is mended")

			s.fail(t, 1, lacking)
			s.pass(t, berth.MissingImageKept+time.Second)
			require.Empty(t, s.first(t).MissingImages, "no trial of the sweep came for long")
		})
	}
}

// Only starts that the host fails, one soon after the other, count.
func TestCordon_CountsOnlyTheHostsFaults(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}

	for what, c := range map[string]struct {
		kind   berth.FailureKind
		change func(*berth.Result)
	}{
		"the trial's fault":                  {berth.FailureBadCommand, plain},
		"it ran while the database was away": {berth.FailureInfra, func(r *berth.Result) { started(r); r.Outcome.ExitCode = new(1) }},
		"a person removed the container":     {berth.FailureInfra, started},
	} {
		for range berth.HostCordonAfter {
			s.ends(t, c.kind, c.change)
		}

		require.Zero(t, s.first(t).FailedStarts, what)
	}

	for range berth.HostCordonAfter {
		r, _ := s.start(t)
		s.finish(t, r, berth.Outcome{Kind: berth.FailureInfra})
	}

	require.Zero(t, s.first(t).FailedStarts, "they started")

	for range 2 * berth.HostCordonAfter {
		s.fail(t, 1, plain)
		s.pass(t, berth.HostCordonWindow+time.Second)
	}

	require.Equal(t, 1, s.first(t).FailedStarts, "now and then is no streak")
	require.False(t, s.cordonedFor(t, s.sweep))
}

// A container that started while the database was away proves that the host can
// start containers, unless a failed one came after it.
func TestCordon_AResultThatRanEndsIt(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}
	before := s.request(t, gib)
	ran := result(before, s.place(t, before).Token, berth.Outcome{Kind: berth.FailureOK, StartedAt: time.Now(), FinishedAt: time.Now()})
	started(&ran)
	s.fail(t, berth.HostCordonAfter, plain)
	require.NoError(t, s.store.FinishAttempt(t.Context(), ran))
	require.Equal(t, "container", s.attempt(t, before.AttemptID).ContainerID)
	require.NotNil(t, s.first(t).CordonedAt, "it may have begun before all of them failed")

	s.ends(t, berth.FailureOK, started)
	require.Nil(t, s.first(t).CordonedAt)
	require.Zero(t, s.first(t).FailedStarts)

	s.fail(t, 2, plain)
	s.ends(t, berth.FailureOK, started)
	s.fail(t, 1, plain)
	require.Equal(t, 1, s.first(t).FailedStarts, "in a row")

	s.other(t)
	s.fail(t, berth.HostCordonAfter, lacking)
	require.True(t, s.cordonedFor(t, s.sweep))
	s.ends(t, berth.FailureOK, started)
	require.False(t, s.cordonedFor(t, s.sweep), "its image is there")
}

// An adopted container is no start.
func TestCordon_StaysWhileAWorkerAdopts(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}
	r, token := s.start(t)
	s.fail(t, berth.HostCordonAfter, plain)
	require.NotNil(t, s.first(t).CordonedAt)
	require.NoError(t, s.store.AttemptRunning(t.Context(), r.AttemptID, token, "container", time.Now()))
	require.NotNil(t, s.first(t).CordonedAt)
}

// A missing image is no fault of the host: the host keeps away any number of
// sweeps with that image, and no other.
func TestCordon_AMissingImageKeepsAwayItsSweepsOnly(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}
	first := s.sweep

	s.fail(t, 2, lacking)
	require.False(t, s.cordonedFor(t, first))
	s.fail(t, 1, lacking)
	require.True(t, s.cordonedFor(t, first))

	s.other(t)
	second := s.sweep
	s.fail(t, berth.HostCordonAfter, lacking)
	require.True(t, s.cordonedFor(t, first))
	require.True(t, s.cordonedFor(t, second))
	require.Equal(t, []string{"a (image x is not on host a)"}, s.health(t).Cordoned)

	s.other(t)
	require.False(t, s.cordonedFor(t, s.sweep), "its image is there")
	require.Zero(t, s.first(t).FailedStarts, "the host starts containers")
	s.start(t)
	require.True(t, s.cordonedFor(t, first), "what another sweep starts says nothing of its image")

	s.sweep, s.trial = first, 3
	s.start(t)
	require.False(t, s.cordonedFor(t, first), "the image is there again")
	require.True(t, s.cordonedFor(t, second))
}

// One or two trials cordon nothing. If the image of a trial is missing on the
// only host with room, the trial still waits for the host that may have it.
// Otherwise it would fail for good after ten attempts.
func TestPlacer_ATrialWaitsForTheHostThatMayHaveItsImage(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}
	p := placer.New(s.store, slog.New(slog.DiscardHandler))
	r := s.request(t, gib)
	s.endsOf(t, r, berth.FailureInfra, lacking)

	other := s.host
	other.ID, other.Name = uuid.NewString(), "b"
	require.NoError(t, s.store.RegisterHost(t.Context(), other, "test"))

	const book = "UPDATE hosts SET memory_reserved_bytes = $1 WHERE id = $2"
	s.exec(t, book, int64(8*gib), other.ID)

	r = s.again(t, r, 2)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestWaiting, s.status(t, r))
	require.Contains(t, strings.Join(s.reasons(t, s.trial), "\n"), "the image was missing there; another host may have it")

	sibling := s.request(t, gib)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestPlaced, s.status(t, sibling), "it looks for itself")

	s.exec(t, book, 0, other.ID)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, other.ID, s.placement(t, r).HostID)
}

// Missing images do not make a host's own failures look like failures of one sweep.
func TestCordon_CountsMissingImagesApart(t *testing.T) {
	t.Parallel()

	s := sick{setup(t)}
	s.fail(t, 2, lacking)
	s.fail(t, 1, plain)
	require.False(t, s.cordonedFor(t, s.sweep), "two of one sort, one of the other")

	s.other(t)
	s.fail(t, 2, plain)
	require.True(t, s.cordonedFor(t, "any"), "the host fails starts of two sweeps")
}
