package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// Exit codes; docs/cli.md promises them.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitValidation  = 4
	ExitAuth        = 5
	ExitConflict    = 6
	ExitUnreachable = 7 // or too busy, or broken: the same may work later
	ExitSweepFailed = 8 // the sweep ended, but not well
	ExitTimeout     = 124
	ExitInterrupt   = 130 // by Ctrl-C; the watched sweep goes on
)

// exitError is an error with its own exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// ExitCode is the process's exit code for err; 0 for nil.
func ExitCode(err error) int {
	var (
		own     *exitError
		problem *problemError
	)

	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &problem):
		return codeOfStatus(problem.Status)
	case errors.Is(err, context.Canceled):
		return ExitInterrupt
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	case strings.HasPrefix(err.Error(), "unknown command"), // cobra has no type for it
		strings.HasPrefix(err.Error(), "unknown flag"):
		return ExitUsage
	default:
		return ExitError
	}
}

func codeOfStatus(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return ExitValidation
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitAuth
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusConflict:
		return ExitConflict
	}

	if temporaryStatus(status) {
		return ExitUnreachable
	}

	return ExitError
}

// problemError is the server's answer when it refused.
type problemError struct {
	client.Problem

	file       *sweepFile    // the document the pointers are about; nil = none
	retryAfter time.Duration // when the server asks to be asked again; 0 = it does not say
}

func (e *problemError) Error() string {
	lines := []string{e.Detail}

	switch problems := plural(len(e.Errors), "problem", "problems"); {
	case len(e.Errors) > 0 && e.file != nil: // the detail is for readers of JSON
		lines[0] = fmt.Sprintf("%s has %s:", e.file.name, problems)
	case len(e.Errors) > 0:
		lines[0] = fmt.Sprintf("the request has %s:", problems)
	}

	for _, item := range e.Errors {
		lines = append(lines, "  "+problemLine(e.file, item))
	}

	if e.Status >= http.StatusInternalServerError {
		lines = append(lines, "  request id "+e.RequestID)
	}

	return strings.Join(lines, "\n")
}

// problemLine is such as sweep.yaml:12: E_LOG_RANGE /parameters/0/min: ….
func problemLine(file *sweepFile, item client.ProblemItem) string {
	text := item.Code
	if item.Pointer != "" {
		text += " " + item.Pointer
	}

	return file.place(item.Pointer) + text + ": " + item.Detail
}

// usage makes a wrong use of a command exit with 2.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exitf(ExitUsage, "%w; write `%s`, or see `%s --help`", err, cmd.UseLine(), cmd.CommandPath())
		}

		return nil
	}
}

// onlyVerbs refuses a verb that a noun does not have, and a noun that berth does not have.
func onlyVerbs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}

	near := cmd.SuggestionsFor(args[0])

	for _, name := range []string{"sweep", "trial", "host"} { // a verb without its noun
		noun, _, _ := cmd.Find([]string{name}) // cmd itself where it has no nouns
		if verb, _, err := noun.Find(args[:1]); noun != cmd && err == nil && verb != noun {
			near = []string{name + " " + verb.Name()}

			break
		}
	}

	text := fmt.Sprintf("there is no `%s %s`", cmd.CommandPath(), args[0])
	if len(near) > 0 {
		text += fmt.Sprintf("; did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}

	return exitf(ExitUsage, "%s; see `%s --help`", text, cmd.CommandPath())
}

// usageFlags explains a wrong flag, unless the verb before it is wrong already.
func usageFlags(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() {
		if err := onlyVerbs(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
	}

	return exitf(ExitUsage, "%w%s; see `%s --help`", err, nearestFlag(cmd, err), cmd.CommandPath())
}

// nearestFlag asks for the flag that the user most likely meant; empty = none is like it.
func nearestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}

	var known []string

	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })

	if near := spec.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return "; did you mean --" + near + "?"
	}

	return ""
}
