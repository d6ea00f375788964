package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// Suggest stores count trials of a sweep from number first on; suggest makes them from the
// earlier trials, of which it needs what needs says. A repeated call returns the trials that
// the earlier call stored, so that an activity's retry yields the same trials. It returns at
// most count trials: a workflow that is older than the database may lack thousands. In a
// database restored from before the trials ahead of first, suggest makes these again, so that
// numbers have no gaps. exhausted is suggest's own result, true when it has no more.
func (s *Store) Suggest(
	ctx context.Context, sweepID string, first, count int, needs berth.SearchNeeds,
	suggest func(berth.Tried) (trials []berth.NewTrial, exhausted bool, err error),
) (numbers []int, exhausted bool, err error) {
	if needs.Past {
		suggest, err = s.suggestAhead(ctx, sweepID, first, suggest)
		if err != nil {
			return nil, false, err
		}
	}

	err = s.inTx(ctx, "suggesting trials of sweep "+sweepID, func(tx pgx.Tx) error {
		if err := s.q.LockSweep(ctx, tx, sweepID); err != nil {
			return err
		}

		tried, err := s.lastTried(ctx, tx, sweepID)
		if err != nil {
			return err
		}

		if tried.Made >= first {
			numbers = sequence(first, min(tried.Made, first+count-1))

			return nil
		}

		if err := s.addEntries(ctx, tx, sweepID, needs.Entries, &tried); err != nil {
			return err
		}

		trials, done, err := suggest(tried)
		if err != nil {
			return err
		}

		exhausted = done
		numbers = sequence(first, tried.Made+len(trials))

		return s.insertTrials(ctx, tx, sweepID, tried.Made+1, trials)
	})

	return numbers, exhausted, err
}

// suggestAhead suggests from all earlier trials before the sweep is locked: a model takes
// long, and what it makes is the result's to store, unless another call stored trials
// meanwhile. These are this call's own from before a retry, which Suggest returns.
func (s *Store) suggestAhead(
	ctx context.Context, sweepID string, first int, suggest func(berth.Tried) ([]berth.NewTrial, bool, error),
) (stored func(berth.Tried) ([]berth.NewTrial, bool, error), err error) {
	var (
		trials []berth.NewTrial
		done   bool
		made   int
	)

	err = s.inSnapshot(ctx, "reading trials of sweep "+sweepID, func(tx pgx.Tx) error {
		tried, err := s.lastTried(ctx, tx, sweepID)
		if err != nil || tried.Made >= first {
			return err
		}

		tried.Past, err = s.observations(ctx, tx, sweepID)
		if err != nil {
			return err
		}

		if err := s.addEntries(ctx, tx, sweepID, false, &tried); err != nil {
			return err
		}

		priors, err := s.q.ListPriors(ctx, tx, sweepID)
		if err != nil {
			return err
		}

		tried.Prior = toPriors(priors)
		made = tried.Made
		trials, done, err = suggest(tried)

		return err
	})

	return func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		if tried.Made != made {
			return nil, false, berth.Errorf(berth.KindUnavailable, "trials of sweep %s were stored while others were suggested", sweepID)
		}

		return trials, done, nil
	}, err
}

// entriesAtOnce is how many listed assignments are read for one call: more than it
// makes trials (workflows: 8), beside trials that a restored database forgot.
const entriesAtOnce = 100

// lastTried reads the newest trial; it reads others on demand.
func (s *Store) lastTried(ctx context.Context, tx pgx.Tx, sweepID string) (tried berth.Tried, err error) {
	rows, err := s.q.LastTrial(ctx, tx, sweepID)
	if err != nil {
		return tried, err
	}

	for _, row := range rows { // one, or none
		tried.Made, tried.Last = row.Number, row.Params
	}

	tried.Seen = func(keys []string) (map[string]bool, error) {
		find := func() ([]string, error) { return s.q.FindTrialParams(ctx, tx, sweepID, keys) }
		if keys == nil {
			find = func() ([]string, error) { return s.q.ListTrialParams(ctx, tx, sweepID) }
		}

		found, err := find()
		seen := make(map[string]bool, len(found))

		for _, key := range found {
			seen[key] = true
		}

		return seen, err
	}

	return tried, nil
}

// addEntries reads the listed assignments that come next, or all of them.
func (s *Store) addEntries(ctx context.Context, tx pgx.Tx, sweepID string, all bool, tried *berth.Tried) error {
	listed, err := s.q.CountSweepEntries(ctx, tx, sweepID)
	if err != nil {
		return err
	}

	tried.Listed = listed
	limit := entriesAtOnce

	if tried.From = min(tried.Made, tried.Listed); all {
		tried.From, limit = 0, tried.Listed
	}

	if tried.From < tried.Listed {
		tried.Entries, err = s.q.ListSweepEntries(ctx, tx, &dbsqlc.ListSweepEntriesParams{SweepID: sweepID, AfterNumber: tried.From, MaxRows: limit})
	}

	return err
}

func sequence(first, last int) []int {
	numbers := make([]int, 0, max(last-first+1, 0))
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}

	return numbers
}

func (s *Store) insertTrials(ctx context.Context, tx pgx.Tx, sweepID string, first int, trials []berth.NewTrial) error {
	if len(trials) == 0 {
		return nil
	}

	for i, trial := range trials {
		row := &dbsqlc.InsertTrialParams{
			ID: trial.ID, SweepID: sweepID, Number: first + i, Params: trial.Params, ShapeKey: trial.Shape.Key(), Origin: trial.Origin, Lost: trial.Lost,
			StageKeys: []string{}, StageShapes: []string{},
		}
		shapes := []berth.Shape{trial.Shape}

		for _, stage := range trial.Stages {
			row.StageKeys, row.StageShapes = append(row.StageKeys, stage.Key), append(row.StageShapes, stage.Shape.Key())
			shapes = append(shapes, stage.Shape)
		}

		for _, shape := range shapes {
			family, _ := shape.Family()

			if err := s.q.InsertShape(ctx, tx, &dbsqlc.InsertShapeParams{Key: shape.Key(), Shape: shape, Family: family}); err != nil {
				return err
			}
		}

		if err := s.q.InsertTrial(ctx, tx, row); err != nil {
			return err
		}
	}

	return s.notify(ctx, tx, berth.Event{Kind: "sweep.trials", SweepID: sweepID, Subject: sweepID, Data: first + len(trials) - 1})
}

// GetTrial returns a trial by its number. Errors: not_found.
func (s *Store) GetTrial(ctx context.Context, sweepID string, number int) (berth.Trial, error) {
	trials, err := s.ListTrials(ctx, sweepID, nil, number-1, 1)
	if err != nil {
		return berth.Trial{}, err
	}

	if len(trials) == 0 || trials[0].Number != number {
		return berth.Trial{}, berth.Errorf(berth.KindNotFound, "sweep %s has no trial %d", sweepID, number)
	}

	return trials[0], nil
}

// PlannedTrial returns a trial with the data that decides how one of its stages runs. Errors:
// not_found.
func (s *Store) PlannedTrial(ctx context.Context, sweepID string, number int, stage string) (berth.PlannedTrial, error) {
	row, err := s.q.GetPlannedTrial(ctx, s.pool, sweepID, number)
	if err != nil {
		return berth.PlannedTrial{}, translate(err, fmt.Sprintf("reading trial %d of sweep %s", number, sweepID))
	}

	planned := berth.PlannedTrial{Trial: toTrial(row.Trial), Spec: row.Spec.ForStage(stage)}
	planned.Attempts, planned.Params = row.Attempts, row.Spec.ValuesFor(stage, row.Trial.Params)

	if i := row.Spec.StageIndex(stage); i >= 0 && i < len(row.Trial.StageShapes) {
		planned.ShapeKey = row.Trial.StageShapes[i]
	}

	planned.Footprints, err = s.knownOrPredicted(ctx, planned.ShapeKey)

	return planned, err
}

// EndedTrials returns which of a sweep's trials have ended, and how.
func (s *Store) EndedTrials(ctx context.Context, sweepID string, numbers []int) ([]berth.TrialEnd, error) {
	rows, err := s.q.ListEndedTrials(ctx, s.pool, sweepID, numbers)

	return collect(rows, err, "listing ended trials of sweep "+sweepID, func(row dbsqlc.ListEndedTrialsRow) berth.TrialEnd { return berth.TrialEnd(row) })
}

// Lessons are the values of a sweep's trials from which a search learns: the newest 1,000 with
// a result.
func (s *Store) Lessons(ctx context.Context, sweepID string) ([]berth.Assignment, error) {
	lessons, err := s.q.ListLessons(ctx, s.pool, sweepID)

	return lessons, translate(err, "reading trials of sweep "+sweepID)
}

// toPriors are the trials of earlier sweeps, by sweep.
func toPriors(rows []dbsqlc.ListPriorsRow) (priors [][]berth.Observation) {
	for _, row := range rows {
		for len(priors) <= row.Earlier {
			priors = append(priors, nil)
		}

		priors[row.Earlier] = append(priors[row.Earlier], berth.Observation{
			Number: row.Number, Params: row.Params, State: row.State, Value: row.Value, Step: row.Step,
		})
	}

	return priors
}

// mostFailures bounds a list that a person reads.
const mostFailures = 20

// Failures returns why trials of a sweep failed or were infeasible, the most frequent
// reason first, at most mostFailures.
func (s *Store) Failures(ctx context.Context, sweepID string) ([]berth.FailureReason, error) {
	rows, err := s.q.ListFailures(ctx, s.pool, sweepID)
	if err != nil {
		return nil, translate(err, "listing failures of sweep "+sweepID)
	}

	var (
		reasons []berth.FailureReason
		index   = make(map[string]int)
	)

	for _, row := range rows {
		key := string(row.State) + " " + string(row.Kind) + " " + berth.FailureText(row.Message)

		at, known := index[key]
		if !known {
			index[key] = len(reasons)
			reasons = append(reasons, berth.FailureReason(row))

			continue
		}

		same := &reasons[at]
		if row.First < same.First {
			same.First, same.Message = row.First, row.Message
		}

		same.Trials += row.Trials
	}

	slices.SortStableFunc(reasons, func(a, b berth.FailureReason) int {
		return cmp.Or(cmp.Compare(b.Trials, a.Trials), cmp.Compare(a.First, b.First))
	})

	return reasons[:min(len(reasons), mostFailures)], nil
}

// SetTrialNote is SetSweepNote of a trial.
func (s *Store) SetTrialNote(ctx context.Context, sweepID string, number int, note string, was *string) error {
	return s.inTx(ctx, "noting of a trial of sweep "+sweepID, func(tx pgx.Tx) error {
		ids, err := s.q.SetTrialNote(ctx, tx, &dbsqlc.SetTrialNoteParams{SweepID: sweepID, Number: number, Note: note, Was: was})
		if err := noted(int64(len(ids)), err, was); err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{Kind: "trial.note", SweepID: sweepID, Subject: ids[0]})
	})
}

// ListTrials returns trials by number, after the given one. Empty states means
// all.
func (s *Store) ListTrials(ctx context.Context, sweepID string, states []string, after, limit int) ([]berth.Trial, error) {
	rows, err := s.q.ListTrials(ctx, s.pool, &dbsqlc.ListTrialsParams{
		SweepID: sweepID, AfterNumber: after, States: append([]string{}, states...), MaxRows: limit,
	})

	return collect(rows, err, "listing trials of sweep "+sweepID, func(row dbsqlc.ListTrialsRow) berth.Trial {
		trial := toTrial(row.Trial)
		trial.Attempts, trial.Waiting, trial.OutputsRemoved = row.Attempts, toReasons(row.Reasons), row.OutputsRemoved
		trial.Kept = keptHost(row.KeptHostID, row.KeptHost, row.KeptDeviceID, row.KeptSince)

		return trial
	})
}

// SilentTrials returns open trials that have had neither a waiting request nor a
// running attempt for the given time: ID, SweepID and Number of each, ordered by
// sweep and number, after the given trial.
func (s *Store) SilentTrials(ctx context.Context, after berth.Trial, silent time.Duration, limit int) ([]berth.Trial, error) {
	rows, err := s.q.ListSilentTrials(ctx, s.pool, &dbsqlc.ListSilentTrialsParams{
		AfterSweep: cmp.Or(after.SweepID, noID), AfterNumber: after.Number, Silent: silent, MaxRows: limit,
	})

	return collect(rows, err, "listing silent trials", func(row dbsqlc.ListSilentTrialsRow) berth.Trial {
		return berth.Trial{ID: row.ID, SweepID: row.SweepID, Number: row.Number}
	})
}

// SetTrialState moves a trial to a state. The first terminal state wins;
// changed is false when the trial had ended before. The outbox tells the
// sweep's workflow of an end, unless SweepRun, which Temporal itself tells, is
// its current run.
func (s *Store) SetTrialState(ctx context.Context, u berth.TrialUpdate) (changed bool, err error) {
	err = s.inTx(ctx, "setting state of trial "+u.TrialID, func(tx pgx.Tx) error {
		rows, err := s.q.SetTrialState(ctx, tx, &dbsqlc.SetTrialStateParams{
			ID: u.TrialID, State: u.State, FailureKind: u.Kind, Message: u.Message, Value: u.Value, FailedStage: u.FailedStage,
		})
		if err != nil || rows == 0 {
			return err
		}

		changed = true

		channels, err := s.tellSweep(ctx, tx, u)
		if err != nil {
			return err
		}

		return s.notify(ctx, tx, berth.Event{Kind: "trial.state", SweepID: u.SweepID, Subject: u.TrialID, Data: u.State}, channels...)
	})

	return changed, err
}

// tellSweep returns the channels to wake.
func (s *Store) tellSweep(ctx context.Context, tx pgx.Tx, u berth.TrialUpdate) (channels []string, err error) {
	if !u.State.Terminal() {
		return nil, nil
	}

	told, err := s.q.TellSweep(ctx, tx, &dbsqlc.TellSweepParams{
		SweepID: u.SweepID, RunID: u.SweepRun, WorkflowID: sweepWorkflow(u.SweepID),
		Payload: encode(u.End()),
	})
	if err != nil || told == 0 {
		return nil, err
	}

	return []string{channelOutbox}, nil
}

// TrialTimes returns how long the newest trials of a sweep took that ended, and for how long the oldest attempt has run.
func (s *Store) TrialTimes(ctx context.Context, sweepID string) (berth.TrialTimes, error) {
	times, err := s.trialTimes(ctx, []string{sweepID})

	return times[sweepID], err
}

// trialTimes is how long the newest trials of sweeps took, by sweep.
func (s *Store) trialTimes(ctx context.Context, sweepIDs []string) (map[string]berth.TrialTimes, error) {
	rows, err := s.q.TrialTimes(ctx, s.pool, sweepIDs, berth.RecentTrials)
	if err != nil {
		return nil, translate(err, "reading how long trials took")
	}

	times := make(map[string]berth.TrialTimes, len(rows))

	for _, row := range rows {
		times[row.SweepID] = berth.TrialTimes{
			Ended: row.Ended, Mean: row.Mean, Lower: row.Lower, Median: row.Median, Upper: row.Upper, Oldest: row.Oldest,
		}
	}

	return times, nil
}
