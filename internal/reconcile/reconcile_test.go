package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a host's Docker and its part of the ledger. What is done to it is
// written down in order.
type fake struct {
	mu         sync.Mutex
	containers []berth.Container
	leases     []berth.HostLease
	elsewhere  []berth.HostLease // of other hosts
	did        []string
	touched    [][]string
	problems   []string         // as the touches said
	settled    []string         // attempts that Temporal was asked about
	fail       map[string]error // by what is done
	afterList  func()
}

func (f *fake) note(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.did = append(f.did, what)

	return f.fail[what]
}

func (f *fake) List(context.Context) ([]berth.Container, error) {
	listed := slices.Clone(f.containers)
	if f.afterList != nil {
		f.afterList()
	}

	return listed, f.fail["list"]
}

func (f *fake) Stop(_ context.Context, id string, _ time.Duration) error { return f.note("stop " + id) }

func (f *fake) Remove(_ context.Context, id string) error {
	if err := f.note("remove " + id); err != nil {
		return err
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.containers = slices.DeleteFunc(slices.Clone(f.containers), func(c berth.Container) bool { return c.ID == id })

	return nil
}

func (f *fake) RegisterHost(_ context.Context, h berth.Host, version string) error {
	return f.note("register " + h.Name + " " + version)
}

func (f *fake) TouchHost(_ context.Context, _ string, free berth.HostFree, seen []berth.SeenAttempt) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	var attempts []string
	for _, attempt := range seen {
		attempts = append(attempts, attempt.AttemptID)
	}

	f.touched, f.problems = append(f.touched, attempts), append(f.problems, free.Problem)

	if free.MemoryBytes != int64(len(attempts)) {
		return errors.New("the memory that is free was measured on other containers")
	}

	return f.fail["touch"]
}

func (f *fake) Settle(_ context.Context, l berth.HostLease) error {
	f.settled = append(f.settled, l.AttemptID)

	return nil
}

func (f *fake) HostLeases(context.Context, string) ([]berth.HostLease, error) {
	return f.leases, f.fail["leases"]
}

func (f *fake) LeasesOf(_ context.Context, attempts []string) ([]berth.HostLease, error) {
	var leases []berth.HostLease

	for _, l := range f.elsewhere {
		if slices.Contains(attempts, l.AttemptID) {
			leases = append(leases, l)
		}
	}

	return leases, f.fail["leases of"]
}

func (f *fake) ReleaseLease(_ context.Context, attempt, proof string) error {
	if proof == "" {
		return errors.New("no proof")
	}

	return f.note("release " + attempt)
}

const old = time.Hour

// box is a container of attempt a with token 7.
func box(age time.Duration) berth.Container {
	return berth.Container{ID: "c", Name: "berth-x-a", AttemptID: "a", Token: 7, CreatedAt: time.Now().Add(-age)}
}

// lease is one of attempt a, whose token is now this.
func lease(current int64, state berth.AttemptState, age time.Duration) berth.HostLease {
	return berth.HostLease{AttemptID: "a", Token: 7, Current: current, AttemptState: state, State: berth.LeaseHeld, Age: age}
}

func setup(f *fake, change ...func(*reconcile.Config)) *reconcile.Reconciler {
	config := reconcile.Config{
		Host: berth.Host{ID: "h", Name: "host"}, Version: "v1",
		Free: func(running []berth.Container) berth.HostFree {
			return berth.HostFree{MemoryBytes: int64(len(running))}
		},
	}
	for _, c := range change {
		c(&config)
	}

	return reconcile.New(f, f, config, slog.New(slog.DiscardHandler))
}

// An attempt that waits for its image has no container, and keeps its place.
func TestRound_RenewsWhatWaits(t *testing.T) {
	t.Parallel()

	f := &fake{}
	r := setup(f, func(c *reconcile.Config) {
		c.Waiting = func() []berth.SeenAttempt { return []berth.SeenAttempt{{AttemptID: "waits"}} }
		c.Free = func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 1} }
	})

	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, [][]string{{"waits"}}, f.touched)
}

// TestRound_Table is the table of the package comment.
func TestRound_Table(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		containers []berth.Container
		leases     []berth.HostLease
		want       []string
	}{
		"held": {[]berth.Container{box(old)}, []berth.HostLease{lease(7, berth.AttemptRunning, old)}, nil},
		"held, not yet noted as running": {
			[]berth.Container{box(old)}, []berth.HostLease{lease(7, berth.AttemptPlaced, old)}, nil,
		},
		"fenced": {
			[]berth.Container{box(old)},
			[]berth.HostLease{lease(8, berth.AttemptAbandoned, old)},
			[]string{"stop c", "remove c", "release a"},
		},
		"fenced, and no newer attempt was placed": {
			[]berth.Container{box(old)},
			[]berth.HostLease{{AttemptID: "a", Token: 7, Current: 8, AttemptState: berth.AttemptAbandoned, Age: old, Revivable: true}},
			nil,
		},
		"fenced, young": {
			[]berth.Container{box(0)},
			[]berth.HostLease{lease(8, berth.AttemptAbandoned, 0)},
			[]string{"stop c", "remove c", "release a"},
		},
		"orphan":                {[]berth.Container{box(old)}, nil, []string{"stop c", "remove c"}},
		"orphan, young":         {[]berth.Container{box(0)}, nil, nil},
		"ended, gone":           {nil, []berth.HostLease{lease(8, berth.AttemptAbandoned, old)}, []string{"release a"}},
		"finished, gone":        {nil, []berth.HostLease{lease(7, berth.AttemptFinished, old)}, []string{"release a"}},
		"ended, gone, young":    {nil, []berth.HostLease{lease(8, berth.AttemptAbandoned, 0)}, nil},
		"open, not yet started": {nil, []berth.HostLease{lease(7, berth.AttemptPlaced, old)}, nil},
		"open, gone":            {nil, []berth.HostLease{lease(7, berth.AttemptRunning, old)}, nil},
		"nothing":               {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := &fake{containers: c.containers, leases: c.leases}
			require.NoError(t, setup(f).Round(t.Context()))
			require.Equal(t, c.want, f.did)

			if len(c.containers) > 0 {
				require.Equal(t, [][]string{{"a"}}, f.touched, "what is there is renewed")
			}

			f = &fake{containers: c.containers, leases: c.leases}
			require.NoError(t, setup(f, func(c *reconcile.Config) { c.DryRun = true }).Round(t.Context()))
			require.Empty(t, f.did, "a dry run only says so")
		})
	}
}

// What another host of the installation made on this machine's Docker goes
// when no lease holds a place for it, and is neither renewed nor measured here.
func TestRound_ContainersOfAnotherHost(t *testing.T) {
	t.Parallel()

	foreign := func(age time.Duration) berth.Container {
		c := box(age)
		c.HostID = "other"

		return c
	}

	for name, c := range map[string]struct {
		container berth.Container
		elsewhere []berth.HostLease
		fail      string
		want      []string
	}{
		"its host lost its id":   {container: foreign(old), want: []string{"stop c", "remove c"}},
		"young":                  {container: foreign(0)},
		"its host is there":      {container: foreign(old), elsewhere: []berth.HostLease{lease(7, berth.AttemptRunning, old)}},
		"fenced, its host's own": {container: foreign(old), elsewhere: []berth.HostLease{lease(8, berth.AttemptAbandoned, old)}},
		"the ledger is away":     {container: foreign(old), fail: "leases of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := &fake{containers: []berth.Container{c.container}, elsewhere: c.elsewhere}
			if c.fail != "" {
				f.fail = map[string]error{c.fail: errors.New("away")}
			}

			err := setup(f).Round(t.Context())
			require.Equal(t, c.fail != "", err != nil)
			require.Equal(t, c.want, f.did)
			require.Equal(t, [][]string{nil}, f.touched)
		})
	}
}

func TestRound_ReadsTheLedgerAfterDocker(t *testing.T) {
	t.Parallel()

	f := &fake{containers: []berth.Container{box(old)}}
	f.afterList = func() { f.leases = []berth.HostLease{lease(7, berth.AttemptPlaced, 0)} }

	require.NoError(t, setup(f).Round(t.Context()))
	require.Empty(t, f.did)
}

func TestRound_OneThatCannotBeMendedKeepsNoOtherFromIt(t *testing.T) {
	t.Parallel()

	stuck, other := box(old), box(old)
	stuck.ID, stuck.AttemptID = "stuck", "s"

	f := &fake{
		containers: []berth.Container{stuck, other},
		leases:     []berth.HostLease{lease(8, berth.AttemptAbandoned, old)},
		fail:       map[string]error{"stop stuck": berth.Errorf(berth.KindUnavailable, "does not answer")},
	}

	require.ErrorIs(t, setup(f).Round(t.Context()), f.fail["stop stuck"])
	slices.Sort(f.did)
	require.Equal(t, []string{"release a", "remove c", "stop c", "stop stuck"}, f.did, "what was not stopped is not released")
}

func TestRound_DoesNothingWhenItCannotSee(t *testing.T) {
	t.Parallel()

	for _, what := range []string{"list", "touch", "leases"} {
		f := &fake{
			containers: []berth.Container{box(old)}, leases: []berth.HostLease{lease(8, berth.AttemptAbandoned, old)},
			fail: map[string]error{what: berth.Errorf(berth.KindUnavailable, "away")},
		}
		require.Error(t, setup(f).Round(t.Context()), what)
		require.Empty(t, f.did, what)
	}
}

// executor is one that is at some attempts and has left files of others.
type executor struct {
	busy    map[string]bool
	left    []string
	cleaned []string
	fail    error
	looked  int
}

func (e *executor) Busy(id string) bool { return e.busy[id] }

func (e *executor) Leftovers() ([]string, error) { e.looked++; return e.left, nil }

func (e *executor) Clean(id string) error {
	if e.fail == nil {
		e.cleaned = append(e.cleaned, id)
		e.left = slices.DeleteFunc(slices.Clone(e.left), func(left string) bool { return left == id })
	}

	return e.fail
}

func with(e *executor) func(*reconcile.Config) {
	return func(c *reconcile.Config) { c.Attempts = e }
}

// An executor that read the ledger before the attempt was fenced may start its
// container after Docker was asked.
func TestRound_ReleasesNothingThatMayStillStart(t *testing.T) {
	t.Parallel()

	over := []berth.HostLease{lease(8, berth.AttemptAbandoned, old)}

	e := &executor{busy: map[string]bool{"a": true}}
	f := &fake{leases: over}
	r := setup(f, with(e))
	require.NoError(t, r.Round(t.Context()))
	require.Empty(t, f.did, "the executor is at it")

	e.busy = nil
	f.afterList = func() { f.containers = []berth.Container{box(0)} }
	require.NoError(t, r.Round(t.Context()))
	require.Empty(t, f.did, "it started after the first look, and the second sees it")

	f.afterList = nil
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"stop c", "remove c", "release a"}, f.did)
}

func TestRound_RemovesWhatIsLeftOnDisk(t *testing.T) {
	t.Parallel()

	e := &executor{left: []string{"a", "b", "c"}, busy: map[string]bool{"b": true}}
	f := &fake{leases: []berth.HostLease{lease(7, berth.AttemptRunning, old)}}
	r := setup(f, with(e))
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"c"}, e.cleaned, "a holds a place, and the executor is at b")

	e.busy, e.fail = nil, errors.New("disk error")
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"c"}, e.cleaned)

	e.fail = nil
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"c", "b"}, e.cleaned)

	looked := e.looked
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, looked, e.looked, "nobody looks at a hundred thousand directories each round")

	f.leases = []berth.HostLease{lease(8, berth.AttemptAbandoned, old)}
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"release a"}, f.did)

	f.leases = nil
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"c", "b", "a"}, e.cleaned)
}

func TestRound_RegistersAHostThatWasDeleted(t *testing.T) {
	t.Parallel()

	f := &fake{fail: map[string]error{"touch": berth.Errorf(berth.KindNotFound, "no such host")}}
	require.NoError(t, setup(f).Round(t.Context()))
	require.Equal(t, []string{"register host v1"}, f.did)
}

func TestRun_WaitsForTheGraceBeforeItMends(t *testing.T) {
	t.Parallel()

	run := func(grace time.Duration, until func(f *fake) bool) *fake {
		f := &fake{containers: []berth.Container{box(old)}}
		r := setup(f, func(c *reconcile.Config) { c.Every, c.Grace = time.Millisecond, grace })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- r.Run(ctx) }()

		require.Eventually(t, func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()

			return until(f)
		}, 10*time.Second, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		return f
	}

	f := run(time.Hour/2, func(f *fake) bool { return len(f.touched) > 5 })
	require.Empty(t, f.did, "activities may still be adopting what they left")

	run(time.Nanosecond, func(f *fake) bool { return len(f.did) >= 2 })
}

// A worker whose Docker is dead says so: it is not silent, and takes nothing.
func TestRound_SaysThatDockerDoesNotAnswer(t *testing.T) {
	t.Parallel()

	f := &fake{containers: []berth.Container{box(old)}, fail: map[string]error{"list": berth.Errorf(berth.KindUnavailable, "away")}}
	r := setup(f)
	require.ErrorIs(t, r.Round(t.Context()), f.fail["list"])
	require.Equal(t, []string{"Docker does not answer"}, f.problems)
	require.Equal(t, [][]string{nil}, f.touched, "what cannot be seen is not renewed")

	f.fail = nil
	require.NoError(t, r.Round(t.Context()))
	require.Equal(t, []string{"Docker does not answer", ""}, f.problems)
}

func TestRound_SaysTheProblemOfItsWorker(t *testing.T) {
	t.Parallel()

	f := &fake{}
	require.NoError(t, setup(f, func(c *reconcile.Config) { c.Problem = func() string { return "no Temporal" } }).Round(t.Context()))
	require.Equal(t, []string{"no Temporal"}, f.problems)
}

// A machine that comes back shows what runs there before it counts as ready.
func TestRegister_ShowsContainersFirst(t *testing.T) {
	t.Parallel()

	f := &fake{containers: []berth.Container{box(old)}}
	require.NoError(t, setup(f).Register(t.Context()))
	require.Equal(t, [][]string{{"a"}, {"a"}}, f.touched)
	require.Equal(t, []string{"register host v1"}, f.did)
	require.Equal(t, []string{"its worker is starting", ""}, f.problems, "not ready before the ledger has taken the machine")

	refused := &fake{containers: []berth.Container{box(old)}, fail: map[string]error{"register host v1": berth.Errorf(berth.KindConflict, "this machine has a worker already")}}
	require.ErrorContains(t, setup(refused).Register(t.Context()), "has a worker already")
	require.Equal(t, []string{"its worker is starting"}, refused.problems, "a refused worker leaves no ready host behind")

	unknown := &fake{fail: map[string]error{"touch": berth.Errorf(berth.KindNotFound, "no such host")}}
	require.NoError(t, setup(unknown).Register(t.Context()))
	require.Equal(t, []string{"register host v1"}, unknown.did)
}

// Only what stays without a container is asked about, and again after a grace.
func TestRound_AsksAboutAttemptsWithoutAContainer(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		f := &fake{leases: []berth.HostLease{lease(7, berth.AttemptRunning, old)}}
		e := &executor{busy: map[string]bool{"a": true}}
		r := setup(f, with(e), func(c *reconcile.Config) { c.Workflows, c.Grace = f, time.Minute })
		round := func() {
			require.NoError(t, r.Round(t.Context()))
			time.Sleep(30 * time.Second)
		}

		for range 4 {
			round()
		}

		require.Empty(t, f.settled, "the executor is at it")

		e.busy = nil

		round()
		round()
		require.Empty(t, f.settled, "its activity may be about to start it")
		round()
		require.Equal(t, []string{"a"}, f.settled)
		round()
		require.Equal(t, []string{"a"}, f.settled)
		round()
		require.Equal(t, []string{"a", "a"}, f.settled)

		f.containers = []berth.Container{box(old)}

		for range 4 {
			round()
		}

		require.Len(t, f.settled, 2)
	})
}
