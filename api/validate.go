package api

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// validator checks requests against the description before a handler sees them.
type validator struct {
	doc     *openapi3.T
	maxBody int64
}

func (s *Server) newValidator() (*validator, error) {
	doc, err := openapi3.NewLoader().LoadFromData(description) // the generated one lacks the hand-written routes
	if err != nil {
		return nil, fmt.Errorf("reading the embedded description: %w", err)
	}

	return &validator{doc: doc, maxBody: s.config.Limits.BodyBytes}, nil
}

// ginParameter is how gin writes {id}, and with a star {path} with all its slashes.
var ginParameter = regexp.MustCompile(`[:*]([a-z_]+)`)

// check refuses a request that the description does not allow, with every
// reason at once. internal/sweepfile/spec checks the body of a sweep file.
func (v *validator) check(c *gin.Context) error {
	path := ginParameter.ReplaceAllString(strings.TrimPrefix(c.FullPath(), base), "{$1}")
	item := v.doc.Paths.Value(path)

	if item == nil || item.GetOperation(c.Request.Method) == nil {
		return berth.Errorf(berth.KindInternal, "%s %s is not described", c.Request.Method, c.FullPath())
	}

	operation := item.GetOperation(c.Request.Method)
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, v.maxBody)

	return v.validate(c, &routers.Route{
		Spec: v.doc, Server: v.doc.Servers[0], Path: path, PathItem: item, Method: c.Request.Method, Operation: operation,
	})
}

func (v *validator) validate(c *gin.Context, route *routers.Route) error {
	parameters := make(map[string]string, len(c.Params))
	for _, p := range c.Params {
		parameters[p.Key] = p.Value
	}

	file := readsSweepFile(route.Operation)
	if err := checkContentType(c.Request, route.Operation); err != nil && !file {
		return err
	}

	if err := checkQuery(c.Request, route); err != nil {
		return err
	}

	err := openapi3filter.ValidateRequest(c.Request.Context(), &openapi3filter.RequestValidationInput{
		Request: c.Request, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{
			MultiError: true, KeepValidatedValue: true, ExcludeRequestBody: file,
			SkipSettingDefaults: true, // it writes 1048576 as 1.048576e+06 into the query
			AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc,
		},
	})
	if err == nil {
		return nil
	}

	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return large
	}

	return invalidRequest(explainAll(err))
}

func readsSweepFile(o *openapi3.Operation) bool {
	return o.RequestBody != nil && o.RequestBody.Value.Content.Get("application/yaml") != nil
}

// checkContentType refuses a body that is not JSON where the description wants
// JSON.
func checkContentType(r *http.Request, o *openapi3.Operation) error {
	if o.RequestBody == nil || r.ContentLength == 0 {
		return nil
	}

	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "application/json" {
		return nil
	}

	return &httpError{
		status: http.StatusUnsupportedMediaType, code: spec.CodeContentType, detail: "Send Content-Type: application/json.",
	}
}

// checkQuery refuses unknown parameters: a misspelled filter must not count as
// no filter. It also refuses invalid text, which the database would refuse.
func checkQuery(r *http.Request, route *routers.Route) error {
	var known []string

	for _, p := range append(slices.Clone(route.Operation.Parameters), route.PathItem.Parameters...) {
		if p.Value.In == openapi3.ParameterInQuery {
			known = append(known, p.Value.Name)
		}
	}

	var items []openapi.ProblemItem

	for name, values := range r.URL.Query() {
		if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) || strings.ContainsRune(v, 0) }) {
			items = append(items, openapi.ProblemItem{Code: codeBadRequest, Pointer: strings.ToValidUTF8(name, "?"), Detail: "must be text in UTF-8 without NUL"})
		}

		if !slices.Contains(known, name) {
			items = append(items, openapi.ProblemItem{
				Code: codeBadRequest, Pointer: name, Detail: "there is no such parameter here; known are: " + strings.Join(known, ", "),
			})
		}
	}

	if len(items) == 0 {
		return nil
	}

	return invalidRequest(items)
}

// badParameter refuses one parameter for a reason that no description can say.
func badParameter(name, detail string) error {
	return invalidRequest([]openapi.ProblemItem{{Code: codeBadRequest, Pointer: name, Detail: detail}})
}

func invalidRequest(items []openapi.ProblemItem) error {
	slices.SortFunc(items, func(a, b openapi.ProblemItem) int { return strings.Compare(a.Pointer, b.Pointer) })

	return &httpError{
		status: http.StatusBadRequest, code: codeBadRequest, items: items,
		detail: "The request is not as api/openapi.yaml describes it; errors says where.",
	}
}

// explainAll flattens kin-openapi's errors into one item per value.
func explainAll(err error) []openapi.ProblemItem {
	var items []openapi.ProblemItem

	for _, e := range flatten(err) {
		var request *openapi3filter.RequestError

		switch {
		case !errors.As(e, &request):
			items = append(items, openapi.ProblemItem{Code: codeBadRequest, Detail: firstLine(e.Error())})
		case request.Parameter != nil:
			items = append(items, explainValue(request, request.Parameter.Name)...)
		default:
			items = append(items, explainValue(request, "")...)
		}
	}

	return items
}

func explainValue(request *openapi3filter.RequestError, where string) []openapi.ProblemItem {
	var items []openapi.ProblemItem

	for _, e := range flatten(request.Err) {
		item := openapi.ProblemItem{Code: codeBadRequest, Pointer: where, Detail: request.Reason}

		var schema *openapi3.SchemaError

		switch {
		case errors.As(e, &schema):
			item.Detail = schema.Reason
			if path := schema.JSONPointer(); len(path) > 0 && where == "" {
				item.Pointer = "/" + strings.Join(path, "/")
			}
		case e != nil:
			item.Detail = firstLine(e.Error())
			if request.Reason != "" && !strings.HasPrefix(item.Detail, request.Reason) {
				item.Detail = request.Reason + ": " + item.Detail
			}
		}

		items = append(items, item)
	}

	return items
}

// flatten lists the errors in a list of errors, without the errors that they
// wrap.
func flatten(err error) []error {
	several, ok := err.(openapi3.MultiError) //nolint:errorlint // MultiError.As would find the first only
	if !ok {
		return []error{err}
	}

	var all []error
	for _, e := range several {
		all = append(all, flatten(e)...)
	}

	return all
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")

	return line
}
