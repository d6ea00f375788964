package activities

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/preview"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/search"
)

// Suggester stores the trials of sweeps.
type Suggester interface {
	SweepRecord(ctx context.Context, id string) (berth.Sweep, error)
	Suggest(ctx context.Context, sweepID string, first, count int, needs berth.SearchNeeds,
		suggest func(berth.Tried) ([]berth.NewTrial, bool, error)) (numbers []int, exhausted bool, err error)
}

// SuggestInput asks for trials First to First+Count-1.
type SuggestInput struct {
	SweepID string `json:"sweep_id"`
	First   int    `json:"first"`
	Count   int    `json:"count"`
}

// Room is what decides how many trials of a sweep are open.
type Room struct {
	Capacity int `json:"capacity"`          // attempts of the sweep that the machines hold at once
	Blocked  int `json:"blocked,omitempty"` // open trials that wait for a stage which another trial runs
}

// SuggestResult is the search's answer.
type SuggestResult struct {
	Room

	Numbers   []int  `json:"numbers"`          // of the stored trials, ascending
	Exhausted bool   `json:"exhausted"`        // the search finds no other combination; limits.max_trials alone does not make it true
	Reason    string `json:"reason,omitempty"` // why nothing follows these trials, for the user; empty = the search goes on
	Later     bool   `json:"later,omitempty"`  // a search that learns chooses later, with more results: enough trials wait, or corners are being measured
}

// SuggestTrials asks the search for the next trials and stores them before
// anything runs. A retry gets the same trials.
func (a *Activities) SuggestTrials(ctx context.Context, in SuggestInput) (SuggestResult, error) {
	sweep, err := a.Sweeps.SweepRecord(ctx, in.SweepID)
	if err != nil {
		return SuggestResult{}, translate(err)
	}

	room, free, err := a.places(ctx, sweep)
	if err != nil {
		return SuggestResult{}, translate(err)
	}

	measures, err := a.measuresCorners(ctx, sweep, in.First)
	if err != nil || measures {
		return SuggestResult{Room: room, Later: true}, translate(err)
	}

	result, err := suggest(ctx, a.Sweeps, sweep, in, free, room.Blocked)
	result.Room = room

	return result, translate(err)
}

// cornerPatience is how long after a sweep's start its corners may measure before other trials
// are chosen. It bounds how long places idle for them.
const cornerPatience = time.Minute

// measuresCorners reports whether trials at the corners of a sweep's memory shapes are about to
// measure what trials from number first on then need: chosen now, these would be measured, too.
func (a *Activities) measuresCorners(ctx context.Context, sweep berth.Sweep, first int) (bool, error) {
	if sweep.StartedAt == nil || time.Since(*sweep.StartedAt) > cornerPatience || sweep.Spec.Probe.Mode == berth.ProbeOff {
		return false, nil
	}

	searcher, err := search.New(sweep.Spec)
	if err != nil {
		return false, err
	}

	_, last := searcher.Corners()
	if last == 0 || first <= last {
		return false, nil
	}

	open, err := a.Trials.ListTrials(ctx, sweep.ID, berth.OpenTrialStates(), 0, last)
	if err != nil {
		return false, err
	}

	var keys []string

	for _, trial := range open {
		if trial.Number <= last {
			keys = append(keys, trial.ShapeKey)
		}
	}

	known, err := a.Trials.Footprints(ctx, keys)

	return slices.ContainsFunc(keys, func(key string) bool { return !memory.KnownAnywhere(known[key]) }), err
}

// FillTrials makes the search suggest again those trials up to number last that
// a restored database forgot, as far as it finds them.
func FillTrials(ctx context.Context, ledger Suggester, sweepID string, last int) error {
	if last == 0 {
		return nil
	}

	sweep, err := ledger.SweepRecord(ctx, sweepID)
	if err != nil {
		return err
	}

	_, err = suggest(ctx, ledger, sweep, SuggestInput{SweepID: sweepID, First: last + 1, Count: 0}, 0, 0)

	return err
}

// planned reads a trial with the data that decides how a stage of it runs. It makes a
// trial again that a restored database forgot: its workflow says that it
// existed.
func (a *Activities) planned(ctx context.Context, sweepID string, number int, stage string) (berth.PlannedTrial, error) {
	trial, err := a.Trials.PlannedTrial(ctx, sweepID, number, stage)
	if berth.KindOf(err) != berth.KindNotFound {
		return trial, err
	}

	if err := FillTrials(ctx, a.Sweeps, sweepID, number); err != nil {
		return berth.PlannedTrial{}, err
	}

	return a.Trials.PlannedTrial(ctx, sweepID, number, stage)
}

// suggest makes and stores the requested trials, and first the earlier ones that a
// restored database forgot. These end as their workflows did, when the server finds
// them silent, or when the sweep ends. free is how many more trials the machines take now, and blocked how many wait for a stage.
func suggest(ctx context.Context, ledger Suggester, sweep berth.Sweep, in SuggestInput, free, blocked int) (result SuggestResult, err error) {
	searcher, err := search.New(sweep.Spec)
	if err != nil {
		return result, err
	}

	shapes, recipes := search.NewShapes(sweep.Spec, sweep.ImageDigest, berth.StageMain), search.NewRecipes(sweep.Spec, sweep.ID, sweep.ImageDigest)
	smallest, lastCorner := searcher.Corners()

	for {
		var (
			end         search.End // stays EndNone on a retry, and the next call says it
			made, added int
		)

		result.Numbers, result.Exhausted, err = ledger.Suggest(ctx, in.SweepID, in.First, in.Count,
			searcher.Needs(), func(tried berth.Tried) (_ []berth.NewTrial, _ bool, err error) {
				made, added = tried.Made, 0

				if searcher.Needs().Past && made+1 < in.First {
					lost := lostTrials(in, made, shapes)
					made, added = made+len(lost), len(lost)

					return lost, false, nil
				}

				limit := in.First - 1 + in.Count - made
				if searcher.Needs().Past {
					most := mayChoose(sweep.Spec, tried, free, blocked)
					result.Later, limit = most < limit, min(most, limit)
				}

				for _, last := range []int{smallest, lastCorner} {
					if made < last {
						limit = min(limit, last-made)
					}
				}

				var suggestions []search.Suggestion
				if limit > 0 {
					suggestions, end, err = searcher.With(tried.Listed, tried.From, tried.Entries).Next(tried, limit)
				}

				trials, ended := make([]berth.NewTrial, len(suggestions)), known(tried)
				for i, s := range suggestions {
					stages, err := recipes.Of(s.Values)
					if err != nil {
						return nil, false, err
					}

					s.Origin.Known = ended
					trials[i] = berth.NewTrial{ID: trialID(in.SweepID, made+1+i), Params: s.Values, Shape: shapes.Of(s.Values), Stages: stages, Origin: s.Origin}
				}

				added = len(trials)
				made += added

				return trials, end == search.EndSpace || end == search.EndDraws, err
			})
		result.Reason = end.String()

		if err != nil || added == 0 || made >= in.First { // else more trials were forgotten than a call makes
			return result, err
		}
	}
}

// SlackOf is how many trials of a search that learns wait when so many run: a place that is
// free is filled at once, and little is chosen with less knowledge than it could be.
func SlackOf(running int) int { return max(2, running/8) }

// mayChoose is how many more trials a search that learns may choose now: those that start at
// once in free places, and a few that wait. Trials that wait for a stage fill no place.
func mayChoose(s berth.Spec, tried berth.Tried, free, blocked int) int {
	waiting, running := -blocked, 0

	for _, o := range tried.Past {
		switch {
		case o.State == berth.TrialRunning:
			running++
		case !o.State.Terminal():
			waiting++
		}
	}

	if limit := int(s.Limits.MaxParallel); limit > 0 {
		free = min(free, max(limit-running, 0))
	}

	return max(free+SlackOf(running)-waiting, s.Search.Startup+tried.Listed-tried.Made, 0)
}

// known are the trials whose ends a suggestion depends on; none of a search that does not
// learn.
func known(tried berth.Tried) string {
	var ended []int

	for _, o := range tried.Past {
		if o.State.Terminal() {
			ended = append(ended, o.Number)
		}
	}

	return ranges(ended)
}

// ranges are ascending numbers as text, such as "1-8,10".
func ranges(numbers []int) string {
	var parts []string

	for i := 0; i < len(numbers); {
		from := i
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; {
			i++
		}

		part := strconv.Itoa(numbers[from])
		if last := numbers[i-1]; last > numbers[from] {
			part += "-" + strconv.Itoa(last)
		}

		parts = append(parts, part)
	}

	return strings.Join(parts, ",")
}

// lostTrials stand for trials that a restored database forgot. A search that learns would
// choose other values today, and does not know what ran under their numbers.
func lostTrials(in SuggestInput, made int, shapes search.Shapes) []berth.NewTrial {
	lost := make([]berth.NewTrial, min(in.First-1-made, lostAtOnce))
	for i := range lost {
		lost[i] = berth.NewTrial{
			ID: trialID(in.SweepID, made+1+i), Params: berth.Assignment{}, Shape: shapes.Of(berth.Assignment{}),
			Lost: "the database was restored from before this trial, and its values are not known",
		}
	}

	return lost
}

const lostAtOnce = 100

// trialID derives a trial's id from its sweep and number, so that each caller
// gets the same.
func trialID(sweepID string, number int) string {
	return uuid.NewSHA1(uuid.MustParse(sweepID), binary.BigEndian.AppendUint32(nil, uint32(number))).String() //nolint:gosec // G115: at most 100,000
}

// Capacity is the room of a sweep. The machines hold as many attempts at once as fit by
// their own demand, as the preview shows, or as many as the machines' cores allow if
// that is more, because an advice may put more on a GPU than an even share of the cores.
func (a *Activities) Capacity(ctx context.Context, in SweepRef) (Room, error) {
	sweep, err := a.Sweeps.SweepRecord(ctx, in.SweepID)
	if err != nil {
		return Room{}, translate(err)
	}

	room, _, err := a.places(ctx, sweep)

	return room, translate(err)
}

// places are a sweep's room, and how many more of its attempts fit by their own demand
// now, beside those that run.
func (a *Activities) places(ctx context.Context, sweep berth.Sweep) (room Room, free int, err error) {
	hosts, err := a.Placements.ListHosts(ctx)
	if err != nil {
		return Room{}, 0, err
	}

	if len(sweep.Spec.Stages) > 0 {
		if room.Blocked, err = a.Trials.BlockedTrials(ctx, sweep.ID); err != nil {
			return Room{}, 0, err
		}
	}

	fit, free, err := preview.AtOnce(sweep.Spec, sweep.ImageDigest, hosts, func(keys []string) (map[string]berth.Footprints, error) {
		return a.Trials.Footprints(ctx, keys)
	})

	room.Capacity = max(fit, byCores(hosts))

	return room, free, err
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
