package imports

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/berthml/berth"
)

// Source is the file to import.
type Source struct {
	Name  string // as the user wrote it
	Text  []byte
	Study string                            // of an Optuna journal; empty = its only one
	Open  func(path string) ([]byte, error) // reads a file that the source names, relative to it
}

// Loss is a key of the source that the sweep file lacks, or that it changes.
type Loss struct {
	Key     string // such as early_terminate.strict
	Instead string // the change, and what to do
}

// Result is a sweep file.
type Result struct {
	Tool   string // W&B, Katib, NNI or Optuna
	Text   string // berth.Placeholder stands where the source has no value; the head lists the losses
	Losses []Loss // in the order in which they were found
}

// wanted says what an import reads.
const wanted = "import reads a W&B sweep (method, parameters), a Katib Experiment (kind: Experiment), an NNI configuration (trialCommand) or " +
	"search space (_type in each entry), and an Optuna journal (op_code in each line)"

// Import recognises the tool by the content, and writes its sweep as ours. Its errors are
// of KindInvalid.
func Import(s Source) (Result, error) {
	d := &draft{source: s, ours: map[string]string{}}

	err := d.read(bytes.TrimSpace(bytes.TrimPrefix(s.Text, []byte("\ufeff"))))
	d.finish()

	text, failed := d.text()
	if err = cmp.Or(d.err, err, failed); err != nil {
		return Result{}, berth.Errorf(berth.KindInvalid, "importing %q: %w", s.Name, err)
	}
	return Result{Tool: d.tool, Text: text, Losses: d.losses}, nil
}

// read tells the tools apart by the keys of the first level.
func (d *draft) read(text []byte) error {
	switch first, _, _ := bytes.Cut(text, []byte("\n")); {
	case len(text) == 0:
		return errors.New("the file is empty; " + wanted)
	case bytes.HasPrefix(text, []byte("SQLite format 3")):
		return errors.New("this is a database; copy its study into a journal with optuna.copy_study, and import that")
	case bytes.HasPrefix(first, []byte("{")) && bytes.Contains(first, []byte(`"op_code"`)):
		return d.readOptuna(string(text))
	}
	root, err := parse(text)
	if err != nil {
		return fmt.Errorf("reading YAML or JSON: %w; %s", err, wanted)
	}
	has := map[string]bool{}
	for name := range pairs(root) {
		has[name] = true
	}
	switch {
	case has["kind"] && has["spec"]:
		return d.readKatib(root)
	case has["method"] && (has["parameters"] || has["program"]):
		d.readWandB(root)
	case has["trialCommand"], has["searchSpace"], has["searchSpaceFile"]:
		return d.readNNI(root)
	case has["searchSpacePath"]:
		return errors.New("this is an NNI configuration of version 1: import the file that searchSpacePath names, and take the rest from here by hand")
	case isSpace(root):
		d.lose("_type", "a search space alone says no more than the parameters: import the configuration (config.yml) to have the rest")
		d.readNNISpace(root, "", nniConfig{})
	case has["image"] && has["command"]:
		return errors.New("this is a sweep file of Berth already")
	default:
		return errors.New("this is none of the files that can be read: " + wanted)
	}
	return nil
}
