package script

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/berthml/berth"
)

var (
	// FlagsDriver is the Python program that learns the flags of a script. It
	// takes Options as JSON in its one argument.
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

// Options are the settings of the flags driver.
type Options struct {
	Directory string `json:"directory"` // in the container, with the script
	Script    string `json:"script"`    // file name
	Stub      bool   `json:"stub"`      // modules that the image lacks are made up
	Limit     int    `json:"limit"`     // seconds until the driver ends by itself
}

// How a flag takes its value.
const (
	FormValue  = "value"  // --x=1
	FormSwitch = "switch" // --x: there or not
	FormList   = "list"   // several values

	FormCommand = "command" // no flag: a subcommand that may have none
)

// Types of a flag's value. The rules ask for these; the others are only shown.
const (
	TypeInt    = "int"
	TypeFloat  = "float"
	TypeString = "str"
	TypeNone   = "none" // argparse without a type: a text, for any default
)

// Flag is one flag of a script.
type Flag struct {
	Names    []string     `json:"names"` // empty = by position
	Dest     string       `json:"dest"`
	Type     string       `json:"type"`
	Form     string       `json:"form"`
	Help     string       `json:"help"`
	Required bool         `json:"required"`
	Default  *berth.Value `json:"default"` // nil = none; a text for a value without a JSON form
	Choices  []string     `json:"choices"`
	Min      *float64     `json:"min"`
	Max      *float64     `json:"max"`
	Command  string       `json:"command"` // the subcommand that has it; empty = the script itself
}

// Trouble is why a script did not come to its flags.
type Trouble struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Place   string `json:"place"`  // file:line of the script's own
	Module  string `json:"module"` // that is missing
}

// Report is the result of the flags driver.
type Report struct {
	Framework string   `json:"framework"` // argparse, click, typer or absl; empty = no flags were found
	Flags     []Flag   `json:"flags"`
	Stubbed   []string `json:"stubbed"` // modules that were made up
	Trouble   *Trouble `json:"error"`
	Ended     string   `json:"ended"` // how the script ended without asking for flags
	More      bool     `json:"more"`  // another parser may have more flags
}

// OwnArguments is the end of a script that parses its own list.
const OwnArguments = "own arguments"

// Framework is a framework in an image.
type Framework struct {
	Module        string  `json:"module"`
	Version       string  `json:"version"`
	ImportSeconds float64 `json:"import_seconds"` // 0 = not reached
	Error         string  `json:"error"`          // the last line; empty = the import worked
}

// ImageReport is what the driver found in an image. Findings after its timeout are
// missing.
type ImageReport struct {
	Python     string      `json:"python"` // version; empty = none
	UID        int         `json:"uid"`
	GID        int         `json:"gid"`
	Frameworks []Framework `json:"frameworks"`
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
