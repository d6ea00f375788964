package postgres

// What a round of the placer decides on.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// cleanRuns of a sweep's trials on GPUs end the effect of a fault of its own program:
// it shares GPUs by MPS again. A fault costs an attempt of each client of its GPU,
// about as many as that (24 small trials do most on one H200, 2026-11-21), and the runs
// by time slices cost it about half of its speed: so one fault in that many runs costs
// others no more than sharing gains.
const cleanRuns = 20

// Queue returns the input of a round of the placer: for each sweep that takes trials the oldest waiting
// requests that may start and a few more, at most limit in all. Without requests it returns nothing else
// either.
func (s *Store) Queue(ctx context.Context, limit int) (queue berth.Queue, err error) {
	err = s.inTx(ctx, "reading the queue", func(tx pgx.Tx) error {
		if err := s.readQueue(ctx, tx, limit, &queue); err != nil || len(queue.Waiting) == 0 {
			return err
		}

		if err := s.addPaces(ctx, tx, &queue); err != nil {
			return err
		}

		return s.addFootprints(ctx, tx, &queue)
	})

	return queue, err
}

// readQueue reads the waiting requests, their possible places and the use of
// their sweeps.
func (s *Store) readQueue(ctx context.Context, tx pgx.Tx, limit int, queue *berth.Queue) error {
	rows, err := s.q.ListWaitingRequests(ctx, tx, &dbsqlc.ListWaitingRequestsParams{CleanRuns: cleanRuns, LostAfter: berth.HostLostAfter, MaxRows: limit})
	if err != nil || len(rows) == 0 {
		return err
	}

	if queue.Hosts, err = s.recentHosts(ctx, tx); err != nil {
		return err
	}

	running, err := s.q.CountRunningBySweep(ctx, tx, berth.HostLostAfter)
	if err != nil {
		return err
	}

	queue.Waiting, queue.Sweeps = toQueue(rows, running)

	if err := s.addCheckpoints(ctx, tx, queue); err != nil {
		return err
	}

	if err := s.addLacking(ctx, tx, queue.Waiting); err != nil {
		return err
	}

	return s.addInputs(ctx, tx, queue, rows)
}

// addFootprints adds the footprints of waiting requests and of leases on GPUs.
func (s *Store) addFootprints(ctx context.Context, tx pgx.Tx, queue *berth.Queue) (err error) {
	keys := make(map[string]bool)
	for _, r := range queue.Waiting {
		keys[r.ShapeKey] = true
	}

	for _, there := range queue.OnDevices {
		for _, l := range there {
			keys[l.ShapeKey] = true
		}
	}

	queue.Footprints, err = s.footprintsOf(ctx, tx, slices.Collect(maps.Keys(keys)))

	return err
}

// addCheckpoints adds to requests where the checkpoint is that they go on from.
func (s *Store) addCheckpoints(ctx context.Context, tx pgx.Tx, queue *berth.Queue) error {
	rows, err := s.q.ListNewestCheckpoints(ctx, tx, berth.CheckpointSilence)
	if err != nil {
		return err
	}

	hosts := make(map[string][]string)
	for _, row := range rows {
		hosts[row.AttemptID] = row.Hosts
	}

	for i := range queue.Waiting {
		w := &queue.Waiting[i]
		w.Holders, w.Stored = hosts[w.AttemptID]
	}

	return nil
}

// addInputs adds to requests where the outputs of earlier stages are that they read.
func (s *Store) addInputs(ctx context.Context, tx pgx.Tx, queue *berth.Queue, rows []dbsqlc.ListWaitingRequestsRow) error {
	var staged []string

	for _, row := range rows {
		if row.Staged {
			staged = append(staged, row.AttemptID)
		}
	}

	if len(staged) == 0 { // most rounds
		return nil
	}

	found, err := s.q.ListWaitingInputs(ctx, tx, staged, berth.StageSilence)
	if err != nil {
		return err
	}

	inputs := make(map[string]dbsqlc.ListWaitingInputsRow, len(found))
	for _, row := range found {
		inputs[row.AttemptID] = row
	}

	for i := range queue.Waiting {
		w := &queue.Waiting[i]
		row := inputs[w.AttemptID]
		w.Inputs, w.InputHosts, w.Shared = row.Inputs > 0, row.Hosts, row.Shared

		for _, host := range row.Fetching {
			if !slices.Contains(row.Hosts, host) {
				w.InputHosts, w.Lacking = append(w.InputHosts, host), append(slices.Clip(w.Lacking), host)
			}
		}
	}

	return nil
}

func toQueue(rows []dbsqlc.ListWaitingRequestsRow, running []dbsqlc.CountRunningBySweepRow) ([]berth.WaitingRequest, map[string]berth.SweepUse) {
	use := make(map[string]berth.SweepUse)
	plans := make(map[string]sweepPlan) // decoding the same for each of 5,600 requests took a tenth of a round
	reasons := make(map[string][]berth.Rejection)
	waiting := make([]berth.WaitingRequest, 0, len(rows))

	for _, row := range rows {
		if _, decoded := reasons[row.Reasons]; !decoded {
			reasons[row.Reasons] = toReasons(json.RawMessage(row.Reasons))
		}

		use[row.SweepID] = berth.SweepUse{MaxParallel: row.MaxParallel, State: row.SweepState}
		request := berth.WaitingRequest{
			AttemptID: row.AttemptID, SweepID: row.SweepID, TrialNumber: row.TrialNumber,
			ShapeKey: row.ShapeKey,
			Image:    row.ImageDigest,
			Waited:   row.Waited,
			Reasons:  reasons[row.Reasons],
			Kept:     berth.KeptPlace{HostID: deref(row.KeptHostID), DeviceID: deref(row.KeptDeviceID)},
			Away:     row.Away,
			Apart:    row.Apart,

			FailedHosts: row.FailedHosts,
			Checkpoint:  row.CheckpointHost,
		}

		plan, decoded := plans[row.SweepID+row.Stage]
		if !decoded {
			plan = decodePlan(row)
			plans[row.SweepID+row.Stage] = plan
		}

		request.Resources, request.Datasets, request.SecretKeys = plan.resources, plan.datasets, row.SecretKeys

		if err := errors.Join(plan.err, decode(row.OOM, &request.Last, "out-of-memory of the trial")); err != nil {
			request.Blocked = err.Error()
		}

		if row.OpenNumber > 0 {
			request.Blocked = fmt.Sprintf("attempt %d of the trial is still open on host %s", row.OpenNumber, row.OpenHost)
		}

		waiting = append(waiting, request)
	}

	for _, row := range running {
		if u, ok := use[row.SweepID]; ok {
			u.Running, u.Away = row.Attempts, row.Away
			use[row.SweepID] = u
		}
	}

	return waiting, use
}

// sweepPlan is what all requests for one stage of a sweep have in common.
type sweepPlan struct {
	resources berth.Resources
	datasets  []string
	err       error
}

func decodePlan(row dbsqlc.ListWaitingRequestsRow) (plan sweepPlan) {
	var mounted berth.Spec

	plan.err = errors.Join(
		decode(row.Resources, &plan.resources, "resources of sweep "+row.SweepID),
		decode(row.Datasets, &mounted.Datasets, "data sets of sweep "+row.SweepID),
	)
	plan.datasets = mounted.DatasetIDs()

	return plan
}
