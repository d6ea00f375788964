package search

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

// keyFormat is part of each key. Raise it when stages with equal parts could write something else.
const keyFormat = 1

// Recipes makes the stages of a sweep's trials.
type Recipes struct {
	spec     berth.Spec
	sweepID  string
	digest   string
	shapes   []Shapes // by stage
	datasets []berth.DatasetMount
}

// NewRecipes prepares the stages of a valid spec that runs the given image.
func NewRecipes(s berth.Spec, sweepID, imageDigest string) Recipes {
	r := Recipes{spec: s, sweepID: sweepID, digest: imageDigest}
	for _, d := range s.Datasets {
		d.Pinned = false // a version counts, not who chose it
		r.datasets = append(r.datasets, d)
	}

	for _, stage := range s.Stages {
		r.shapes = append(r.shapes, NewShapes(s, imageDigest, stage.Name))
	}

	return r
}

// StageParts are all that the output of a stage depends on. Cores, memory, GPU and host are
// none of it, nor who submitted the sweep, and how it searches.
type StageParts struct {
	Key         string               `json:"-"` // of the rest
	Format      int                  `json:"format"`
	Stage       string               `json:"stage"`
	Earlier     []string             `json:"earlier"` // keys of the stages before it
	Image       string               `json:"image"`
	Command     []string             `json:"command"` // rendered
	Entrypoint  bool                 `json:"entrypoint,omitempty"`
	Workdir     string               `json:"workdir,omitempty"`
	Values      berth.Assignment     `json:"values"` // that it reads
	Environment map[string]string    `json:"environment,omitempty"`
	Datasets    []berth.DatasetMount `json:"datasets,omitempty"` // with their versions
	Secrets     []berth.SecretMount  `json:"secrets,omitempty"`
	Sweep       string               `json:"sweep,omitempty"` // with a network, as it may load anything
}

// Of are the stages of one trial, in order. Errors: invalid when a command cannot be rendered.
func (r Recipes) Of(a berth.Assignment) ([]berth.StageRun, error) {
	recipe, err := r.Parts(a)
	if err != nil {
		return nil, err
	}

	runs := make([]berth.StageRun, len(recipe))
	for i, parts := range recipe {
		runs[i] = berth.StageRun{Name: parts.Stage, Key: parts.Key, Shape: r.shapes[i].Of(a)}
	}

	return runs, nil
}

// Parts are what the keys of one trial's stages are of, in order. Errors: as Of.
func (r Recipes) Parts(a berth.Assignment) ([]StageParts, error) {
	recipe, earlier := make([]StageParts, 0, len(r.spec.Stages)), []string{}

	for _, stage := range r.spec.Stages {
		spec, values := r.spec.ForStage(stage.Name), r.spec.ValuesFor(stage.Name, a)

		command, err := argv.Render(spec, values)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.Name, err)
		}

		environment, err := argv.Environment(spec, values)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.Name, err)
		}

		parts := StageParts{
			Format: keyFormat, Stage: stage.Name, Earlier: earlier, Image: spec.DigestFor(stage.Name, r.digest), Command: command, Entrypoint: spec.Entrypoint,
			Workdir: spec.Workdir, Values: values, Environment: environment, Datasets: r.datasets, Secrets: spec.Secrets,
		}
		if spec.Network {
			parts.Sweep = r.sweepID
		}

		if parts.Key, err = parts.key(); err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.Name, err)
		}

		earlier = append(earlier, parts.Key)
		recipe = append(recipe, parts)
	}

	return recipe, nil
}

func (p StageParts) key() (string, error) {
	data, err := json.Marshal(p) // canonical: members in order, maps sorted
	if err != nil {
		return "", berth.Errorf(berth.KindInternal, "encoding the parts of a key: %w", err)
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:]), nil
}
