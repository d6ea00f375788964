package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// sweepFile is a sweep file as the user wrote it.
type sweepFile struct {
	name        string
	data        []byte
	contentType string
}

// readSweepFile reads the file of -f or of the one argument; - is standard input.
func readSweepFile(cmd *cobra.Command, name string, args []string) (*sweepFile, error) {
	if name == "" && len(args) == 1 {
		name, args = args[0], nil
	}

	if name == "" || len(args) > 0 {
		return nil, exitf(ExitUsage, "name one sweep file, such as `%s -f sweep.yaml`; - reads standard input", cmd.CommandPath())
	}

	in := cmd.InOrStdin()

	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // G304: the user names a file of their own
		if errors.Is(err, fs.ErrNotExist) {
			return nil, exitf(ExitUsage, "there is no sweep file %q%s. Type `berth init train.py` to write one for your script",
				name, whichOfHere(filepath.Dir(name), "*.yaml", "*.yml"))
		} else if err != nil {
			return nil, exitf(ExitUsage, "reading the sweep file: %w", err)
		}
		defer func() { _ = file.Close() }()

		in = file
	}

	if file, ok := in.(*os.File); ok && name == "-" && isatty.IsTerminal(file.Fd()) {
		say(cmd.ErrOrStderr(), "reading the sweep file from the terminal; end it with Ctrl-D on a line of its own\n")
	}

	data, err := io.ReadAll(io.LimitReader(in, spec.MaxBytes+1)) // the server says that it is too large
	if err != nil {
		return nil, exitf(ExitUsage, "reading the sweep file %q: %w", name, err)
	}

	f := &sweepFile{name: name, data: data, contentType: "application/yaml"}
	if name == "-" {
		f.name = "stdin"
	}

	if strings.EqualFold(filepath.Ext(name), ".json") {
		f.contentType = "application/json"
	}

	return f, nil
}

// whichOfHere names the files of a directory that a user may have meant; empty = it has none.
func whichOfHere(dir string, patterns ...string) string {
	const few = 5

	var found []string

	for _, pattern := range patterns {
		there, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well formed
		found = append(found, there...)
	}

	if len(found) == 0 {
		return ""
	}

	return "; here are " + strings.Join(found[:min(len(found), few)], ", ")
}

func (f *sweepFile) reader() io.Reader { return bytes.NewReader(f.data) }

// place is where a pointer leads, such as "sweep.yaml:12: "; empty when there
// is no file.
func (f *sweepFile) place(pointer string) string {
	if f == nil {
		return ""
	}

	line, ok := f.line(pointer)
	if !ok {
		return f.name + ": "
	}

	return fmt.Sprintf("%s:%d: ", f.name, line)
}

// line finds the line of a JSON pointer's target, or of the nearest element
// around it.
func (f *sweepFile) line(pointer string) (int, bool) {
	parse := document.ParseYAML
	if f.contentType == "application/json" {
		parse = document.ParseJSON
	}

	node, err := parse(f.data)
	if err != nil || pointer == "" {
		return 0, false
	}

	at, _ := node.Locate(pointer)

	return document.Line(string(f.data), at), true
}
