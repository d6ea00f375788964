package runtrial

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The best and the mean of an attempt that goes on are of its own reports, and its message says so.
func TestRun_SaysThatTheBestIsOfThisAttempt(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		strategy berth.Strategy
		begins   bool // anew, without a checkpoint
		printed  string
		says     bool
	}{
		"best":         {theBest, false, "acc=0.9\nacc=0.8\n", true},
		"mean":         {theMean, false, "acc=0.9\nacc=0.8\n", true},
		"last":         {theLast, false, "acc=0.9\nacc=0.8\n", false},
		"final":        {theBest, false, "acc=0.9\n{\"type\": \"final\", \"acc\": 0.95}\n", false},
		"begins anew":  {theBest, true, "acc=0.9\nacc=0.8\n", false},
		"has no value": {theBest, false, "loss=0.9\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupSecond(t, writes("state", "7"))
			if c.begins {
				x.knows(berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true})
			}

			x.books.says(func(who *berth.Assignee) {
				who.Attempt.Number = 2
				who.Spec.Objective = &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize, Strategy: c.strategy}
			})

			ended := x.start(t.Context(), x.order())
			box := x.starts(t, !c.begins)
			got := ends(t, box, ended, c.printed, 0)
			note := "; it went on from a checkpoint, and `" + string(c.strategy) + "` counts only what this attempt reported"
			require.Equal(t, c.says, strings.Contains(got.Message, note), got.Message)
		})
	}
}
