package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/apitest"
)

// looking runs a test with hints that look at a store, on a clock that the test moves.
func looking(t *testing.T, test func(t *testing.T, store *apitest.Store, h *hints)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		store := apitest.Sample()
		h := newHints(store, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})

		go func() {
			defer close(ended)

			h.run(ctx)
		}()

		test(t, store, h)
		cancel()
		<-ended
	})
}

// pass lets time pass, and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func metricsOf(sweep, attempt string) berth.Hint {
	return berth.Hint{Kind: berth.HintMetrics, Subject: attempt, SweepID: sweep, TrialNumber: 1, At: apitest.Start}
}

// told is what after returns, as "kind subject".
func (h *hints) told(number int, sweepIDs ...string) (told []string, last int) {
	found, last, _ := h.after(number, sweepIDs)
	for _, hint := range found {
		told = append(told, string(hint.key.kind)+" "+hint.key.subject)
	}

	return told, last
}

// The database is asked nothing while no stream wants to know, and once in 2 s however
// many do.
func TestHints_AskOnceForAllStreams(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		pass(time.Minute)
		require.Empty(t, store.Looks())

		var ends []func()

		for range 200 {
			_, done := h.watch(nil)
			ends = append(ends, done)
		}

		pass(0)
		require.Len(t, store.Looks(), 1, "at once: what is before the first look is no news")
		pass(20*time.Second + time.Millisecond)
		require.Len(t, store.Looks(), 11)

		for _, done := range ends {
			done()
		}

		pass(time.Minute)
		require.Len(t, store.Looks(), 11)

		for range 50 { // streams that come and go at once
			_, done := h.watch(nil)

			pass(100 * time.Millisecond)
			done()
		}

		require.LessOrEqual(t, len(store.Looks()), 14)
	})
}

func TestHints_OfWhatIsWatched(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		watched := func() []string {
			looks := store.Looks()

			return looks[len(looks)-1].SweepIDs
		}

		_, endB := h.watch([]string{"b"})
		_, endAB := h.watch([]string{"a", "b"})

		pass(hintsEvery)
		require.Equal(t, []string{"a", "b"}, watched())

		store.Hint(metricsOf("c", "before"))

		_, endAll := h.watch(nil)

		pass(hintsEvery)
		require.Empty(t, watched())
		pass(hintsEvery)

		told, last := h.told(0)
		require.Empty(t, told, "nobody looked at it before")
		store.Hint(metricsOf("c", "before"))
		store.Hint(metricsOf("c", "new"))
		store.Hint(metricsOf("a", "new a"))
		pass(hintsEvery)

		told, _ = h.told(last)
		require.Equal(t, []string{"metrics before", "metrics new", "metrics new a"}, told)
		told, _ = h.told(last, "a")
		require.Equal(t, []string{"metrics new a"}, told)

		endAll()
		endAB()
		pass(hintsEvery)
		require.Equal(t, []string{"b"}, watched())
		endB()
	})
}

// What changes all the time is told once in 2 s.
func TestHints_AreThinned(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		store.Hint(metricsOf("a", "x"))

		last, done := h.watch(nil)
		defer done()

		pass(0)

		var at []time.Time

		for range 200 { // 20 s
			store.Hint(metricsOf("a", "x"))
			pass(100 * time.Millisecond)

			var told []string

			if told, last = h.told(last); len(told) > 0 {
				require.Equal(t, []string{"metrics x"}, told)
				at = append(at, time.Now())
			}
		}

		require.Len(t, at, 10)

		for i := range at[1:] {
			require.GreaterOrEqual(t, at[i+1].Sub(at[i]), hintsEvery)
		}

		pass(time.Minute)

		told, last := h.told(last)
		require.LessOrEqual(t, len(told), 1, "the last change")

		pass(time.Minute)

		told, _ = h.told(last)
		require.Empty(t, told)
	})
}

// Of more than can be told at once each has its turn, and one that changes all the time
// keeps none from it. Hosts do not wait.
func TestHints_TakeTurns(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		last, done := h.watch(nil)
		defer done()

		pass(0)

		const attempts = 2*hintsAtOnce + hintsAtOnce/2

		change := func() {
			for i := range attempts {
				store.Hint(metricsOf("a", fmt.Sprint(i)))
			}
		}
		told := make(map[string]int) // by the look

		for look := range 12 {
			change()
			store.Hint(berth.Hint{Kind: berth.HintHostSilent, Subject: "h"})
			pass(hintsEvery)

			var now []string

			now, last = h.told(last)
			if look > 0 { // the host was not known before
				require.Contains(t, now, "host.silent h")

				now = slices.DeleteFunc(now, func(one string) bool { return one == "host.silent h" })
			}

			require.Len(t, now, hintsAtOnce)

			for _, one := range now {
				told[one] = look
			}

			for one, before := range told {
				require.Less(t, look-before, 3, one)
			}
		}

		require.Len(t, told, attempts)
	})
}

// A host is told silent once, and back once; of a reader that was slow only how it is now.
func TestHints_OfHosts(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		store.Hint(berth.Hint{Kind: berth.HintHostBack, Subject: "h"})

		first, done := h.watch([]string{"a"})
		defer done()

		pass(0)
		store.Hint(berth.Hint{Kind: berth.HintHostSilent, Subject: "h"})
		pass(hintsEvery)

		found, last, _ := h.after(first, []string{"a"})
		require.Len(t, found, 1)
		require.Contains(t, string(found[0].text), `"kind":"host.silent"`)
		pass(time.Minute)

		found, last, _ = h.after(last, []string{"a"})
		require.Empty(t, found)
		store.Hint(berth.Hint{Kind: berth.HintHostBack, Subject: "h"})
		pass(hintsEvery)

		found, _, _ = h.after(last, nil)
		require.Len(t, found, 1)
		require.Contains(t, string(found[0].text), `"kind":"host.back"`)

		found, _, _ = h.after(first, nil)
		require.Len(t, found, 1)
		require.Contains(t, string(found[0].text), `"kind":"host.back"`)
	})
}

// What changed while the database did not answer is told later, and the log says it once.
func TestHints_OutliveTheDatabase(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		var log bytes.Buffer

		h.log = slog.New(slog.NewTextHandler(&log, nil))

		last, done := h.watch(nil)
		defer done()

		store.Hint(metricsOf("a", "x"))
		pass(0)
		store.Change(func() { store.Blind = berth.Errorf(berth.KindUnavailable, "the database is away") })
		store.Hint(metricsOf("a", "x"))
		pass(time.Minute)
		require.Equal(t, 1, strings.Count(log.String(), "the database is away"))
		store.Change(func() { store.Blind = nil })
		pass(hintsEvery)

		told, _ := h.told(last)
		require.Equal(t, []string{"metrics x"}, told)
	})
}

// A reader that is slow gets of each thing the newest, and keeps no more in memory than
// the others.
func TestHints_OfSlowReaders(t *testing.T) {
	t.Parallel()

	looking(t, func(t *testing.T, store *apitest.Store, h *hints) {
		first, done := h.watch(nil)
		defer done()

		pass(0)

		for i := range 3 * hintsKept {
			store.Hint(metricsOf("a", "x"))
			store.Hint(metricsOf("a", fmt.Sprint(i/2)))
			pass(hintsEvery)
		}

		require.Len(t, h.batches, hintsKept)

		told, _ := h.told(first)
		require.Equal(t, []string{"metrics 8", "metrics 9", "metrics 10", "metrics x", "metrics 11"}, told)
	})
}
