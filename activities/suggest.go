package activities

import (
	"context"
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/preview"
	"github.com/berthml/berth/internal/search"
)

// fillAtOnce is how many trials forgotten by a restored database are made again
// in one transaction. Their ends are written after it: a crash between the two
// leaves this many to the end of the sweep.
const fillAtOnce = 20

// Suggester stores the trials of sweeps.
type Suggester interface {
	SweepRecord(ctx context.Context, id string) (berth.Sweep, error)
	Suggest(ctx context.Context, sweepID string, first, count int, allEntries bool,
		suggest func(berth.Tried) ([]berth.NewTrial, bool, error)) (numbers []int, exhausted bool, err error)
}

// SuggestInput asks for trials First to First+Count-1.
type SuggestInput struct {
	SweepID string `json:"sweep_id"`
	First   int    `json:"first"`
	Count   int    `json:"count"`
}

// SuggestResult is the search's answer.
type SuggestResult struct {
	Numbers   []int  `json:"numbers"`          // of the stored trials, ascending
	Exhausted bool   `json:"exhausted"`        // the search finds no other combination; limits.max_trials alone does not make it true
	Reason    string `json:"reason,omitempty"` // why nothing follows these trials, for the user; empty = the search goes on
	Capacity  int    `json:"capacity"`         // attempts of the sweep that the machines hold at once
}

// SuggestTrials asks the search for the next trials and stores them before
// anything runs. A retry gets the same trials.
func (a *Activities) SuggestTrials(ctx context.Context, in SuggestInput) (SuggestResult, error) {
	capacity, err := a.Capacity(ctx, SweepRef{SweepID: in.SweepID})
	if err != nil {
		return SuggestResult{}, err
	}

	result, _, err := suggest(ctx, a.Sweeps, in, a.forgotten(ctx, in.SweepID))
	result.Capacity = capacity

	return result, translate(err)
}

// FillTrials makes the search suggest again those trials up to number last that
// a restored database forgot, and returns how many it no longer finds.
func FillTrials(ctx context.Context, ledger Suggester, sweepID string, last int) (missing int, err error) {
	if last == 0 {
		return 0, nil
	}

	result, missing, err := suggest(ctx, ledger, SuggestInput{SweepID: sweepID, First: last, Count: 1}, func(int) error { return nil })
	if len(result.Numbers) == 0 {
		missing++
	}

	return missing, err
}

// planned reads a trial with the data that decides how it runs. It makes a
// trial again that a restored database forgot: its workflow says that it
// existed.
func (a *Activities) planned(ctx context.Context, sweepID string, number int) (berth.PlannedTrial, error) {
	trial, err := a.Trials.PlannedTrial(ctx, sweepID, number)
	if berth.KindOf(err) != berth.KindNotFound {
		return trial, err
	}

	in := SuggestInput{SweepID: sweepID, First: number, Count: 1}
	if _, _, err := suggest(ctx, a.Sweeps, in, a.forgotten(ctx, sweepID)); err != nil {
		return berth.PlannedTrial{}, err
	}

	return a.Trials.PlannedTrial(ctx, sweepID, number)
}

// forgotten ends a trial made again as its workflow did: its sweep may have got
// that end long ago, and waits for it no more.
func (a *Activities) forgotten(ctx context.Context, sweepID string) func(number int) error {
	return func(number int) error {
		_, err := a.settleClosed(ctx, sweepID, number)

		return err
	}
}

// suggest makes and stores the requested trials. It first makes the earlier
// ones that a restored database forgot, reports each of these, and returns how
// many the search no longer finds.
func suggest(
	ctx context.Context, ledger Suggester, in SuggestInput, forgotten func(number int) error,
) (result SuggestResult, missing int, err error) {
	sweep, err := ledger.SweepRecord(ctx, in.SweepID)
	if err != nil {
		return result, 0, err
	}

	searcher, err := search.New(sweep.Spec)
	if err != nil {
		return result, 0, err
	}

	shapes := search.NewShapes(sweep.Spec, sweep.ImageDigest)
	before := in.First - 1 // this many should exist

	for {
		var (
			end  search.End // stays EndNone on a retry, and the next call says it
			anew []int      // that had been there before
		)

		missing = 0

		result.Numbers, result.Exhausted, err = ledger.Suggest(ctx, in.SweepID, in.First, in.Count,
			searcher.NeedsEntries(), func(tried berth.Tried) (_ []berth.NewTrial, _ bool, err error) {
				var values []berth.Assignment

				made, limit := tried.Made, in.Count
				if made < before {
					limit = min(before-made, fillAtOnce)
				}

				if values, end, err = searcher.With(tried.Listed, tried.From, tried.Entries).Next(tried, limit); err != nil {
					return nil, false, err
				}

				trials := make([]berth.NewTrial, len(values))

				for i, v := range values {
					number := made + 1 + i
					trials[i] = berth.NewTrial{ID: trialID(in.SweepID, number), Params: v, Shape: shapes.Of(v)}

					if number <= before {
						anew = append(anew, number)
					}
				}

				missing = max(before-made-len(values), 0)

				return trials, end == search.EndSpace || end == search.EndDraws, nil
			})
		result.Reason = end.String()

		for _, number := range anew {
			if err == nil {
				err = forgotten(number)
			}
		}

		if err != nil || len(anew) == 0 {
			return result, missing, err
		}
	}
}

// trialID derives a trial's id from its sweep and number, so that each caller
// gets the same.
func trialID(sweepID string, number int) string {
	return uuid.NewSHA1(uuid.MustParse(sweepID), binary.BigEndian.AppendUint32(nil, uint32(number))).String() //nolint:gosec // G115: at most 100,000
}

// Capacity is how many attempts of a sweep the machines hold at once: as many as fit by
// their own demand, as the preview shows, or as many as the machines' cores allow if
// that is more, because an advice may put more on a GPU than an even share of the cores.
func (a *Activities) Capacity(ctx context.Context, in SweepRef) (int, error) {
	hosts, err := a.Placements.ListHosts(ctx)
	if err != nil {
		return 0, translate(err)
	}

	sweep, err := a.Sweeps.SweepRecord(ctx, in.SweepID)
	if err != nil {
		return 0, translate(err)
	}

	fit, err := preview.AtOnce(sweep.Spec, sweep.ImageDigest, hosts, func(keys []string) (map[string]berth.Footprints, error) {
		return a.Trials.Footprints(ctx, keys)
	})

	return max(fit, byCores(hosts)), translate(err)
}

// perCore is how many trials a core of a machine with GPUs may have at once, if the
// measurements allow it: while some wait for the GPU, others compute. 16 cores did most
// with 24 trials that kept one core busy alone (one H200, 2026-11-21); trials with less
// work on cores do most with more.
const perCore = 3

// byCores is how many attempts the cores of hosts let there be, of one core each.
func byCores(hosts []berth.Host) int {
	total := 0

	for _, h := range hosts {
		if h.State != berth.HostReady {
			continue
		}

		byCPU := int(h.CPUMilli / berth.DefaultCPUMilli)
		contexts := 0

		for _, dev := range h.Devices {
			if dev.Refusal() == "" {
				contexts += dev.MaxContexts
			}
		}

		total += max(byCPU, min(perCore*byCPU, contexts))
	}

	return total
}
