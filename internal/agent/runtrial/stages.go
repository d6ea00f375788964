package runtrial

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthml/berth"
)

// mountStages is where a job sees the outputs of earlier stages.
const mountStages = "/trial/stages"

// ofStage reports whether the attempt runs a stage before its trial's own command: what it
// writes is for all trials with its key, so it may know none of them.
func (r *run) ofStage() bool { return r.who.StageKey != "" }

// shares reports whether trials share what the attempt wrote.
func (r *run) shares(o berth.Outcome) bool {
	return r.ofStage() && o.Kind == berth.FailureOK && !r.short
}

// stageVariable names the variable with the path of a stage's output.
func stageVariable(name string) string {
	return "TRIAL_STAGE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// stageSeed is the same for all trials that share a stage, as trialSeed is for attempts.
func stageSeed(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything

	return int64(h.Sum64() & math.MaxInt32)
}

// addInputs mounts the outputs of earlier stages. An output that is gone is forgotten, so that
// its stage runs again. Errors: *berth.StartError.
func (r *run) addInputs(ctx context.Context, l *berth.Launch) error {
	for _, input := range r.who.Inputs {
		path := filepath.Join(r.attemptsDir(), input.AttemptID, "out")
		gone := &berth.StartError{Kind: berth.FailureInfra, Err: berth.Errorf(berth.KindInvalid,
			"the output of stage %s is not on host %s any more; the stage runs again", input.Name, r.config.HostName)}

		if input.AttemptID == "" {
			return gone
		}

		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			if err := r.records.DropStageOutput(ctx, input.AttemptID, r.who.Attempt.HostID); err != nil {
				return err
			}

			return gone
		}

		l.Mounts = append(l.Mounts, berth.Mount{Source: path, Target: mountStages + "/" + input.Name, ReadOnly: true})
		l.Environment[stageVariable(input.Name)] = mountStages + "/" + input.Name
	}

	return nil
}

// judgeOutput fails a stage that wrote nothing for others to read.
func (r *run) judgeOutput(kind berth.FailureKind, message string) (berth.FailureKind, string) {
	if kind != berth.FailureOK || !r.ofStage() || r.short {
		return kind, message
	}

	entries, err := os.ReadDir(r.dirs.out)
	for _, entry := range entries {
		if entry.Name() != metricsName {
			return kind, message
		}
	}

	if err != nil {
		return berth.FailureInfra, fmt.Sprintf("its output cannot be read: %v", err)
	}

	return berth.FailureNoResult, "it ended well and wrote nothing to /trial/out, where later stages find what it made"
}
