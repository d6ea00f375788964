package retention_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/retention"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// removals is a database that asks for removals.
type removals struct {
	asked []berth.OutputRemoval
	done  []string

	failed []string

	refuses error                // what OldestOutputs says
	ended   []berth.TrialOutputs // of sweeps that have ended, the oldest first
	expired []string             // trials
	why     string
}

func (r *removals) OutputRemovals(_ context.Context, _ string, limit int) ([]berth.OutputRemoval, error) {
	return slices.Clone(r.asked[:min(limit, len(r.asked))]), nil
}

func (r *removals) OutputsRemoved(_ context.Context, _ string, ids, failed []string) error {
	r.done, r.failed = append(r.done, ids...), failed
	r.asked = slices.DeleteFunc(slices.Clone(r.asked), func(o berth.OutputRemoval) bool {
		return r.ended != nil && slices.Contains(ids, o.AttemptID)
	})
	slices.SortStableFunc(r.asked, func(a, b berth.OutputRemoval) int {
		return cmp.Compare(slices.Index(failed, a.AttemptID), slices.Index(failed, b.AttemptID))
	})

	return nil
}

func (r *removals) OldestOutputs(context.Context, string, int) ([]berth.TrialOutputs, error) {
	return slices.Clone(r.ended), r.refuses
}

func (r *removals) ExpireOutputs(_ context.Context, _ string, trialIDs []string, why string) error {
	for _, id := range trialIDs {
		i := slices.IndexFunc(r.ended, func(o berth.TrialOutputs) bool { return o.TrialID == id })
		for _, attempt := range r.ended[i].AttemptIDs {
			r.asked = append(r.asked, berth.OutputRemoval{AttemptID: attempt, TrialID: id})
		}

		r.ended = slices.Delete(r.ended, i, i+1)
	}

	r.expired, r.why = append(r.expired, trialIDs...), why

	return nil
}

// files are the sizes of attempts; they remove everything but attempts called stuck.
type files map[string]int64

func (f files) RemoveOutputs(r berth.OutputRemoval) error {
	if strings.HasPrefix(r.AttemptID, "stuck") {
		return errors.New("device busy")
	}

	delete(f, r.AttemptID)

	return nil
}

func (f files) RemoveCopies(context.Context) error { return nil }

func (f files) MeasureOutputs(ctx context.Context) (map[string]int64, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return nil, errors.New("a slow disk needs longer")
	}

	return maps.Clone(f), nil
}

// old are trials of sweeps that ended longer ago than their files must stay.
func old(names ...string) []berth.TrialOutputs { return ended(2*time.Hour, names...) }

// ended are trials with one attempt of sweeps that ended so long ago.
func ended(ago time.Duration, names ...string) []berth.TrialOutputs {
	var all []berth.TrialOutputs
	for _, name := range names {
		all = append(all, berth.TrialOutputs{TrialID: "trial " + name, AttemptIDs: []string{name}, EndedFor: ago})
	}

	return all
}

// The oldest files of ended sweeps go until the rest is within the limit. Files
// that no ended sweep has are left, and so are all while that cannot be reached.
func TestRemover_KeepsToItsSize(t *testing.T) {
	t.Parallel()

	many, sizes := make([]string, 2300), files{"runs": 5}
	for i := range many {
		many[i] = "t" + strconv.Itoa(i)
		sizes[many[i]] = 1
	}

	for _, tt := range []struct {
		name  string
		limit int64
		files files
		ended []berth.TrialOutputs
		left  []string // sizes are left of these
	}{
		{"without a limit nothing goes", 0, files{"a": 100, "runs": 100}, old("a"), []string{"a", "runs"}},
		{"within the limit nothing goes", 200, files{"a": 100, "runs": 100}, old("a"), []string{"a", "runs"}},
		{"the oldest go, no more than needed", 149, files{"a": 40, "b": 20, "c": 30, "runs": 100}, old("a", "b", "c"), []string{"c", "runs"}},
		{"nothing goes for a limit that is out of reach", 50, files{"a": 1, "runs": 100}, old("a"), []string{"a", "runs"}},
		{"an attempt that left nothing is no end", 50, files{"b": 10, "runs": 45}, old("gone", "b"), []string{"runs"}},
		{"one that cannot be removed is no reason to remove others", 50, files{"stuck": 60, "b": 20}, old("stuck", "b"), []string{"stuck", "b"}},
		{"what ended just now stays", 149, files{"a": 40, "b": 60, "runs": 100}, append(old("a"), ended(time.Minute, "b")...), []string{"b", "runs"}},
		{"more than one batch", 5, sizes, old(many...), []string{"runs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			ledger := &removals{ended: tt.ended}
			remover := &retention.Remover{Removals: ledger, Files: tt.files, HostID: "h", Limit: tt.limit, Every: time.Hour, Log: slog.New(slog.DiscardHandler)}

			err := remover.Look(t.Context())
			require.Equal(t, slices.Contains(tt.left, "stuck") || strings.Contains(tt.name, "out of reach"), err != nil, err)
			require.ElementsMatch(t, tt.left, slices.Collect(maps.Keys(tt.files)))

			if len(ledger.expired) > 0 {
				require.Contains(t, ledger.why, "--keep-outputs-size")
			}
		})
	}
}

// Attempts whose files cannot be removed, more than one step takes, keep no other from its
// removal, and are asked for again after all others. One look ends although they stay.
func TestRemover(t *testing.T) {
	t.Parallel()

	ledger := &removals{ended: []berth.TrialOutputs{}}
	for i := range 450 {
		ledger.asked = append(ledger.asked, berth.OutputRemoval{AttemptID: "stuck" + strconv.Itoa(i)})
	}

	ledger.asked = append(ledger.asked, berth.OutputRemoval{AttemptID: "a"})
	remover := &retention.Remover{Removals: ledger, Files: files{"a": 1}, HostID: "h", Every: time.Hour, Log: slog.New(slog.DiscardHandler)}

	require.ErrorContains(t, remover.Look(t.Context()), "files of 450 attempts")
	require.Equal(t, []string{"a"}, ledger.done)
	require.Len(t, ledger.failed, 50, "of the last step")
}

// limits is a database with so many steps of work, one part of which fails.
type limits struct {
	steps int
	calls chan berth.Retention
	noted chan string
}

func (l *limits) Lead(ctx context.Context, _ string, lead func(context.Context) error) error {
	return lead(ctx)
}

func (l *limits) Retain(_ context.Context, keep berth.Retention, failed map[string]error) bool {
	l.steps--
	l.calls <- keep

	for _, what := range []string{"c", "a", "e", "b", "d"} {
		failed[what] = errors.New(what + " stays")
	}

	return l.steps > 0
}

func (l *limits) NoteRetention(_ context.Context, problem string) error {
	l.noted <- problem

	return nil
}

// What fails ends the look of nothing else, and is noted for health.
func TestKeeper_GoesOnUntilNothingIsOverItsLimit(t *testing.T) {
	t.Parallel()

	ledger := &limits{steps: 3, calls: make(chan berth.Retention), noted: make(chan string)}
	keeper := &retention.Keeper{Ledger: ledger, Keep: berth.Retention{Outputs: time.Hour}, Every: time.Hour, Log: slog.New(slog.DiscardHandler)}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- keeper.Run(ctx) }()

	for range 3 {
		require.Equal(t, time.Hour, (<-ledger.calls).Outputs)
	}

	require.Equal(t, "a stays; b stays; c stays; 2 more", <-ledger.noted)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Zero(t, ledger.steps, "and then waits")
}

// A removal that fails ends neither the measuring nor the limit for all others,
// and counts as done: others do not go in its stead.
func TestRemover_GoesOnBesideWhatIsStuck(t *testing.T) {
	t.Parallel()

	ledger := &removals{asked: []berth.OutputRemoval{{AttemptID: "stuck", TrialID: "trial stuck"}}, ended: old("a", "b")}
	disk := files{"stuck": 1000, "trial stuck": 1000, "a": 100, "b": 10}
	remover := &retention.Remover{Removals: ledger, Files: disk, HostID: "h", Limit: 50, Every: time.Hour, Log: slog.New(slog.DiscardHandler)}

	require.ErrorContains(t, remover.Look(t.Context()), "device busy")
	require.ElementsMatch(t, []string{"stuck", "trial stuck", "b"}, slices.Collect(maps.Keys(disk)))
	require.Equal(t, "files of 1 attempts cannot be removed, such as: device busy", remover.Problem())

	ledger.asked = nil

	require.NoError(t, remover.Look(t.Context()))
	require.Empty(t, remover.Problem())
}

// A look that fails is told, until one works.
func TestRemover_SaysWhyALookFails(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		ledger := &removals{ended: old("a"), refuses: errors.New("statement timeout")}
		remover := &retention.Remover{Removals: ledger, Files: files{"a": 100}, HostID: "h", Limit: 50, Every: time.Hour, Log: slog.New(slog.DiscardHandler)}

		for range 2 { // the second one only removes what it is asked to
			require.ErrorContains(t, remover.Look(t.Context()), "statement timeout")
			require.Equal(t, "removing files fails: statement timeout", remover.Problem())
		}

		ledger.refuses = nil

		time.Sleep(2 * time.Minute) // of the test's own clock
		require.NoError(t, remover.Look(t.Context()))
		require.Empty(t, remover.Problem())
	})
}

// A person is told which limit cannot be kept, and what keeps it from it.
func TestRemover_SaysWhatIsOutOfReach(t *testing.T) {
	t.Parallel()

	ledger := &removals{ended: old("a")}
	remover := &retention.Remover{
		Removals: ledger, Files: files{"a": 2 << 30, "runs": 210 << 30}, HostID: "h", Limit: 200 << 30, Every: time.Hour, Log: slog.New(slog.DiscardHandler),
	}

	require.Error(t, remover.Look(t.Context()))
	require.Empty(t, ledger.expired)
	require.Equal(t, "files of attempts take 217,088 MiB and --keep-outputs-size is 204,800 MiB, but sweeps that have not ended, and files "+
		"that the database does not know, hold 215,040 MiB; ended sweeps hold 2,048 MiB and keep it, as their removal would not keep the limit", remover.Problem())
}
