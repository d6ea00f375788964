package api

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

const immutable = "public, max-age=31536000, immutable" // assets have their hash in their name

// serveWeb serves the web interface: a file that exists, else its one page for
// every path a person may type. A missing asset is never the page.
func (s *Server) serveWeb(c *gin.Context, missing error) {
	if c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		s.fail(c.Writer, c.Request, missing)

		return
	}

	name := strings.TrimPrefix(path.Clean("/"+c.Request.URL.Path), "/")
	asset := strings.HasPrefix(name, "assets/")

	data, err := fs.ReadFile(s.deps.Web, name)

	switch {
	case err == nil && asset:
		c.Header("Cache-Control", immutable)
	case err == nil:
		c.Header("Cache-Control", "no-cache")
	case asset:
		s.fail(c.Writer, c.Request, missing)

		return
	case !acceptsPage(c.GetHeader("Accept")):
		s.fail(c.Writer, c.Request, &httpError{
			status: http.StatusNotAcceptable, code: codeNotAcceptable, detail: "Only a page is here.",
		})

		return
	default:
		name = "index.html"
		c.Header("Cache-Control", "no-cache")

		if data, err = fs.ReadFile(s.deps.Web, name); err != nil {
			s.fail(c.Writer, c.Request, missing)

			return
		}
	}

	c.Status(http.StatusOK) // NoRoute begins with 404
	http.ServeContent(c.Writer, c.Request, name, time.Time{}, bytes.NewReader(data))
}

func acceptsPage(accept string) bool {
	return accept == "" || strings.Contains(accept, "text/html") || strings.Contains(accept, "*/*")
}
