package api

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// statusOf maps the kind of an error to its HTTP status.
var statusOf = map[berth.Kind]int{
	berth.KindInvalid:     http.StatusBadRequest,
	berth.KindNotFound:    http.StatusNotFound,
	berth.KindConflict:    http.StatusConflict,
	berth.KindFenced:      http.StatusConflict,
	berth.KindCanceled:    http.StatusConflict,
	berth.KindExhausted:   http.StatusTooManyRequests,
	berth.KindUnavailable: http.StatusServiceUnavailable,
	berth.KindOutOfMemory: http.StatusInternalServerError, // an attempt's trouble, never a request's
	berth.KindInternal:    http.StatusInternalServerError,
}

// Codes of problems that are about the request rather than about Berth.
const (
	codeUnauthorized  = "unauthorized"
	codeForbidden     = "forbidden"
	codeHost          = "host_not_allowed"
	codeCrossOrigin   = "cross_origin"
	codeMethod        = "method_not_allowed"
	codeNotAcceptable = "not_acceptable"
	codeInvalidSpec   = "invalid_spec"
	codeIdempotency   = "E_IDEMPOTENCY"
	codeBadRequest    = "invalid_request"
)

// httpError is an error with its own status.
type httpError struct {
	status int
	code   string
	detail string
	items  []openapi.ProblemItem

	retryAfter time.Duration // zero = the default of the status
}

func (e *httpError) Error() string { return e.detail }

// problemOf turns any error into the problem that the caller sees. Internal
// errors appear in the log only.
func problemOf(err error, requestID string) openapi.Problem {
	var (
		own    *httpError
		broken *berth.SpecError
		large  *http.MaxBytesError
		p      openapi.Problem
	)

	switch {
	case errors.As(err, &own):
		p = openapi.Problem{Status: own.status, Code: own.code, Detail: own.detail, Errors: own.items}
	case errors.As(err, &broken):
		p = openapi.Problem{
			Status: specStatus(broken), Code: codeInvalidSpec, Errors: toItems(broken.Problems),
			Detail: "The sweep file is refused; errors says everything that is wrong with it. Nothing was stored.",
		}
	case errors.As(err, &large):
		p = openapi.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: spec.CodeBodyTooLarge, Detail: tooLarge(large.Limit),
		}
	default:
		kind := berth.KindOf(err)
		p = openapi.Problem{Status: statusOf[kind], Code: string(kind), Detail: err.Error()}

		if p.Status == http.StatusInternalServerError {
			p.Code = string(berth.KindInternal)
			p.Detail = "Berth failed to answer. Its log says why, under the request id."
		}
	}

	p.Title = http.StatusText(p.Status)
	p.Type = "urn:berth:problem:" + strings.ToLower(p.Code)
	p.RequestID = requestID

	return p
}

// specStatus is 413 and 415 where HTTP has the word, 400 for an unreadable
// document, else 422.
func specStatus(e *berth.SpecError) int {
	for _, p := range e.Problems {
		switch p.Code {
		case spec.CodeBodyTooLarge:
			return http.StatusRequestEntityTooLarge
		case spec.CodeContentType:
			return http.StatusUnsupportedMediaType
		}
	}

	if e.Wire {
		return http.StatusBadRequest
	}

	return http.StatusUnprocessableEntity
}

func toItems(problems []berth.Problem) []openapi.ProblemItem {
	return all(problems, func(p berth.Problem) openapi.ProblemItem {
		return openapi.ProblemItem{Code: p.Code, Pointer: p.Pointer, Detail: p.Message}
	})
}

// fail answers with the problem of err, and logs internal errors.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err, requestID(r.Context()))

	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("answering a request", "method", r.Method, "path", r.URL.Path, "status", p.Status,
			"request_id", p.RequestID, "error", err)
	}

	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Del("Content-Length")

	switch p.Status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="berth"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", retryAfter(err))
	}

	w.WriteHeader(p.Status)

	if err := json.NewEncoder(w).Encode(p); err != nil {
		s.log.Debug("the caller is gone", "request_id", p.RequestID, "error", err)
	}
}

// defaultPause is when to ask again where nothing says when it may work.
const defaultPause = 2 * time.Second

// retryAfter is the time after which the same call may work, as the header says it:
// whole seconds, at least one.
func retryAfter(err error) string {
	pause := defaultPause
	if own, ok := errors.AsType[*httpError](err); ok && own.retryAfter > 0 {
		pause = own.retryAfter
	}

	return strconv.Itoa(int(max(math.Ceil(pause.Seconds()), 1)))
}

// tooLarge says how large a body may be.
func tooLarge(limit int64) string {
	return "The body is larger than " + berth.BytesText(limit) + "."
}
