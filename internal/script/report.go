package script

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

var (
	//go:embed driver/stubs.py
	stubsSource string
	//go:embed driver/flags.py
	flagsSource string
)

// FlagsDriver is the Python program that learns the flags of a script. It takes
// Options as JSON in its one argument.
func FlagsDriver() string { return stubsSource + flagsSource }

// mark is in front of each finding of a driver, among what the script prints.
const mark = "\x1eberth-flags "

// Options are what the driver of flags is told.
type Options struct {
	Script     string   `json:"script"`               // path in the container
	Run        bool     `json:"run"`                  // false = only look for the file
	Stub       bool     `json:"stub,omitempty"`       // true = modules that the image lacks are made up
	Source     bool     `json:"source,omitempty"`     // true = Look.Source is wanted
	Candidates []string `json:"candidates,omitempty"` // where the script may lie in the image
	SHA256     string   `json:"sha256"`               // of the script on the host
	Directory  string   `json:"directory,omitempty"`  // in the container, with what the script may write beside; empty = the working directory
	Parses     int      `json:"parses"`               // places of the text that read a command line

	Modules map[string]string `json:"modules,omitempty"` // SHA-256 of the files that the script needs, by path beside it
	Limit   int               `json:"limit"`             // seconds until the driver ends by itself
}

// How a flag takes its value.
const (
	FormValue = "value" // --x=1
	FormTrue  = "true"  // --x: there or not; absent is false
	FormFalse = "false" // --no-x: there or not; absent is true
	FormPair  = "pair"  // --x or --no-x
	FormCount = "count" // -vvv
	FormConst = "const" // stands for a value of the script's
	FormList  = "list"  // several values

	FormCommand = "command" // no flag: a subcommand that may have none
)

// Types of a flag's value. What bool_trap means: argparse with type=bool takes
// every text but the empty one as true.
const (
	TypeInt      = "int"
	TypeFloat    = "float"
	TypeString   = "str"
	TypeBool     = "bool"
	TypeBoolTrap = "bool_trap"
	TypeOther    = "other"
	TypeNone     = "none" // argparse without a type: a text, whatever the default is
)

// Flag is one flag of a script.
type Flag struct {
	Names       []string     `json:"names"` // long ones first; empty = by position
	Dest        string       `json:"dest"`
	Type        string       `json:"type"`
	Form        string       `json:"form"`
	Help        string       `json:"help"`
	Required    bool         `json:"required"`
	Default     *berth.Value `json:"default"`      // nil = none, or none that JSON has
	DefaultText string       `json:"default_text"` // of one that JSON does not have
	Choices     berth.Values `json:"choices"`
	Min         *float64     `json:"min"`
	Max         *float64     `json:"max"`
	Negative    []string     `json:"negative"`   // of a pair
	Command     string       `json:"command"`    // the subcommand that has it; empty = the script itself
	Group       int          `json:"group"`      // flags of one group exclude each other; 0 = none
	ShortOnly   bool         `json:"short_only"` // -x alone, whose value is an argument of its own
	Computed    bool         `json:"computed"`   // the default is of the machine that the look ran on

	GroupRequired bool `json:"group_required"` // the script requires one of the group
}

// Look is what the driver says before it runs the script.
type Look struct {
	InImage string `json:"in_image"` // where the image has this very script; empty = nowhere
	Differs string `json:"differs"`  // where it has another of this name
	Source  string `json:"source"`
}

// Trouble is why a script did not come to its flags.
type Trouble struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Place   string `json:"place"`  // file:line of the script's own
	Module  string `json:"module"` // that is missing
}

var missing = regexp.MustCompile(`(?m)^(ModuleNotFoundError): (No module named '([^'.]+)[^']*')\s*$`)

// Missing is the module for want of which Python ended, by what it printed; nil = none.
func Missing(stderr []byte) *Trouble {
	found := missing.FindAllSubmatch(stderr, -1)
	if len(found) == 0 {
		return nil
	}

	last := found[len(found)-1]

	return &Trouble{Type: string(last[1]), Message: string(last[2]), Module: string(last[3])}
}

// Report is all that the driver found.
type Report struct {
	Look      Look
	Framework string // argparse, click, typer or absl; empty = no flags were found
	Flags     []Flag
	Stubbed   []string // modules that were made up
	Trouble   *Trouble
	Ended     bool // the script ended without asking for flags
	OwnArgs   bool // it parses a list of its own, not its command line
	Refused   bool // it ended at its command line, perhaps with a parser of its own
	More      bool // another parser may have more flags
}

// ScriptMount and ScriptCopy are where a look finds the script's directory, and
// where the driver makes the copy that the script may write to.
const (
	ScriptMount = "/berth/script"
	ScriptCopy  = "/tmp/berth-script"
)

// Relocate puts defaults below the directories of a look to where the script is
// in its image.
func Relocate(flags []Flag, dir string) []Flag {
	out := slices.Clone(flags)

	for i, f := range out {
		if f.Default == nil {
			continue
		}

		for _, from := range []string{ScriptMount, ScriptCopy} {
			text, isText := f.Default.Any().(string)
			if rest, below := strings.CutPrefix(text, from); isText && below && (rest == "" || rest[0] == '/') {
				out[i].Default = new(berth.StringValue(strings.TrimSuffix(dir, "/") + rest))
			}
		}
	}

	return out
}

// ReadReport reads the driver's findings out of what a container printed. What
// is no finding is the script's own.
func ReadReport(output []byte) Report {
	var r Report

	for line := range strings.Lines(string(output)) {
		text, ok := strings.CutPrefix(line, mark)
		if !ok {
			continue
		}

		var finding struct {
			Look      *Look    `json:"look"`
			Framework string   `json:"framework"`
			Flags     []Flag   `json:"flags"`
			Stubbed   []string `json:"stubbed"`
			Error     *Trouble `json:"error"`
			Ended     string   `json:"ended"`
			More      bool     `json:"more"`
		}
		if json.Unmarshal([]byte(text), &finding) != nil {
			continue // cut short, or forged by the script
		}

		if finding.Look != nil {
			r.Look = *finding.Look
		}

		if finding.Framework != "" {
			r.Framework, r.Flags, r.More = finding.Framework, finding.Flags, finding.More
		}

		r.Stubbed = finding.Stubbed
		r.Trouble = finding.Error
		r.Ended = finding.Ended != ""
		r.OwnArgs = finding.Ended == "own arguments"
		r.Refused = strings.HasPrefix(finding.Ended, "exit ")
	}

	return r
}
