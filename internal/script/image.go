package script

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// ImageDriver is the Python program that says what an image has.
//
//go:embed driver/image.py
var ImageDriver string

// Framework is one that an image has.
type Framework struct {
	Module  string `json:"module"`
	Name    string `json:"name"` // of the distribution, such as tensorflow-cpu
	Version string `json:"version"`
}

// ByteCode is how much of some directories Python need not compile.
type ByteCode struct {
	Dirs            []string `json:"dirs"`
	Files           int      `json:"files"`
	Compiled        int      `json:"compiled"`
	Unreadable      int      `json:"unreadable"` // for the user of trials
	FirstUnreadable string   `json:"first_unreadable"`
}

// Import is how long the import of a framework takes.
type Import struct {
	Module        string       `json:"module"`
	FirstSeconds  float64      `json:"first_seconds"`
	SecondSeconds float64      `json:"second_seconds"`
	Error         string       `json:"error"` // the last line; empty = it worked
	Slowest       []SlowModule `json:"slowest"`
}

// SlowModule is a package whose own files take long to import.
type SlowModule struct {
	Module  string  `json:"module"`
	Seconds float64 `json:"seconds"`
}

// OwnFiles are those of the working directory of an image.
type OwnFiles struct {
	Dir             string `json:"dir"`
	Unreadable      int    `json:"unreadable"`
	FirstUnreadable string `json:"first_unreadable"`
}

// ImageReport is what the driver found in an image. What it was stopped before is
// missing.
type ImageReport struct {
	Python             string      `json:"python"` // version; empty = there is none
	UID                int         `json:"uid"`
	GID                int         `json:"gid"`
	Frameworks         []Framework `json:"frameworks"`
	GPULibraries       []string    `json:"gpu_libraries"`
	Packages           *ByteCode   `json:"packages"`
	Standard           *ByteCode   `json:"standard"` // of Python's own library, where that is elsewhere
	Files              *OwnFiles   `json:"files"`
	InterpreterSeconds float64     `json:"interpreter_seconds"`
	Imports            []Import    `json:"imports"`
}

// ReadImageReport reads the driver's findings out of what a container printed.
func ReadImageReport(output []byte) ImageReport {
	var r ImageReport

	for line := range strings.Lines(string(output)) {
		if text, ok := strings.CutPrefix(line, mark); ok {
			_ = json.Unmarshal([]byte(text), &r) // each finding has members of its own; one that was cut short is left out
		}
	}

	return r
}
