//go:build integration

package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
)

// judging is a chaos without a stack, whose servers answer as told.
func judging(t *testing.T, servers ...http.HandlerFunc) *chaos {
	t.Helper()

	x := &chaos{cluster: &cluster{stack: stack{t: t}}, began: time.Now(), injected: map[string]int{}}

	for _, answer := range servers {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)

		api, err := client.NewClientWithResponses(server.URL + "/api/v1")
		require.NoError(t, err)

		x.apis = append(x.apis, api)
	}

	if len(x.apis) > 0 {
		x.api = x.apis[0]
	}

	return x
}

// status answers everything with a code.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// What had ended before a database was copied is compared with what is there
// once the grace after the restore is over, and not with what was seen in it.
func TestChaosJudge_ComparesAcrossARestore(t *testing.T) {
	t.Parallel()

	before := map[string]string{"sweep 1": "succeeded"}
	changed := map[string]string{"sweep 1": "canceled"}

	x := judging(t)
	x.results, x.counters, x.graced = before, map[string]int64{"trials": 7}, time.Now().Add(time.Hour)
	x.compare(changed, map[string]int64{"trials": 5})
	x.compare(changed, map[string]int64{"trials": 6})
	require.Empty(t, x.broken)

	x.graced = time.Now().Add(-time.Second)
	x.compare(changed, map[string]int64{"trials": 6})
	require.Len(t, x.broken, 2)
	require.Contains(t, x.broken[0], `I3: the end of sweep 1 changed from "succeeded" to "canceled"`)
	require.Contains(t, x.broken[1], "I6: trials went back from 7 to 6")
}

// A restored database may lack the results of trials that ran in between, and
// of no others.
func TestChaosJudge_ForgetsOnlyWhatWasBetween(t *testing.T) {
	t.Parallel()

	x := judging(t)
	x.forgotten = map[string]bool{"a": true, "b": true}

	require.Equal(t, []string{pgtest.HasResult + ": c", "I4 an end has a cause: a"}, x.withoutForgotten([]string{
		pgtest.HasResult + ": a; c; b", pgtest.SameResult + ": b of sweep s trial 1 has 1, its attempt none", "I4 an end has a cause: a",
	}))
}

// What was refused has not happened; what was not answered may have.
func TestChaosJudge_OnlyWhatMayHaveHappenedExcuses(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		codes   []int
		excuses bool
	}{
		{[]int{http.StatusConflict}, false},
		{[]int{http.StatusOK}, true},
		{[]int{http.StatusServiceUnavailable, http.StatusConflict}, true},
		{[]int{http.StatusServiceUnavailable, http.StatusServiceUnavailable}, true},
		{[]int{http.StatusNotFound}, false},
	} {
		var answers []http.HandlerFunc
		for _, code := range c.codes {
			answers = append(answers, status(code))
		}

		x, o := judging(t, answers...), &ordered{id: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1"}
		for _, what := range []string{"pause", "stop", "cancel"} {
			x.steerTo(o, what)
		}

		require.Equal(t, deeds{Paused: c.excuses, Stopped: c.excuses, Canceled: c.excuses}, o.deeds, "%v", c.codes)
	}
}
