package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
)

// directory is a flag's path. It is made absolute at once: Docker mounts
// absolute paths only, and programs that Berth starts have another working
// directory.
type directory string

// String is pflag.Value.
func (d *directory) String() string { return string(*d) }

// Type is pflag.Value.
func (d *directory) Type() string { return "directory" }

// Set is pflag.Value.
func (d *directory) Set(text string) error {
	path, err := filepath.Abs(text)
	if err != nil {
		return fmt.Errorf("finding the directory %q: %w", text, err)
	}

	*d = directory(path)

	return nil
}

// bindDirectory adds the flag of a directory, whose default may be relative too, or
// empty.
func bindDirectory(flags *pflag.FlagSet, path *string, name, fallback, usage string) {
	*path = fallback
	if whole, err := filepath.Abs(fallback); err == nil && fallback != "" { // fails when the working directory is gone
		*path = whole
	}

	flags.Var((*directory)(path), name, usage)
}
