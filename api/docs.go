package api

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

//go:embed docs.html.tmpl
var docsTemplate string

// docs is the page that describes the API, made once from the description. It
// has no script and loads nothing from elsewhere.
type docs struct {
	page []byte
}

// docsOperation is one operation on the page.
type docsOperation struct {
	Method, Path, ID, Summary, Description string
	Parameters                             []docsParameter
	Body                                   string
	Responses                              []string
}

type docsParameter struct {
	Name, In, Type, Description string
	Required                    bool
}

// docsGroup is the operations of one tag.
type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

func newDocs(doc *openapi3.T) (*docs, error) {
	groups := make([]docsGroup, len(doc.Tags))

	for i, tag := range doc.Tags {
		groups[i] = docsGroup{Name: tag.Name, Description: tag.Description}

		for _, path := range doc.Paths.InMatchingOrder() {
			item := doc.Paths.Value(path)

			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				if o := item.GetOperation(method); o != nil && slices.Contains(o.Tags, tag.Name) {
					groups[i].Operations = append(groups[i].Operations, describe(method, fullPath(item, path), item, o))
				}
			}
		}

		slices.SortStableFunc(groups[i].Operations, func(a, b docsOperation) int { return strings.Compare(a.Path, b.Path) })
	}

	page, err := template.New("docs").Parse(docsTemplate)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	err = page.Execute(&out, map[string]any{"Title": doc.Info.Title, "Description": doc.Info.Description, "Groups": groups})

	return &docs{page: out.Bytes()}, err
}

// fullPath is where a path of the description is on the server: below base, or below
// where its own servers are.
func fullPath(item *openapi3.PathItem, path string) string {
	if len(item.Servers) > 0 {
		return strings.TrimSuffix(item.Servers[0].URL, "/") + path
	}

	return base + path
}

func describe(method, path string, item *openapi3.PathItem, o *openapi3.Operation) docsOperation {
	d := docsOperation{Method: method, Path: path, ID: o.OperationID, Summary: o.Summary, Description: o.Description}

	for _, p := range append(slices.Clone(item.Parameters), o.Parameters...) {
		d.Parameters = append(d.Parameters, docsParameter{
			Name: p.Value.Name, In: p.Value.In, Required: p.Value.Required, Description: p.Value.Description,
			Type: typeName(p.Value.Schema),
		})
	}

	if o.RequestBody != nil {
		d.Body = contentText(o.RequestBody.Value.Content)
	}

	for _, status := range o.Responses.Keys() {
		response := o.Responses.Value(status).Value
		text := status

		if response.Description != nil {
			text += " " + *response.Description
		}

		if body := contentText(response.Content); body != "" {
			text += ": " + body
		}

		d.Responses = append(d.Responses, text)
	}

	return d
}

func contentText(c openapi3.Content) string {
	kinds := make([]string, 0, len(c))

	for kind, media := range c {
		text := kind
		if name := typeName(media.Schema); name != "string" {
			text += " " + name
		}

		kinds = append(kinds, text)
	}

	slices.Sort(kinds)

	return strings.Join(kinds, " or ")
}

// typeName is the name of a schema, or a text made of its parts.
func typeName(ref *openapi3.SchemaRef) string {
	switch {
	case ref == nil:
		return ""
	case ref.Ref != "":
		return ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]
	case ref.Value.Type.Is("array"):
		return "list of " + typeName(ref.Value.Items)
	default:
		return strings.Join(ref.Value.Type.Slice(), " or ")
	}
}

func (d *docs) serve(c *gin.Context) {
	c.Data(http.StatusOK, "text/html; charset=utf-8", d.page)
}
