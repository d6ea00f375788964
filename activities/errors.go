package activities

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
)

// retryable says, for every kind, whether Temporal repeats the activity. An
// attempt that ran out of memory is not repeated: its workflow asks for more.
var retryable = map[berth.Kind]bool{
	berth.KindInvalid:     false,
	berth.KindNotFound:    false,
	berth.KindConflict:    false,
	berth.KindExhausted:   true,
	berth.KindOutOfMemory: false,
	berth.KindFenced:      false,
	berth.KindCanceled:    false,
	berth.KindUnavailable: true,
	berth.KindInternal:    true, // R8: the error may be about the reply, not the work
}

// translate turns one of Berth's errors into Temporal's: its kind becomes the type.
func translate(err error) error {
	if err == nil {
		return nil
	}

	kind := berth.KindOf(err)

	return temporal.NewApplicationErrorWithOptions(err.Error(), string(kind), temporal.ApplicationErrorOptions{
		NonRetryable: !retryable[kind],
		Cause:        err,
	})
}

// failed is the error of an attempt that did not end well. Its type is the
// failure kind, so that Temporal's UI shows it, and its details the outcome.
func failed(o berth.Outcome) error {
	return temporal.NewApplicationErrorWithOptions(o.Message, string(o.Kind), temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Category:     temporal.ApplicationErrorCategoryBenign,
		Details:      []any{o},
	})
}

// OutcomeOf returns the outcome that RunTrial's error carries. An activity that
// Temporal canceled before a worker took it up has none.
func OutcomeOf(err error) (berth.Outcome, bool) {
	var (
		outcome berth.Outcome
		details func(to ...any) error
	)

	if canceled, ok := errors.AsType[*temporal.CanceledError](err); ok {
		details = canceled.Details
	} else if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		details = app.Details
	}

	if details == nil || details(&outcome) != nil || outcome.Kind == "" {
		return berth.Outcome{}, false
	}

	return outcome, true
}
