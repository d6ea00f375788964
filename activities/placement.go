package activities

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// A round of the placer takes about 10 ms, and begins as soon as a request is
// stored.
const (
	decisionWait = 60 * time.Millisecond
	decisionPoll = 8 * time.Millisecond
)

// PlaceInput asks for a place for an attempt.
type PlaceInput struct {
	SweepID    string         `json:"sweep_id"`
	Trial      int            `json:"trial"`
	WorkflowID string         `json:"workflow_id"`
	AttemptID  string         `json:"attempt_id"`
	Number     int            `json:"number"` // of the attempt
	Stage      string         `json:"stage"`
	Purpose    berth.Purpose  `json:"purpose"`
	Short      bool           `json:"short,omitempty"` // a short probe, which is thrown away
	Last       *berth.LastOOM `json:"last,omitempty"`  // nil = none of the trial's attempts ran out of memory
}

// PlaceResult is the state of the request. Demand is the requested one.
type PlaceResult struct {
	Status     berth.PlacementStatus `json:"status"`
	Asked      berth.Demand          `json:"asked"`
	Infeasible bool                  `json:"infeasible,omitempty"` // there is nothing larger to ask for
}

// RequestPlacement computes the demand of an attempt from the spec, the
// footprint of its shape and the trial's out-of-memory so far, and asks for it.
func (a *Activities) RequestPlacement(ctx context.Context, in PlaceInput) (PlaceResult, error) {
	return a.request(ctx, in, a.Placements.RequestPlacement)
}

// ResizePlacement computes the demand of an attempt again and changes its
// request, if that still waits: its shape was measured since.
func (a *Activities) ResizePlacement(ctx context.Context, in PlaceInput) (PlaceResult, error) {
	result, err := a.request(ctx, in, a.Placements.ResizeRequest)
	if err == nil && result.Infeasible { // there is nothing larger: the request stays as it is
		result.Status, err = a.CheckPlacement(ctx, AttemptRef{AttemptID: in.AttemptID})
	}

	return result, err
}

// request computes a demand and asks for it in one of the two ways.
func (a *Activities) request(ctx context.Context, in PlaceInput,
	ask func(context.Context, berth.PlacementRequest) (berth.PlacementStatus, error),
) (PlaceResult, error) {
	trial, err := a.planned(ctx, in.SweepID, in.Trial, in.Stage)
	if err != nil {
		return PlaceResult{}, translate(err)
	}

	hosts, err := a.Placements.RecentHosts(ctx)
	if err != nil {
		return PlaceResult{}, translate(err)
	}

	demands, ok := memory.Sizes(memory.Ask{SweepID: in.SweepID, Resources: trial.Spec.Resources, Last: in.Last}, trial.Footprints, hosts)
	if !ok {
		return PlaceResult{Asked: in.Last.Demand, Infeasible: true}, nil
	}

	request := berth.PlacementRequest{
		AttemptID: in.AttemptID, SweepID: in.SweepID, TrialID: trial.ID, WorkflowID: in.WorkflowID,
		Number: in.Number, Stage: in.Stage, Purpose: in.Purpose, Short: in.Short, ShapeKey: trial.ShapeKey,
		Demand: shown(demands, trial.Spec.Resources), Last: in.Last, Expected: trial.Footprints.Expected(),
	}

	status, err := ask(ctx, request)
	if err == nil && status.State == berth.RequestWaiting && hasRoom(hosts, request, demands) {
		status = a.decision(ctx, in.AttemptID, status)
	}

	return PlaceResult{Status: status, Asked: request.Demand}, translate(err)
}

// shown is the demand that a waiting request shows. While no host has its
// resources, that is the least that a host with them would give.
func shown(demands berth.Demands, r berth.Resources) berth.Demand {
	if len(demands) == 0 {
		return memory.Demand(r, nil, memory.Room{})
	}

	return demands.First()
}

// hasRoom reports whether the request fits one of the hosts as booked now. Only
// the placer knows the other requests, the kept hosts and the sweep's running
// trials: if one of these takes the place, a few polls are wasted.
func hasRoom(hosts []berth.Host, r berth.PlacementRequest, demands berth.Demands) bool {
	one := []packing.Request{{AttemptID: r.AttemptID, SweepID: r.SweepID, Demands: demands}}

	return packing.Decide(hosts, nil, one)[0].Placed
}

// decision waits a moment for the placer's decision on a request that has room.
// A request placed by then needs no signal to its workflow, which costs Temporal
// four writes. Else the workflow waits for the signal.
func (a *Activities) decision(ctx context.Context, attemptID string, status berth.PlacementStatus) berth.PlacementStatus {
	ctx, cancel := context.WithTimeout(ctx, decisionWait)
	defer cancel()

	ticker := time.NewTicker(decisionPoll)
	defer ticker.Stop()

	for status.State == berth.RequestWaiting {
		select {
		case <-ctx.Done():
			return status
		case <-ticker.C:
		}

		later, err := a.Placements.PlacementStatus(ctx, attemptID)
		if err != nil {
			return status // the workflow looks again
		}

		status = later
	}

	return status
}

// AttemptRef names an attempt.
type AttemptRef struct {
	AttemptID string `json:"attempt_id"`
}

// CheckPlacement returns the state of a request.
func (a *Activities) CheckPlacement(ctx context.Context, in AttemptRef) (berth.PlacementStatus, error) {
	status, err := a.Placements.PlacementStatus(ctx, in.AttemptID)

	return status, translate(err)
}

// WithdrawPlacement takes back a request unless it has been placed.
func (a *Activities) WithdrawPlacement(ctx context.Context, in AttemptRef) (berth.PlacementStatus, error) {
	status, err := a.Placements.WithdrawRequest(ctx, in.AttemptID)

	return status, translate(err)
}
