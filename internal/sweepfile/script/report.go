package script

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/berthml/berth"
)

var (
	// FlagsDriver is the Python program that learns the flags of a script. Its one
	// argument is a JSON object: directory and script (in the container), stub
	// (missing modules are made up), and limit (seconds until it ends by itself).
	//
	//go:embed driver/flags.py
	FlagsDriver string
	// ImageDriver is the Python program that lists an image's content. Its one
	// argument is its timeout in seconds.
	//
	//go:embed driver/image.py
	ImageDriver string
)

// mark precedes each finding of a driver in the script's output.
const mark = "\x1eberth-flags "

// The forms of a flag, and the types of its value, that have rules of their own.
const (
	FormValue   = "value"   // --x=1
	FormCommand = "command" // no flag: the subcommand that trains, before its flags; Choices are the others
	TypeInt     = "int"
	TypeFloat   = "float"
	TypeNone    = "none" // argparse without a type: a text, for any default
)

// Environment is the framework of a script that reads variables.
const Environment = "the environment"

// Flag is one flag of a script.
type Flag struct {
	Names    []string     `json:"names"` // empty = by position
	Variable string       `json:"-"`     // of the environment, in place of a flag
	Dest     string       `json:"dest"`
	Type     string       `json:"type"`
	Form     string       `json:"form"`
	Help     string       `json:"help"`
	Required bool         `json:"required"`
	Default  *berth.Value `json:"default"` // nil = none; a text for a value without a JSON form
	Choices  []string     `json:"choices"`
}

// Report is the result of the flags driver.
type Report struct {
	Framework string   `json:"framework"` // argparse, click, typer, absl or Environment; empty = no flags were found
	Flags     []Flag   `json:"flags"`     // in the order of the command line
	Stubbed   []string `json:"stubbed"`   // modules that were made up
	Trouble   string   `json:"error"`     // why the script did not come to its flags, with the place
	Missing   string   `json:"missing"`   // the module whose absence is the trouble; among Stubbed, where the image may lack modules
	Ended     string   `json:"ended"`     // how the script ended without asking for flags
	More      bool     `json:"more"`      // another parser may have more flags
}

// ImageReport is what the driver found in an image. Findings after its timeout are
// missing.
type ImageReport struct {
	Python     string `json:"python"` // version
	UID        int    `json:"uid"`
	GID        int    `json:"gid"`
	Frameworks []struct {
		Module        string  `json:"module"`
		Version       string  `json:"version"`
		ImportSeconds float64 `json:"import_seconds"` // 0 = not reached
		Error         string  `json:"error"`          // the last line; empty = the import worked
	} `json:"frameworks"`
}

// ReadReport reads the last finding of a driver from a container's output. The
// rest is the script's own. found is false when there is none.
func ReadReport[R Report | ImageReport](output []byte) (r R, found bool) {
	for line := range strings.Lines(string(output)) {
		text, marked := strings.CutPrefix(line, mark)

		var one R
		if marked && json.Unmarshal([]byte(text), &one) == nil { // else cut short, or forged by the script
			r, found = one, true
		}
	}

	return r, found
}
