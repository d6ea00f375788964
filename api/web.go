package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth/internal/web"
)

// serveWeb serves the web interface to unknown callers, too: its pages contain
// only code that calls the API.
func (s *Server) serveWeb(c *gin.Context, missing error) {
	if c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		s.fail(c.Writer, c.Request, missing)

		return
	}

	c.Status(http.StatusOK) // NoRoute begins with 404

	switch s.web.Serve(c.Writer, c.Request) {
	case web.Served:
	case web.NotAcceptable:
		s.fail(c.Writer, c.Request, &httpError{
			status: http.StatusNotAcceptable, code: codeNotAcceptable, detail: "Only a page is here.",
		})
	case web.Missing:
		s.fail(c.Writer, c.Request, missing)
	}
}
