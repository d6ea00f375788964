package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/testkit/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	hostID = "h"
	image  = "sha256:x"
	old    = time.Hour
)

// world is a host's Docker and a ledger. What the reconciler does to them is
// written down in order, by attempt.
type world struct {
	docker *fake.Docker
	ledger *fake.Ledger

	mu        sync.Mutex
	made      map[string]string // attempts by container
	foreign   map[string]bool   // attempts whose containers another host made
	did       []string
	touched   [][]string
	problems  []string         // as the touches said
	settled   []string         // attempts asked about in Temporal
	fail      map[string]error // by call
	afterList func()
	exits     bool // containers exit at once
}

// newWorld is one whose host is registered. Tests call it in a bubble, where
// time passes by sleeping.
func newWorld(t *testing.T) *world {
	t.Helper()

	w := unknownWorld(t)
	w.register(t, hostID)
	w.observe()

	return w
}

// unknownWorld is a world whose ledger does not know the host, without an
// observer yet.
func unknownWorld(t *testing.T) *world {
	t.Helper()

	w := &world{
		docker: fake.NewDocker("boot", image, fake.Idle, nil), ledger: fake.NewLedger(nil),
		made: map[string]string{}, foreign: map[string]bool{}, fail: map[string]error{},
	}
	t.Cleanup(w.docker.Close)

	return w
}

func (w *world) register(t *testing.T, hostID string) {
	t.Helper()
	require.NoError(t, w.ledger.RegisterHost(t.Context(), berth.Host{ID: hostID, Name: hostID, CPUMilli: 64_000, MemoryBytes: 64 << 30}, ""))
}

// observe records calls from now on.
func (w *world) observe() {
	w.docker.Hook(func(h *fake.DockerHooks) {
		h.List = w.aroundList
		h.Stop = func(ctx context.Context, id string, call func(context.Context) error) error {
			return w.unless(ctx, "stop "+w.made[id], call)
		}
		h.Remove = func(ctx context.Context, id string, call func(context.Context) error) error {
			return w.unless(ctx, "remove "+w.made[id], call)
		}
	})
	w.ledger.Hook(func(h *fake.LedgerHooks) {
		h.TouchHost = w.aroundTouch
		h.RegisterHost = func(ctx context.Context, in fake.Registration, call func(context.Context) error) error {
			return w.unless(ctx, "register "+in.Host.Name+" "+in.Version, call)
		}
		h.ReleaseLease = func(ctx context.Context, attempt string, call func(context.Context) error) error {
			return w.unless(ctx, "release "+attempt, call)
		}
		h.HostLeases = func(ctx context.Context, _ string, call func(context.Context) ([]berth.HostLease, error)) ([]berth.HostLease, error) {
			leases, err := call(ctx)

			return leases, cmp.Or(w.fail["leases"], err)
		}
		h.LeasesOf = func(ctx context.Context, _ []string, call func(context.Context) ([]berth.HostLease, error)) ([]berth.HostLease, error) {
			leases, err := call(ctx)

			return leases, cmp.Or(w.fail["leases of"], err)
		}
	})
}

// unless writes a call down and makes it, unless it is to fail.
func (w *world) unless(ctx context.Context, what string, call func(context.Context) error) error {
	w.mu.Lock()
	w.did = append(w.did, what)
	err := w.fail[what]
	w.mu.Unlock()

	if err != nil {
		return err
	}

	return call(ctx)
}

func (w *world) aroundList(ctx context.Context, _ struct{}, call func(context.Context) ([]berth.Container, error)) ([]berth.Container, error) {
	all, err := call(ctx)

	for i, c := range all {
		if w.foreign[c.AttemptID] {
			all[i].HostID = "other"
		}
	}

	if w.afterList != nil {
		w.afterList()
	}

	return all, cmp.Or(w.fail["list"], err)
}

// attemptsOf are the ids of attempts; nil = none.
func attemptsOf(seen []berth.SeenAttempt) (ids []string) {
	for _, attempt := range seen {
		ids = append(ids, attempt.AttemptID)
	}

	return ids
}

func (w *world) aroundTouch(ctx context.Context, in fake.Touch, call func(context.Context) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.touched, w.problems = append(w.touched, attemptsOf(in.Seen)), append(w.problems, in.Free.Problem)

	if in.Seen != nil && in.Free.MemoryBytes != int64(len(in.Seen)) {
		return errors.New("the memory that is free was measured on other containers")
	}

	return cmp.Or(w.fail["touch"], call(ctx))
}

// Settle records the questions to Temporal.
func (w *world) Settle(ctx context.Context, l berth.HostLease) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	w.settled = append(w.settled, l.AttemptID)

	return nil
}

// placed gives an attempt a place on a host.
func (w *world) placed(t *testing.T, attempt, hostID string) {
	t.Helper()

	w.ledger.AddTrial(fake.Trial{Trial: berth.Trial{ID: "trial of " + attempt, SweepID: "sweep"}, ImageDigest: image})
	demand := berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 1000}
	_, err := w.ledger.RequestPlacement(t.Context(), berth.PlacementRequest{
		AttemptID: attempt, SweepID: "sweep", TrialID: "trial of " + attempt, Number: 1, Stage: berth.StageMain, Demand: demand,
	})
	require.NoError(t, err)

	placed, err := w.ledger.Place(t.Context(), map[string]berth.Placement{attempt: {HostID: hostID, Demand: demand}})
	require.NoError(t, err)
	require.Equal(t, []string{attempt}, placed)
}

// running is an attempt that the ledger knows as running.
func (w *world) running(t *testing.T, attempt string) {
	t.Helper()

	w.placed(t, attempt, hostID)
	require.NoError(t, w.ledger.AttemptRunning(t.Context(), attempt, w.token(attempt), "c", time.Now()))
}

// fenced is an attempt that ran here, and does not go back to the host.
func (w *world) fenced(t *testing.T, attempt string) {
	t.Helper()

	w.running(t, attempt)
	require.NoError(t, w.ledger.RefuseAttempt(t.Context(), attempt, "it went elsewhere"))
}

// token is that of an attempt's lease; the first that the ledger gives, for one
// without a lease.
func (w *world) token(attempt string) int64 {
	for _, lease := range w.ledger.Snapshot().Leases {
		if lease.AttemptID == attempt {
			return lease.Token
		}
	}

	return 1
}

// box starts an attempt's container.
func (w *world) box(t *testing.T, attempt string) {
	t.Helper()

	c, err := w.docker.Ensure(t.Context(), berth.Launch{AttemptID: attempt, Token: w.token(attempt), Image: image})
	require.NoError(t, err)

	if w.exits {
		w.docker.Process(attempt).Exit(0)
		synctest.Wait()
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	w.made[c.ID] = attempt
}

func setup(w *world, change ...func(*reconcile.Config)) *reconcile.Reconciler {
	config := reconcile.Config{
		Host: berth.Host{ID: hostID, Name: "host"}, Version: "v1", Attempts: &executor{},
		Free: func(running []berth.Container) berth.HostFree {
			return berth.HostFree{MemoryBytes: int64(len(running))}
		},
	}
	for _, c := range change {
		c(&config)
	}

	return reconcile.New(w.docker, w.ledger, config, slog.New(slog.DiscardHandler))
}

// bubble runs a test on a simulated clock.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// each runs a case of a test on a simulated clock.
func each(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// An attempt that waits for its image has no container, and keeps its place.
func TestRound_RenewsWhatWaits(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		r := setup(w, func(c *reconcile.Config) {
			c.Waiting = func() []berth.SeenAttempt { return []berth.SeenAttempt{{AttemptID: "waits"}} }
			c.Free = func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 1} }
		})

		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, [][]string{{"waits"}}, w.touched)
	})
}

// TestRound_Table is the table of the package comment.
func TestRound_Table(t *testing.T) {
	t.Parallel()

	mended := []string{"stop a", "remove a", "release a"}
	removed := mended[:2]
	released := mended[2:]

	given := map[string]func(t *testing.T, w *world){
		"orphan": func(*testing.T, *world) {},
		"placed": func(t *testing.T, w *world) { t.Helper(); w.placed(t, "a", hostID) },
		"held":   func(t *testing.T, w *world) { t.Helper(); w.running(t, "a") },
		"fenced": func(t *testing.T, w *world) { t.Helper(); w.fenced(t, "a") },
		"may come back": func(t *testing.T, w *world) {
			t.Helper()
			w.running(t, "a")
			require.NoError(t, w.ledger.AbandonAttempt(t.Context(), "a", "its host was away"))
		},
	}

	for name, c := range map[string]struct {
		boxed, young, exited bool
		want                 []string
	}{
		"held":                  {boxed: true},
		"placed, there":         {boxed: true},
		"fenced":                {boxed: true, want: mended},
		"fenced, young":         {boxed: true, young: true, want: mended},
		"fenced, exited":        {boxed: true, exited: true, want: mended},
		"may come back":         {boxed: true},
		"may come back, exited": {boxed: true, exited: true},
		"orphan":                {boxed: true, want: removed},
		"orphan, young":         {boxed: true, young: true},
		"fenced, gone":          {want: released},
		"fenced, gone, young":   {young: true},
		"placed":                {},
		"held, gone":            {},
		"orphan, gone":          {},
	} {
		each(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.exits = c.exited
			what, _, _ := strings.Cut(name, ",")

			if given[what](t, w); c.boxed {
				w.box(t, "a")
			}

			if !c.young {
				time.Sleep(old)
			}

			require.NoError(t, setup(w).Round(t.Context()))
			require.Equal(t, c.want, w.did)

			if c.boxed {
				require.Equal(t, [][]string{{"a"}}, w.touched, "what is there is renewed")
			}

			there, err := w.docker.List(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.boxed && !slices.Contains(c.want, "remove a"), len(there) == 1)

			for _, lease := range w.ledger.Snapshot().Leases {
				require.Equal(t, slices.Contains(c.want, "release a"), lease.State == berth.LeaseReleased)
			}
		})
	}
}

// A container of another host of the installation on this machine's Docker is
// removed when no lease holds a place for it, and is neither renewed nor
// measured here.
func TestRound_ContainersOfAnotherHost(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		place, refuse, young bool
		fail                 string
		want                 []string
	}{
		"its host lost its id":   {want: []string{"stop a", "remove a"}},
		"young":                  {young: true},
		"its host is there":      {place: true},
		"fenced, its host's own": {place: true, refuse: true},
		"the ledger is away":     {fail: "leases of"},
	} {
		each(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.register(t, "other")

			w.did = nil

			if c.place {
				w.placed(t, "a", "other")
			}

			w.box(t, "a")
			w.foreign["a"] = true

			if c.refuse {
				require.NoError(t, w.ledger.RefuseAttempt(t.Context(), "a", "it went elsewhere"))
			}

			if !c.young {
				time.Sleep(old)
			}

			if c.fail != "" {
				w.fail[c.fail] = errors.New("away")
			}

			err := setup(w).Round(t.Context())
			require.Equal(t, c.fail != "", err != nil)
			require.Equal(t, c.want, w.did)
			require.Equal(t, [][]string{nil}, w.touched)
		})
	}
}

func TestRound_ReadsTheLedgerAfterDocker(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.box(t, "a")
		time.Sleep(old)

		w.afterList = func() {
			w.afterList = nil
			w.placed(t, "a", hostID)
			w.did = nil
		}

		require.NoError(t, setup(w).Round(t.Context()))
		require.Empty(t, w.did)
	})
}

func TestRound_DoesNothingWhenItCannotSee(t *testing.T) {
	t.Parallel()

	for _, what := range []string{"list", "check", "touch", "leases"} {
		each(t, what, func(t *testing.T) {
			w := newWorld(t)
			w.fenced(t, "a")
			w.box(t, "a")
			time.Sleep(old)

			w.fail[what] = berth.Errorf(berth.KindUnavailable, "away")
			require.Error(t, setup(w, func(c *reconcile.Config) {
				c.Check = func(context.Context) error { return w.fail["check"] }
			}).Round(t.Context()))
			require.Empty(t, w.did)
		})
	}
}

// executor runs some attempts and has left files of others.
type executor struct {
	busy    map[string]bool
	left    []string
	cleaned []string
	fail    error
	looked  int
	untidy  bool
}

func (e *executor) Busy(id string) bool { return e.busy[id] }

func (e *executor) Untidy() bool { return e.untidy }

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
func TestRound_ReleasesNothingThatMayStillStart(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.fenced(t, "a")
		time.Sleep(old)

		e := &executor{busy: map[string]bool{"a": true}}
		r := setup(w, with(e))
		require.NoError(t, r.Round(t.Context()))
		require.Empty(t, w.did, "the executor is at it")

		e.busy = nil
		w.afterList = func() { w.box(t, "a") }
		require.NoError(t, r.Round(t.Context()))
		require.Empty(t, w.did, "it started after the first look, and the second sees it")

		w.afterList = nil
		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, []string{"stop a", "remove a", "release a"}, w.did)
	})
}

func TestRound_RemovesWhatIsLeftOnDisk(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(t, "a")
		time.Sleep(old)

		e := &executor{left: []string{"a", "b", "c"}, busy: map[string]bool{"b": true}}
		r := setup(w, with(e))
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

		require.NoError(t, w.ledger.RefuseAttempt(t.Context(), "a", "it went elsewhere"))
		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, []string{"release a"}, w.did)

		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, []string{"c", "b", "a"}, e.cleaned)

		e.untidy, e.left = true, []string{"d"}
		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, []string{"c", "b", "a", "d"}, e.cleaned, "the executor said that it left some")
	})
}

func TestRun_WaitsForTheGraceBeforeItMends(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		run := func(grace time.Duration) *world {
			w := newWorld(t)
			w.box(t, "a")
			time.Sleep(old)

			r := setup(w, func(c *reconcile.Config) { c.Every, c.Grace = time.Second, grace })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)

			go func() { ended <- r.Run(ctx) }()

			time.Sleep(10 * time.Second)
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.Greater(t, len(w.touched), 5)

			return w
		}

		require.Empty(t, run(old/2).did, "activities may still be adopting what they left")
		require.Equal(t, []string{"stop a", "remove a"}, run(time.Nanosecond).did)
	})
}

// A worker whose Docker is dead reports that: it is not silent, and takes
// nothing.
func TestRound_SaysThatDockerDoesNotAnswer(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(t, "a")
		w.box(t, "a")

		away := berth.Errorf(berth.KindUnavailable, "away")
		w.fail["list"] = away

		var told [][]berth.DeviceFree

		w.ledger.Hook(func(h *fake.LedgerHooks) {
			before := h.TouchHost
			h.TouchHost = func(ctx context.Context, in fake.Touch, call func(context.Context) error) error {
				told = append(told, in.Free.Devices)

				return before(ctx, in, call)
			}
		})

		r := setup(w, func(c *reconcile.Config) {
			c.Free = func(running []berth.Container) berth.HostFree {
				return berth.HostFree{MemoryBytes: int64(len(running)), Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: int64(4 + 20*len(running))}}}
			}
		})
		require.ErrorIs(t, r.Round(t.Context()), away)
		require.Equal(t, []string{"Docker does not answer"}, w.problems)
		require.Equal(t, [][]string{nil}, w.touched, "what cannot be seen is not renewed")
		require.Equal(t, berth.HostUnready, w.host(t).State)

		delete(w.fail, "list")
		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, []string{"Docker does not answer", ""}, w.problems)
		require.Equal(t, [][]berth.DeviceFree{nil, {{ID: "GPU-1", FreeBytes: 24}}}, told, "without its list the memory of our containers counts as others'")
		require.Equal(t, berth.HostReady, w.host(t).State)
	})
}

// host is the ledger's record of the host.
func (w *world) host(t *testing.T) berth.Host {
	t.Helper()

	hosts, err := w.ledger.ListHosts(t.Context())
	require.NoError(t, err)
	require.Len(t, hosts, 1)

	return hosts[0]
}

func TestRound_SaysTheProblemOfItsWorker(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		trouble := "no Temporal"
		r := setup(w, func(c *reconcile.Config) {
			c.Problem = func() string { return trouble }
			c.Free = func([]berth.Container) berth.HostFree { return berth.HostFree{Problem: "its disk takes no files"} }
		})
		require.NoError(t, r.Round(t.Context()))

		trouble = ""
		require.NoError(t, r.Round(t.Context()))
		require.Equal(t, []string{"no Temporal", "its disk takes no files"}, w.problems)
		require.Equal(t, berth.HostUnready, w.host(t).State)
	})
}

// A machine that comes back shows its containers before it counts as ready.
func TestRegister_ShowsContainersFirst(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(t, "a")
		w.box(t, "a")
		require.NoError(t, setup(w).Register(t.Context()))
		require.Equal(t, [][]string{{"a"}, {"a"}}, w.touched)
		require.Equal(t, []string{"register host v1"}, w.did)
		require.Equal(t, []string{"its worker is starting", ""}, w.problems, "not ready before the ledger has taken the machine")

		refused := newWorld(t)
		refused.box(t, "a")
		refused.fail["register host v1"] = berth.Errorf(berth.KindConflict, "this machine has a worker already")
		require.ErrorContains(t, setup(refused).Register(t.Context()), "has a worker already")
		require.Equal(t, []string{"its worker is starting"}, refused.problems, "a refused worker leaves no ready host behind")
		require.Equal(t, berth.HostUnready, refused.host(t).State)

		for _, register := range []func(*reconcile.Reconciler) error{
			func(r *reconcile.Reconciler) error { return r.Register(t.Context()) },
			func(r *reconcile.Reconciler) error { return r.Round(t.Context()) }, // a person deleted it
		} {
			unknown := unknownWorld(t)
			unknown.observe()
			require.NoError(t, register(setup(unknown)))
			require.Equal(t, []string{"register host v1"}, unknown.did)
		}
	})
}

// Temporal is asked only about attempts that stay without a container, and
// again after a grace.
func TestRound_AsksAboutAttemptsWithoutAContainer(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(t, "a")
		time.Sleep(old)

		e := &executor{busy: map[string]bool{"a": true}}
		r := setup(w, with(e), func(c *reconcile.Config) { c.Workflows, c.Grace = w, time.Minute })
		round := func() {
			require.NoError(t, r.Round(t.Context()))
			time.Sleep(30 * time.Second)
		}

		for range 4 {
			round()
		}

		require.Empty(t, w.settled, "the executor is at it")

		e.busy = nil

		round()
		round()
		require.Empty(t, w.settled, "its activity may be about to start it")
		round()
		require.Equal(t, []string{"a"}, w.settled)
		round()
		require.Equal(t, []string{"a"}, w.settled)
		round()
		require.Equal(t, []string{"a", "a"}, w.settled)

		w.box(t, "a")

		for range 4 {
			round()
		}

		require.Len(t, w.settled, 2)
	})
}

// One container that cannot be killed delays neither the places of others nor
// the next heartbeat of its host.
func TestRound_AStuckContainerHoldsUpNothingElse(t *testing.T) {
	t.Parallel()

	for name, foreign := range map[string]bool{"its own": false, "of another host": true} {
		each(t, name, func(t *testing.T) {
			w := newWorld(t)

			for _, attempt := range []string{"a", "b", "c"} {
				w.box(t, attempt)
				w.foreign[attempt] = foreign
			}

			w.fenced(t, "gone")
			w.running(t, "missing")
			time.Sleep(old)

			w.docker.Hook(func(h *fake.DockerHooks) {
				h.Stop = func(ctx context.Context, _ string, _ func(context.Context) error) error {
					<-ctx.Done()

					return fmt.Errorf("stopping: %w", context.Cause(ctx))
				}
			})
			w.ledger.Hook(func(h *fake.LedgerHooks) {
				h.ReleaseLease = func(ctx context.Context, attempt string, call func(context.Context) error) error {
					return w.unless(ctx, "release "+attempt, func(ctx context.Context) error {
						return cmp.Or(ctx.Err(), call(ctx))
					})
				}
			})

			began := time.Now()
			r := setup(w, func(c *reconcile.Config) { c.Workflows = w })
			require.Error(t, r.Round(t.Context()))
			require.Less(t, time.Since(began), berth.LeaseRenewEvery, "the next round is in time, so the host is not late")

			for _, lease := range w.ledger.Snapshot().Leases {
				require.Equal(t, lease.AttemptID == "gone", lease.State == berth.LeaseReleased, lease.AttemptID)
			}

			time.Sleep(time.Minute)
			require.Error(t, r.Round(t.Context()))
			require.Equal(t, []string{"missing"}, w.settled)
		})
	}
}

// Urgent news is reported between two rounds, and renews nothing.
func TestRun_TellsNews(t *testing.T) { //nolint:paralleltest // bubble
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(t, "a")
		w.box(t, "a")

		ctx, cancel := context.WithCancel(t.Context())
		news := make(chan struct{}, 1)
		problem := ""

		r := setup(w, func(c *reconcile.Config) {
			c.News, c.Every = news, time.Hour
			c.Problem = func() string { return problem }
			c.Free = func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 1} }
		})

		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()

		synctest.Wait()
		require.Equal(t, []string{""}, w.problems, "the first round")

		problem = "the GPU is lost"
		news <- struct{}{}

		synctest.Wait()
		require.Equal(t, []string{"", "the GPU is lost"}, w.problems, "no time has passed")
		require.Equal(t, [][]string{{"a"}, nil}, w.touched)

		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
