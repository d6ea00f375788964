package runtrial

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/filetime"
)

// mountStages is where a job sees the outputs of earlier stages.
const mountStages = "/trial/stages"

// ofStage reports whether the attempt runs a stage before its trial's own command. Its output is
// for all trials with its key, so the job learns nothing of this trial.
func (r *run) ofStage() bool { return r.who.StageKey != "" }

// shares reports whether trials share what the attempt wrote.
func (r *run) shares(o berth.Outcome) bool {
	return r.ofStage() && o.Kind == berth.FailureOK && !r.short && r.who.FirstRun == ""
}

// stageVariable names the variable with the path of a stage's output.
func stageVariable(name string) string {
	return "TRIAL_STAGE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// addInputs mounts the outputs of earlier stages. An output that is whole nowhere is forgotten,
// so that its stage runs again. Errors: *berth.StartError.
func (r *run) addInputs(ctx context.Context, l *berth.Launch) error {
	if len(r.who.Inputs) > 0 { // it holds its place, also behind another trial that fetches or reads one
		r.waiting.Store(r.who.Attempt.ID, r.order.Token)
		defer r.waiting.Delete(r.who.Attempt.ID)
	}

	for _, input := range r.who.Inputs {
		path, err := r.output(ctx, input)

		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case berth.KindOf(err) == berth.KindFenced:
			return err
		case berth.KindOf(err) == berth.KindInvalid:
			return r.lost(ctx, input, err)
		default:
			return &berth.StartError{Kind: berth.FailureInfra, Inputs: true, Err: berth.Errorf(berth.KindInvalid,
				"host %s cannot fetch the output of stage %s: %w", r.config.HostName, input.Name, err)}
		}

		l.Mounts = append(l.Mounts, berth.Mount{Source: path, Target: mountStages + "/" + input.Name, ReadOnly: true})
		l.Environment[stageVariable(input.Name)] = mountStages + "/" + input.Name
	}

	return nil
}

// lost forgets an output that neither its own host nor the store has whole.
func (r *run) lost(ctx context.Context, input berth.StageInput, why error) error {
	if input.HostID == r.who.Attempt.HostID || input.Stored && r.config.Fetch != nil {
		if err := r.records.DropStageOutput(ctx, input.AttemptID); err != nil {
			return err
		}
	}

	return &berth.StartError{Kind: berth.FailureInfra, Inputs: true, Err: berth.Errorf(berth.KindInvalid,
		"the output of stage %s is not whole on host %s any more, and the stage runs again: %w", input.Name, r.config.HostName, why)}
}

// judgeOutput fails a stage that wrote nothing for others to read, and compares its output with
// that of its first run.
func (r *run) judgeOutput(ctx context.Context, kind berth.FailureKind, message string) (berth.FailureKind, string) {
	if kind != berth.FailureOK || !r.ofStage() || r.short {
		return kind, message
	}

	if name := r.datasetChanged(ctx); name != "" {
		return berth.FailureInfra, fmt.Sprintf("the data set %q changed while the stage ran, so its output belongs to no version", name)
	}

	files, err := r.dirs.outputFiles()
	if err == nil {
		err = writeJSON(filepath.Join(r.dirs.attempt, manifestName), "manifest", files)
	}

	switch {
	case err != nil:
		return berth.FailureInfra, fmt.Sprintf("its output cannot be listed: %v", err)
	case len(files) == 0:
		return berth.FailureNoResult, "it ended well and wrote nothing to /trial/out, where later stages find what it made"
	case r.who.FirstRun != "":
		return kind, message + "; " + r.compareOutput(files)
	default:
		return kind, message
	}
}

// mostDiffering is how many names of differing files a message has.
const mostDiffering = 3

// compareOutput says whether the files of a stage are byte for byte those of its first run.
func (r *run) compareOutput(files []outputFile) string {
	var first []outputFile
	if !readJSON(filepath.Join(r.attemptsDir(), r.who.FirstRun, manifestName), &first) {
		return "its first run has no output on this host, so Berth did not compare the two"
	}

	names := differing(first, files)
	if len(names) == 0 {
		return "its output agrees byte for byte with its first run"
	}

	more := ""
	if n := len(names) - mostDiffering; n > 0 {
		names, more = names[:mostDiffering], fmt.Sprintf(" and %d more", n)
	}

	return fmt.Sprintf("its output differs from its first run with the same inputs: %s%s. Set seeds from TRIAL_SEED and leave times out of files; "+
		"a .keras file is a zip archive that holds times: save_weights to a .weights.h5 file holds none", strings.Join(names, ", "), more)
}

// differing returns the paths that two outputs do not have alike, in order.
func differing(a, b []outputFile) []string {
	files := make(map[string]outputFile, len(a))
	for _, file := range a {
		files[file.Path] = file
	}

	for _, file := range b {
		if files[file.Path] == file {
			delete(files, file.Path)
		} else {
			files[file.Path] = file
		}
	}

	return slices.Sorted(maps.Keys(files))
}

// manifestName is the list of an output's files, in the directory of the attempt that wrote it.
const manifestName = "stage.json"

// outputFile is a file of an output, or a link.
type outputFile struct {
	Path   string       `json:"path"` // below /trial/out
	Bytes  int64        `json:"bytes"`
	SHA256 berth.Digest `json:"sha256"` // of a link: of its target
}

// outputFiles lists the files of an output in the order of their paths. A file of metrics is
// no part of it.
func (d dirs) outputFiles() (files []outputFile, err error) {
	root, err := os.OpenRoot(d.out)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read

	err = walkBelow(d.out, func(path string, info fs.FileInfo) error {
		if info.IsDir() || info.Mode()&passing != 0 || path == metricsName {
			return nil
		}

		sum, err := digestOf(root, path, info)
		files = append(files, outputFile{Path: path, Bytes: info.Size(), SHA256: sum})

		return err
	})

	slices.SortFunc(files, func(a, b outputFile) int { return strings.Compare(a.Path, b.Path) })

	return files, err
}

func digestOf(root *os.Root, path string, info fs.FileInfo) (sum berth.Digest, err error) {
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := root.Readlink(path)

		return sha256.Sum256([]byte(target)), err
	}

	file, err := root.Open(path)
	if err != nil {
		return sum, err
	}
	defer file.Close() //nolint:errcheck // only read

	hash := sha256.New()
	_, err = io.Copy(hash, file)

	return berth.Digest(hash.Sum(nil)), err
}

// damage says why an output, or a copy of one, is not as its stage left it; empty = it is. Sizes are
// compared each time, contents once in a worker's life and when a file has changed since. That
// may be no more than a link to its object in the store.
func (e *Executor) damage(d dirs) string {
	var files []outputFile
	if !readJSON(filepath.Join(d.attempt, manifestName), &files) {
		return "its manifest is not there"
	}

	var changed time.Time

	for _, file := range files {
		info, err := os.Lstat(filepath.Join(d.out, file.Path))

		switch {
		case err != nil:
			return err.Error()
		case info.Size() != file.Bytes:
			return file.Path + " was changed"
		}

		if at := filetime.Changed(info); at.After(changed) {
			changed = at
		}
	}

	if compared, ok := e.whole.Load(d.attempt); ok && !changed.After(compared.(time.Time)) { //nolint:forcetypeassert // it is one
		return ""
	}

	switch now, err := d.outputFiles(); {
	case err != nil:
		return err.Error()
	case !slices.Equal(now, files):
		return "its files are not those of its manifest"
	}

	e.whole.Store(d.attempt, changed)

	return ""
}
