package config

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
)

// directoryFlag is a flag's path, made absolute at once: Docker mounts absolute
// paths only, and programs that Berth starts have another working directory.
type directoryFlag struct {
	path     *string
	fallback string // of the empty text
}

// String is pflag.Value.
func (d *directoryFlag) String() string {
	if d.path == nil { // pflag asks a zero value
		return ""
	}

	return *d.path
}

// Type is pflag.Value.
func (d *directoryFlag) Type() string { return "directory" }

// Set is pflag.Value. Empty is the default, and never the working directory.
func (d *directoryFlag) Set(text string) error {
	if text == "" {
		*d.path = d.fallback

		return nil
	}

	path, err := filepath.Abs(text)
	if err != nil {
		return fmt.Errorf("finding the directory %q: %w", text, err)
	}

	*d.path = path

	return nil
}

// Directory adds the flag of a directory, whose default may be relative too, or
// empty.
func Directory(flags *pflag.FlagSet, path *string, name, fallback, usage string) {
	*path = fallback
	if whole, err := filepath.Abs(fallback); err == nil && fallback != "" { // fails when the working directory is gone
		*path = whole
	}

	flags.Var(&directoryFlag{path, *path}, name, usage)
}
