package spec

import (
	"errors"
	"mime"
	"slices"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// MaxBytes is the largest sweep file that is read.
const MaxBytes = 1 << 20

// Decode reads a sweep file, fills in defaults and checks it. contentType is
// that of the request, with or without parameters; empty means that the text
// itself shows whether it is JSON or YAML. Any failure is a *berth.SpecError
// that holds every problem, in the order of the document; it is Wire when at
// least one problem is about the form of the document rather than its meaning.
func Decode(data []byte, contentType string) (berth.Spec, error) {
	root, problem := parse(data, contentType)
	if problem != nil {
		return berth.Spec{}, &berth.SpecError{Problems: []berth.Problem{*problem}, Wire: problem.Code != codeTooMany}
	}

	if problem := foreignFile(root); problem != nil {
		return berth.Spec{}, &berth.SpecError{Problems: []berth.Problem{*problem}, Wire: true}
	}

	r := newReader()
	r.walk(root, "")
	s := r.spec(root)
	applyDefaults(&s, r.clean)

	c := &checker{spec: s, reader: r, root: root}
	c.run()

	if problems := r.sorted(); len(problems) > 0 {
		wire := slices.ContainsFunc(problems, func(p berth.Problem) bool { return wireCodes[p.Code] })

		return berth.Spec{}, &berth.SpecError{Problems: problems, Wire: wire}
	}

	return s, nil
}

// foreignFile recognizes a sweep of another program by the fields of its first level; nil = it is
// none. One answer says more than one for each field.
func foreignFile(root *document.Node) *berth.Problem {
	has := make(map[string]bool, len(root.Fields))
	for _, f := range root.Fields {
		has[f.Name] = true
	}

	var program string

	switch {
	case has["method"] && has["parameters"]:
		program = "W&B"
	case has["apiVersion"] && has["kind"] && has["spec"]:
		program = "Katib"
	default:
		return nil
	}

	return problemf(codeUnknownField, "this is a sweep of %s; `berth sweep import FILE` turns it into one of Berth's", program)
}

// parse turns bytes into a tree, or into the one problem that prevents it.
func parse(data []byte, contentType string) (*document.Node, *berth.Problem) {
	isJSON, err := isJSON(data, contentType)

	switch {
	case err != nil:
		return nil, problemf(CodeContentType, "%v", err)
	case len(data) > MaxBytes:
		return nil, problemf(CodeBodyTooLarge, "a sweep file has at most %s; this one is larger", berth.BytesText(MaxBytes))
	case strings.TrimSpace(string(data)) == "":
		return nil, problemf(codeBodyEmpty, "the document is empty; a sweep needs at least name, image and command")
	}

	syntax, read := codeYAML, document.ParseYAML
	if isJSON {
		syntax, read = codeJSON, document.ParseJSON
	}

	root, err := read(data)

	switch {
	case err == nil:
		return root, nil
	case errors.Is(err, document.ErrEncoding):
		return nil, problemf(codeUTF8, "%v", err)
	case errors.Is(err, document.ErrDepth):
		return nil, problemf(codeDepth, "%v", err)
	case errors.Is(err, document.ErrSize):
		return nil, problemf(codeTooMany, "%v", err)
	default:
		return nil, problemf(syntax, "%v", err)
	}
}

// isJSON chooses the parser. A text that begins like a JSON object is JSON
// when the caller does not say.
func isJSON(data []byte, contentType string) (bool, error) {
	if contentType == "" {
		text := strings.TrimLeft(strings.TrimPrefix(string(data[:min(len(data), 4096)]), "\ufeff"), " \t\r\n")
		inner, ok := strings.CutPrefix(text, "{")
		inner = strings.TrimLeft(inner, " \t\r\n")

		return ok && (strings.HasPrefix(inner, `"`) || strings.HasPrefix(inner, "}")), nil
	}

	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = contentType
	}

	switch kind {
	case "application/json":
		return true, nil
	case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
		return false, nil
	default:
		return false, berth.Errorf(berth.KindInvalid,
			"the content type %q is not read; send application/yaml or application/json", kind)
	}
}
