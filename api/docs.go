package api

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

//go:embed docs.html.tmpl
var docsTemplate string

// docsPage serves the page that describes the API, made once from the description.
// It has no script and loads nothing from elsewhere.
func docsPage(doc *openapi3.T) (gin.HandlerFunc, error) {
	page, err := template.New("docs").Funcs(template.FuncMap{
		"has": slices.Contains[[]string], "root": rootOf, "type": typeName,
	}).Parse(docsTemplate)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	if err := page.Execute(&out, doc); err != nil {
		return nil, err
	}

	return func(c *gin.Context) { c.Data(http.StatusOK, "text/html; charset=utf-8", out.Bytes()) }, nil
}

// rootOf is where a path of the description begins on the server: at base, or at its
// own server.
func rootOf(item *openapi3.PathItem) string {
	if len(item.Servers) > 0 {
		return strings.TrimSuffix(item.Servers[0].URL, "/")
	}

	return base
}

// typeName is the name of a schema, or a text made of its parts.
func typeName(ref *openapi3.SchemaRef) string {
	switch {
	case ref == nil:
		return ""
	case ref.Ref != "":
		return path.Base(ref.Ref)
	case ref.Value.Type.Is("array"):
		return "list of " + typeName(ref.Value.Items)
	default:
		return strings.Join(ref.Value.Type.Slice(), " or ")
	}
}
