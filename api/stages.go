package api

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/search"
)

// stagePrefix matches the beginning of a stage's key that is long enough to name it.
var stagePrefix = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// shownKey is how many digits of a key texts show.
const shownKey = 8

// ListStages is GET /stages.
func (h *handlers) ListStages(ctx context.Context, r openapi.ListStagesRequestObject) (openapi.ListStagesResponseObject, error) {
	sweepID := ""

	if ref := given(r.Params.Sweep); ref != "" {
		sweep, err := h.sweep(ctx, ref)
		if err != nil {
			return nil, err
		}

		sweepID = sweep.ID
	}

	stages, next, err := pageOf(h.Server, r.Params.Cursor, r.Params.Limit, func(after berth.StagePosition, limit int) ([]berth.StageRecord, error) {
		return h.deps.Store.ListStages(ctx, sweepID, after, limit)
	}, berth.StageRecord.Position)

	return openapi.ListStages200JSONResponse{Data: all(stages, toStage), NextCursor: next}, err
}

// GetStage is GET /stages/{id}.
func (h *handlers) GetStage(ctx context.Context, r openapi.GetStageRequestObject) (openapi.GetStageResponseObject, error) {
	stage, err := h.stage(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	sources, err := h.deps.Store.StageSources(ctx, stage)
	if err != nil {
		return nil, err
	}

	out := toStage(stage)
	out.Parts, out.Why = explainStage(stage, sources)

	return openapi.GetStage200JSONResponse(out), nil
}

// ForgetStage is DELETE /stages/{id}.
func (h *handlers) ForgetStage(ctx context.Context, r openapi.ForgetStageRequestObject) (openapi.ForgetStageResponseObject, error) {
	stage, err := h.stage(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	return openapi.ForgetStage204Response{}, h.deps.Store.ForgetStage(ctx, stage.Key)
}

func (h *handlers) stage(ctx context.Context, key string) (berth.StageRecord, error) {
	if !stagePrefix.MatchString(key) {
		return berth.StageRecord{}, berth.Errorf(berth.KindNotFound, "%q is no key of a stage: give at least 8 of its digits, as `berth stage list` shows them", key)
	}

	return h.deps.Store.FindStage(ctx, key)
}

// explainStage says what a key is made of, and why the stage has not the nearest other key of the
// same stage. Without parts, another version of Berth made the key.
func explainStage(stage berth.StageRecord, sources []berth.StageSource) (*openapi.StageParts, string) {
	var (
		own     *search.StageParts
		others  []search.StageParts
		of      []berth.StageSource
		recipes = make(map[string]search.Recipes)
	)

	for _, source := range sources {
		sweep := source.Sweep
		if _, made := recipes[sweep.ID]; !made {
			recipes[sweep.ID] = search.NewRecipes(sweep.Spec, sweep.ID, sweep.ImageDigest)
		}

		recipe, err := recipes[sweep.ID].Parts(source.Params)
		at := slices.IndexFunc(recipe, func(p search.StageParts) bool { return p.Key == source.Key })

		switch {
		case err != nil || at < 0: // another version of Berth made it
		case source.Key == stage.Key:
			own = &recipe[at]
		default:
			others, of = append(others, recipe[at]), append(of, source)
		}
	}

	if own == nil {
		return nil, "another version of Berth made this key, so its parts are not known"
	}

	nearest, differences := own.Nearest(others)
	if nearest < 0 {
		return toStageParts(*own), "no other output of stage " + stage.Stage + " is known"
	}

	from := of[nearest]

	return toStageParts(*own), fmt.Sprintf("differs from %s (sweep %s, trial %d) in %s", from.Key[:shownKey], from.Sweep.Name, from.Trial, differences[0])
}

func toStage(s berth.StageRecord) openapi.Stage {
	out := openapi.Stage{
		Key: s.Key, Stage: s.Stage, SweepID: s.SweepID, SweepName: s.SweepName, Trial: s.Trial,
		OpenTrials: s.OpenTrials, EndedTrials: s.EndedTrials, Held: s.Held,
	}

	if o := s.Output; o != nil {
		out.Output = &openapi.StageOutput{
			AttemptID: o.AttemptID, HostID: o.HostID, HostName: o.HostName, MadeAt: o.MadeAt, Seconds: o.Took.Seconds(),
			Files: o.Files, Bytes: o.Bytes, Lost: o.Lost,
		}
	}

	return out
}

func toStageParts(p search.StageParts) *openapi.StageParts {
	return &openapi.StageParts{
		Earlier: p.Earlier, Image: p.Image, Command: p.Command, Values: p.Values, Environment: p.Environment,
		Workdir: p.Workdir, Entrypoint: p.Entrypoint, SweepID: p.Sweep,
		Datasets: all(p.Datasets, berth.DatasetMount.ID),
		Secrets:  all(p.Secrets, func(secret berth.SecretMount) string { return secret.Name }),
	}
}
