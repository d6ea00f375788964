package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// runsFirst fakes when the first trial of the sweep runs.
func (b *sweepBundle) runsFirst(after time.Duration) {
	var a *activities.Activities

	start := b.env.Now()
	b.env.OnActivity(a.FirstTrialRan, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.SweepRef) (time.Time, error) {
			if b.env.Now().Sub(start) < after {
				return time.Time{}, nil
			}

			return start.Add(after), nil
		}).Maybe()
}

// max_duration counts the time in which the sweep can run: not the backlog
// before its first trial, and no pause.
func TestSweep_MaxDurationCountsTheTimeInWhichItRuns(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name           string
		first          time.Duration // when the first trial runs
		paused, resume time.Duration // when a person acts; 0 = never
		end            time.Duration // when the sweep ends
	}{
		{"at once", 0, 0, 0, 2 * time.Hour},
		{"behind a backlog", 5 * time.Hour, 0, 0, 7 * time.Hour},
		{"paused", 0, time.Hour, 60 * time.Hour, 61 * time.Hour},
		{"paused behind a backlog", 5 * time.Hour, time.Hour, 4 * time.Hour, 7 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.takes = 100 * time.Hour // until a person stops it
			b.plan.MaxDuration = berth.Duration(2 * time.Hour)
			b.runsFirst(tt.first)

			if tt.paused > 0 {
				b.update(tt.paused, workflows.UpdatePause)
				b.update(tt.resume, workflows.UpdateResume)
			}

			start := b.env.Now()

			require.Equal(t, berth.SweepSucceeded, b.execute(t).State)
			require.Contains(t, b.finished.Reason, "limits.max_duration")
			require.InDelta(t, tt.end.Minutes(), b.env.Now().Sub(start).Minutes(), 6)
		})
	}
}

// Temporal's store was lost over a pause. The database knows neither its
// beginning nor the length of earlier ones, so an adopted sweep has its whole
// time again.
func TestSweep_MaxDurationOfAnAdoptedSweep(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		state  berth.SweepState
		ran    bool
		resume time.Duration // 0 = never
		end    time.Duration
	}{
		"paused":         {berth.SweepPaused, true, 10 * time.Hour, 18 * time.Hour},
		"paused earlier": {berth.SweepRunning, true, 0, 8 * time.Hour},
		"has not run":    {berth.SweepRunning, false, 0, 11 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.takes, b.plan.MaxDuration = 100*time.Hour, berth.Duration(8*time.Hour)
			b.runsFirst(3 * time.Hour) // unless one has

			start := b.env.Now()
			friday := start.Add(-65 * time.Hour)
			state := workflows.RestoreSweep(berth.Sweep{State: tt.state, CreatedAt: friday, StartedAt: &friday}, tt.ran, start)

			if tt.resume > 0 {
				b.update(tt.resume, workflows.UpdateResume)
			}

			b.env.ExecuteWorkflow(workflows.SweepWorkflow, workflows.SweepInput{SweepID: sweepID, Carried: &state, Restored: true})
			require.NoError(t, b.env.GetWorkflowError())
			require.Contains(t, b.finished.Reason, "limits.max_duration")
			require.InDelta(t, tt.end.Minutes(), b.env.Now().Sub(start).Minutes(), 6)
		})
	}
}
